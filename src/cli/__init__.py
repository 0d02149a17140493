"""The roof: the `resumes` command, wiring only."""
