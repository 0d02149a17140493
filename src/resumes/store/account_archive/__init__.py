"""An account as a file: its format, and writing and reading it."""
