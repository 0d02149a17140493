"""HTTP over the store."""
