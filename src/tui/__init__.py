"""The terminal UI over the store."""
