"""A store in PostgreSQL, or in what speaks its protocol."""
