"""The plans: what accounts may hold, and how often their keys may ask."""
