"""Plans lose their request rates, which limit nothing since version 1.1.0."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Drop the three columns, without copying the table."""
    for period in ("minute", "hour", "day"):
        op.drop_column("plans", f"requests_per_{period}")
