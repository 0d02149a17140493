"""The store: its schema, every query, and the create path. Knows no HTTP, folder or terminal."""

from resumes.store.engine import Store, open_store

__all__ = ["Store", "open_store"]
