"""Resumes have a label, a person and the file that they came from; API keys may be read-only.

The persons of the resumes that are there already are found by the programs that use the store.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

INDEXES = (
    "CREATE INDEX ix_resumes_label ON resumes (account_id, label, id) WHERE label IS NOT NULL",
    "CREATE INDEX ix_resumes_person ON resumes (account_id, person, id) WHERE person IS NOT NULL",
)


def upgrade() -> None:
    """Add the columns, without copying a table."""
    text = sa.Text() if op.get_bind().dialect.name == "sqlite" else sa.Text(collation="C")
    op.add_column("resumes", sa.Column("label", text))
    op.add_column("resumes", sa.Column("person", sa.LargeBinary))
    op.add_column("resumes", sa.Column("claim_id", text))
    op.add_column("resumes", sa.Column("first_month", sa.Integer))
    op.add_column("accounts", sa.Column("on_newer", text, nullable=False, server_default="keep"))
    op.add_column("accounts", sa.Column("first_month", sa.Integer))
    op.add_column("accounts", sa.Column("former_names", text, nullable=False, server_default=""))
    no = sa.Column("is_read_only", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("api_keys", no)
    for statement in INDEXES:
        op.execute(statement)
