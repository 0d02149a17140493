"""A store in a SQLite file. In each process, one thread writes to it."""
