"""The accounts: their plans, how full they are, and all that is done to them."""
