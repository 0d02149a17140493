"""Add labels, persons, claims and replaced versions of resumes, read-only API keys, the memory of
erased people, and plans that keep resumes for a limited number of days.

The programs that use the store find the persons of existing resumes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

INDEXES = (
    "CREATE INDEX ix_resumes_label ON resumes (account_id, label, id) WHERE label IS NOT NULL",
    "CREATE INDEX ix_resumes_person ON resumes (account_id, person, id, is_person_indexed)"
    " WHERE is_person_indexed IS NOT NULL",
)


def upgrade() -> None:
    """Add the columns, without copying tables, and two new tables."""
    text = sa.Text() if op.get_bind().dialect.name == "sqlite" else sa.Text(collation="C")
    op.add_column("resumes", sa.Column("label", text))
    op.add_column("resumes", sa.Column("person", sa.LargeBinary))
    op.add_column("resumes", sa.Column("claim_id", text))
    op.add_column("resumes", sa.Column("first_month", sa.Integer))
    op.add_column("resumes", sa.Column("is_person_indexed", sa.Boolean))
    op.add_column("accounts", sa.Column("on_newer", text, nullable=False, server_default="keep"))
    op.add_column("accounts", sa.Column("first_month", sa.Integer))
    op.add_column("accounts", sa.Column("former_names", text, nullable=False, server_default=""))
    for table, name in (("api_keys", "is_read_only"), ("imported_digests", "is_older")):
        no = sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())
        op.add_column(table, no)
    op.add_column("plans", sa.Column("keep_days", sa.Integer))
    op.execute("INSERT INTO store_facts (name, value) VALUES ('swept_at', ''), ('expired', '0')")
    op.create_table(
        "replaced_resumes",
        sa.Column("account_id", text, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("resume_id", text, primary_key=True),
        sa.Column("replaced_id", text, primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "forgotten",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        sa.Column("forgotten_at", text, nullable=False),
        sqlite_with_rowid=False,
    )
    for statement in INDEXES:
        op.execute(statement)
