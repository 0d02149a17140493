"""Widgets that do not use the store: they post messages, and screens set their state."""
