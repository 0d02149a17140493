"""What a store says of itself as a whole; and what PostgreSQL has in its own way."""

import sqlalchemy as sa
from alembic import op

from resumes.store.schema import Text

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """The store says which program it needs, and that it is not being moved."""
    facts = op.create_table(
        "store_facts",
        sa.Column("name", Text, primary_key=True, nullable=False),
        sa.Column("value", Text, nullable=False),
    )
    op.bulk_insert(
        facts,
        [
            {"name": "oldest_program", "value": revision},
            {"name": "moving_to", "value": ""},
            {"name": "probe", "value": ""},
        ],
    )
    if op.get_bind().dialect.name == "postgresql":
        # Every create rewrites a row of it: with room in the page, no index is touched.
        op.execute("ALTER TABLE account_usage SET (fillfactor = 50)")
