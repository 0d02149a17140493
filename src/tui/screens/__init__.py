"""The screens and dialogs. Digits open six of them (`tui.keys.MODES`)."""
