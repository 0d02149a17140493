"""A store as a whole: copied to another engine, backed up, restored, and proved to be the same.

copying ──┐              copy FROM TO, resumable
backups ──┼─ filling ─ tables     rows into a store, table by table
restoring ┘    proving ─ tables   counts and digests of both sides
"""
