"""Plans lose their request rates, which limit nothing since version 1.1.0.

Programs of version 1.0.0 that are still running on a server write no more (pitfalls S25).
"""

from alembic import op

revision = "0002"
down_revision = "0001"

FACTS = (
    # A store that was moved stays closed. A copy by version 1.0.0 that is still running must not find its
    # id: if it failed, it would empty moving_to.
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
