"""The watch folder over the store."""
