"""The screens and dialogs. A digit leads to six of them (`tui.keys.MODES`)."""
