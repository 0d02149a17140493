"""The lowest layer: errors, settings, the analyzer format and the store.

This package is independent of HTTP, terminals and the command line.
"""
