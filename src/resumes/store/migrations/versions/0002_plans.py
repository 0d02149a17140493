"""Remove the request rates of plans, which have had no effect since version 1.1.0.

Programs of version 1.0.0 that are still running on PostgreSQL can no longer write (pitfalls S25).
"""

from alembic import op

revision = "0002"
down_revision = "0001"

FACTS = (
    # A store that was moved stays closed. If a copy by version 1.0.0 is still running, it must not
    # find its ID, because it would empty moving_to after an error.
    "UPDATE store_facts SET name = 'closed_for' WHERE name = 'moving_to'",
    "UPDATE store_facts SET value = '' WHERE name = 'copy_id'",
    "INSERT INTO store_facts (name, value) VALUES ('moving_to', 'a newer version of this program')",
)


def upgrade() -> None:
    """Drop the three columns, without copying the table, and close the store to version 1.0.0."""
    for period in ("minute", "hour", "day"):
        op.drop_column("plans", f"requests_per_{period}")
    for statement in FACTS:
        op.execute(statement)
