"""What can be wrong with an installation: each finding with its fix. Imports no user interface."""
