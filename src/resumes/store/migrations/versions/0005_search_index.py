"""The index by which resumes are searched."""

import sqlalchemy as sa
from alembic import op

from resumes.store.schema import Text

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """The index is empty: it is filled while the store is used, and nobody waits for it."""
    op.create_table(
        "search_progress",
        sa.Column(
            "account_id", Text, sa.ForeignKey("accounts.id"), primary_key=True, nullable=False
        ),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.Column("indexed_us", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("number"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "search_entries",
        sa.Column(
            "account_id", Text, sa.ForeignKey("accounts.id"), primary_key=True, nullable=False
        ),
        sa.Column("seq", sa.BigInteger, primary_key=True, nullable=False),
        sa.Column("id", Text, nullable=False),
        sa.Column("words", Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_search_entries_id", "search_entries", ["account_id", "id"], unique=True)
    # Which entries have a piece, and nothing else: neither text, nor positions, nor lengths.
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE search_pieces USING fts5("
            "pieces, content='', detail=none, columnsize=0, tokenize='ascii')"
        )
    else:
        op.execute(
            'CREATE TABLE search_pieces (account_id text COLLATE "C" NOT NULL REFERENCES accounts,'
            " seq bigint NOT NULL, pieces bigint[] NOT NULL, PRIMARY KEY (account_id, seq))"
        )
        op.execute("CREATE INDEX ix_search_pieces ON search_pieces USING gin (pieces)")
