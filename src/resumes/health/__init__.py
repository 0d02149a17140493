"""Check an installation. This package imports no user interface."""
