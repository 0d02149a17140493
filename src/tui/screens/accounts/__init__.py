"""The accounts: their plans, and how full they are."""
