"""How many requests a plan's keys may make."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Every plan has the rates of the settings, as before."""
    op.add_column("plans", sa.Column("requests_per_minute", sa.Integer))
    op.add_column("plans", sa.Column("requests_per_hour", sa.Integer))
    op.add_column("plans", sa.Column("requests_per_day", sa.Integer))
