"""API keys: the list, a new one shown once, and revoking."""
