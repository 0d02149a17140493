"""What it takes to tell whose a watched folder is, and whether an account was deleted."""

import secrets

import sqlalchemy as sa
from alembic import op

from resumes.store.schema import Text

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Give the store an id, and a table of the accounts that it deletes from now on."""
    op.create_table(
        "deleted_accounts",
        sa.Column("id", Text, primary_key=True, nullable=False),
    )
    facts = sa.table("store_facts", sa.column("name", Text), sa.column("value", Text))
    op.bulk_insert(facts, [{"name": "store_id", "value": secrets.token_hex(8)}])
