"""API keys: the list, new ones shown once, those from elsewhere, rotating and revoking."""
