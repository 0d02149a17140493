"""Which Idempotency-Keys are too old, without looking at all of them."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Idempotency-Keys can be had by their age."""
    op.create_index("ix_idempotency_created_at", "idempotency", ["created_at"])
