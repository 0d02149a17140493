"""Where a file was dropped and what it held; what people ask of importers; who watches."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Files that were taken before have neither root nor items: nobody knew them."""
    op.add_column("imported_files", sa.Column("root", sa.Text))
    op.add_column("imported_files", sa.Column("items", sa.Text))
    op.create_index(
        "ix_imported_files_not_done",
        "imported_files",
        ["account_id", "outcome", "claim_id", "reason"],
        sqlite_where=sa.text("outcome != 'done'"),
    )
    op.create_table(
        "import_requests",
        sa.Column(
            "account_id", sa.Text, sa.ForeignKey("accounts.id"), primary_key=True, nullable=False
        ),
        sa.Column("claim_id", sa.Text, primary_key=True, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("requested_at", sa.Text, nullable=False),
        sa.Column("root", sa.Text),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "importers",
        sa.Column("id", sa.Text, primary_key=True, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("root", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("findings", sa.Text, nullable=False),
        sa.Column("waiting", sa.Integer),
        sa.Column("started_at", sa.Text, nullable=False),
        sa.Column("seen_at", sa.Text, nullable=False),
    )
