"""Widgets. None of them knows the store: messages go up, state comes down."""
