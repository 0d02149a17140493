"""A store in a SQLite file, written through one lane."""
