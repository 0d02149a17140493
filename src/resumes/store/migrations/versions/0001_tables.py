"""The tables of version 1.0.0. A new store gets today's, and skips all revisions."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Change nothing: revisions begin after this one."""
