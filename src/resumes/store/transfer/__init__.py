"""A store as a whole: copied to another engine, backed up, restored, and proved to be the same.

copying ──┐                ┌─ filling ─┐           copy FROM TO, resumable; rows into a store
backups ──┼─ transferring ─┤           ├─ tables   how far it is; what a store holds, and its order
restoring ┘                └─ proving ─┘           counts and digests of both sides

What both stores say of it meanwhile is in marking.
"""
