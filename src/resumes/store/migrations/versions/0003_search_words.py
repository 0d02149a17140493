"""Search all texts of resumes: replace the index of trigrams with an index of words.

The programs that use the store fill the index, like the index entries of new resumes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

SQLITE = (
    "CREATE VIRTUAL TABLE search_tokens USING fts5(tokens, content='', contentless_delete=1,"
    """ detail=none, tokenize="ascii tokenchars '+#.'")""",
    "CREATE VIRTUAL TABLE search_words USING fts5vocab('search_tokens', 'instance')",
    "INSERT INTO search_tokens (search_tokens, rank) VALUES ('usermerge', 2)",
)
POSTGRESQL = (
    "ALTER TABLE search_entries ADD COLUMN words TEXT COLLATE \"C\" NOT NULL DEFAULT ''",
    "ALTER TABLE search_entries SET (toast_tuple_target = 128)",
    "CREATE FUNCTION search_keys(words TEXT) RETURNS TEXT[] LANGUAGE sql IMMUTABLE PARALLEL SAFE"
    " COST 1000 RETURN (SELECT string_to_array(words, ' '))",
    "CREATE INDEX ix_search_entries_words ON search_entries USING gin (search_keys(words))"
    " WITH (gin_pending_list_limit = 4096)",
    "ALTER INDEX ix_search_entries_words ALTER COLUMN 1 SET STATISTICS 0",
    'CREATE TABLE search_words (term TEXT COLLATE "C" PRIMARY KEY)',
    "DROP TABLE IF EXISTS schema_lock",  # version 1.0 locks it during an upgrade
)


def upgrade() -> None:
    """Drop the old index and its progress, and create an empty index."""
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    for table in ("search_trigrams", "search_entries", "search_progress"):
        op.drop_table(table)
    text = sa.Text() if is_sqlite else sa.Text(collation="C")

    def account_id() -> sa.Column[str]:
        return sa.Column("account_id", text, sa.ForeignKey("accounts.id"), primary_key=True)

    op.create_table(
        "search_progress",
        account_id(),
        sa.Column("number", sa.BigInteger, nullable=False, unique=True),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.Column("entries", sa.Integer, nullable=False),
        sa.Column("indexed_us", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "search_entries",
        account_id(),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("id", text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_search_entries_id", "search_entries", ["account_id", "id"], unique=True)
    for statement in SQLITE if is_sqlite else POSTGRESQL:
        op.execute(statement)
