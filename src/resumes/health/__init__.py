"""Checks of an installation: each finding has a remedy. Imports no user interface."""
