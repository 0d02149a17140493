"""The ground floor: errors, settings, the analyzer format and the store.

Nothing here knows HTTP, watched folders, terminals or the command line.
"""
