"""Where a file was dropped and what it held; what people ask of importers; who watches."""

import sqlalchemy as sa
from alembic import op

from resumes.store.schema import Text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Files that were taken before have neither root nor items: nobody knew them."""
    op.add_column("imported_files", sa.Column("root", Text))
    op.add_column("imported_files", sa.Column("items", Text))
    op.create_index(
        "ix_imported_files_not_done",
        "imported_files",
        ["account_id", "outcome", "claim_id", "reason"],
        sqlite_where=sa.text("outcome != 'done'"),
        postgresql_where=sa.text("outcome != 'done'"),
    )
    op.create_table(
        "import_requests",
        sa.Column(
            "account_id", Text, sa.ForeignKey("accounts.id"), primary_key=True, nullable=False
        ),
        sa.Column("claim_id", Text, primary_key=True, nullable=False),
        sa.Column("action", Text, nullable=False),
        sa.Column("requested_at", Text, nullable=False),
        sa.Column("root", Text),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "importers",
        sa.Column("id", Text, primary_key=True, nullable=False),
        sa.Column("host", Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("root", Text, nullable=False),
        sa.Column("state", Text, nullable=False),
        sa.Column("findings", Text, nullable=False),
        sa.Column("waiting", sa.Integer),
        sa.Column("started_at", Text, nullable=False),
        sa.Column("seen_at", Text, nullable=False),
    )
