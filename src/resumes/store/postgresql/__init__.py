"""A store in PostgreSQL, or in a database with the same protocol."""
