"""The tables of version 1.0.0."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Change nothing, because this is the first revision."""
