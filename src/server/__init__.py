"""The HTTP server of the store."""
