"""A store in a SQLite file, written by one thread."""
