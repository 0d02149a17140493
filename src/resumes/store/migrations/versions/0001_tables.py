"""The tables, the three plans that a new store has (docs/accounts.md), and its facts."""

import secrets

import sqlalchemy as sa
from alembic import op

from resumes.store.schema import BinaryText

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables, with the plans free, pro and business, and an id of this store."""
    plans = op.create_table(
        "plans",
        sa.Column("name", BinaryText, primary_key=True, nullable=False),
        sa.Column("max_resumes", sa.Integer),
        sa.Column("api_listing", sa.Boolean, nullable=False),
        sa.Column("requests_per_minute", sa.Integer),
        sa.Column("requests_per_hour", sa.Integer),
        sa.Column("requests_per_day", sa.Integer),
    )
    op.bulk_insert(
        plans,
        [
            {"name": "free", "max_resumes": 5, "api_listing": False},
            {"name": "pro", "max_resumes": 50, "api_listing": False},
            {"name": "business", "max_resumes": 1_000, "api_listing": True},
        ],
    )
    op.create_table(
        "accounts",
        sa.Column("id", BinaryText, primary_key=True, nullable=False),
        sa.Column("name", BinaryText, nullable=False, unique=True),
        sa.Column("plan", BinaryText, sa.ForeignKey("plans.name"), nullable=False),
        sa.Column("created_at", BinaryText, nullable=False),
        sa.Column("closed_at", BinaryText),
    )
    op.create_table(
        "deleted_accounts",
        sa.Column("id", BinaryText, primary_key=True, nullable=False),
    )
    op.create_table(
        "account_usage",
        _account_id(),
        sa.Column("resume_count", sa.Integer, nullable=False),
        sa.Column("last_id_us", sa.BigInteger, nullable=False),
        # Every create rewrites a row of it: with room in the page, no index is touched.
        postgresql_with={"fillfactor": 50},
    )
    _create_keys()
    _create_resumes()
    _create_imports()
    _create_search_index()
    facts = op.create_table(
        "store_facts",
        sa.Column("name", BinaryText, primary_key=True, nullable=False),
        sa.Column("value", BinaryText, nullable=False),
    )
    op.bulk_insert(
        facts,
        [
            {"name": "oldest_program", "value": revision},
            {"name": "moving_to", "value": ""},
            {"name": "probe", "value": ""},
            {"name": "store_id", "value": secrets.token_hex(8)},
        ],
    )


def _account_id() -> sa.Column[str]:
    return sa.Column(
        "account_id", BinaryText, sa.ForeignKey("accounts.id"), primary_key=True, nullable=False
    )


def _create_keys() -> None:
    op.create_table(
        "api_keys",
        _account_id(),
        sa.Column("id", BinaryText, primary_key=True, nullable=False),
        sa.Column("name", BinaryText, nullable=False),
        sa.Column("masked", BinaryText, nullable=False),
        sa.Column("created_at", BinaryText, nullable=False),
        sa.Column("shown_at", BinaryText),
        sa.Column("last_used_at", BinaryText),
        sa.Column("expires_at", BinaryText),
        sa.Column("revoked_at", BinaryText),
    )
    op.create_table(
        "key_directory",
        sa.Column("key_hash", sa.LargeBinary, primary_key=True, nullable=False),
        sa.Column("account_id", BinaryText, nullable=False),
        sa.Column("key_id", BinaryText, nullable=False),
        sqlite_with_rowid=False,
    )


def _create_resumes() -> None:
    op.create_table(
        "resumes",
        _account_id(),
        sa.Column("id", BinaryText, primary_key=True, nullable=False),
        sa.Column("title", BinaryText),
        sa.Column("name", BinaryText),
        sa.Column("filename", BinaryText, nullable=False),
        sa.Column("created_at", BinaryText, nullable=False),
        sa.Column("updated_at", BinaryText, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "documents",
        _account_id(),
        sa.Column("id", BinaryText, primary_key=True, nullable=False),
        sa.Column("crc32", sa.BigInteger, nullable=False),
        sa.Column("document", BinaryText, nullable=False),
    )
    op.create_table(
        "idempotency",
        _account_id(),
        sa.Column("key", BinaryText, primary_key=True, nullable=False),
        sa.Column("body_sha256", sa.LargeBinary, nullable=False),
        sa.Column("resume_id", BinaryText, nullable=False),
        sa.Column("created_at", BinaryText, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_idempotency_created_at", "idempotency", ["created_at"])


def _create_imports() -> None:
    op.create_table(
        "imported_files",
        _account_id(),
        sa.Column("claim_id", BinaryText, primary_key=True, nullable=False),
        sa.Column("name", BinaryText, nullable=False),
        sa.Column("outcome", BinaryText, nullable=False),
        sa.Column("reason", BinaryText),
        sa.Column("message", BinaryText),
        sa.Column("path", BinaryText),
        sa.Column("byte_offset", sa.BigInteger),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("claimed_at", BinaryText, nullable=False),
        sa.Column("finished_at", BinaryText, nullable=False),
        sa.Column("source", sa.LargeBinary),
        sa.Column("root", BinaryText),
        sa.Column("items", BinaryText),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_imported_files_not_done",
        "imported_files",
        ["account_id", "outcome", "claim_id", "reason"],
        sqlite_where=sa.text("outcome != 'done'"),
        postgresql_where=sa.text("outcome != 'done'"),
    )
    op.create_table(
        "imported_items",
        _account_id(),
        sa.Column("claim_id", BinaryText, primary_key=True, nullable=False),
        sa.Column("item", sa.Integer, primary_key=True, nullable=False),
        sa.Column("outcome", BinaryText, nullable=False),
        sa.Column("resume_id", BinaryText, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "imported_digests",
        _account_id(),
        sa.Column("digest", sa.LargeBinary, primary_key=True, nullable=False),
        sa.Column("resume_id", BinaryText, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_imported_digests_resume", "imported_digests", ["account_id", "resume_id"])
    op.create_table(
        "import_requests",
        _account_id(),
        sa.Column("claim_id", BinaryText, primary_key=True, nullable=False),
        sa.Column("action", BinaryText, nullable=False),
        sa.Column("requested_at", BinaryText, nullable=False),
        sa.Column("root", BinaryText),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "importers",
        sa.Column("id", BinaryText, primary_key=True, nullable=False),
        sa.Column("host", BinaryText, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("root", BinaryText, nullable=False),
        sa.Column("state", BinaryText, nullable=False),
        sa.Column("findings", BinaryText, nullable=False),
        sa.Column("waiting", sa.Integer),
        sa.Column("started_at", BinaryText, nullable=False),
        sa.Column("seen_at", BinaryText, nullable=False),
    )


def _create_search_index() -> None:
    op.create_table(
        "search_progress",
        _account_id(),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.Column("indexed_us", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("number"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "search_entries",
        _account_id(),
        sa.Column("seq", sa.BigInteger, primary_key=True, nullable=False),
        sa.Column("id", BinaryText, nullable=False),
        sa.Column("words", BinaryText, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_search_entries_id", "search_entries", ["account_id", "id"], unique=True)
    # Which entries have a trigram, and nothing else: neither text, nor positions, nor lengths.
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE search_trigrams USING fts5("
            "trigrams, content='', detail=none, columnsize=0, tokenize='ascii')"
        )
    else:
        op.create_table(
            "search_trigrams",
            _account_id(),
            sa.Column("seq", sa.BigInteger, primary_key=True, nullable=False),
            sa.Column("trigrams", sa.ARRAY(sa.BigInteger), nullable=False),
        )
        op.create_index(
            "ix_search_trigrams", "search_trigrams", ["trigrams"], postgresql_using="gin"
        )
