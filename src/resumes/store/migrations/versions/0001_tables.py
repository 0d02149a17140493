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


def _texts(names: str, *, nullable: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, BinaryText, nullable=nullable) for name in names.split()]


def _create_keys() -> None:
    op.create_table(
        "api_keys",
        _account_id(),
        sa.Column("id", BinaryText, primary_key=True, nullable=False),
        *_texts("name masked created_at"),
        *_texts("shown_at last_used_at expires_at revoked_at replaced_by", nullable=True),
    )
    op.create_table(
        "key_directory",
        sa.Column("key_hash", sa.LargeBinary, primary_key=True, nullable=False),
        *_texts("account_id key_id"),
        sqlite_with_rowid=False,
    )


def _create_resumes() -> None:
    op.create_table(
        "resumes",
        _account_id(),
        sa.Column("id", BinaryText, primary_key=True, nullable=False),
        *_texts("title name", nullable=True),
        *_texts("filename created_at updated_at"),
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
        *_texts("resume_id created_at"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_idempotency_created_at", "idempotency", ["created_at"])


def _create_imports() -> None:
    op.create_table(
        "imported_files",
        _account_id(),
        sa.Column("claim_id", BinaryText, primary_key=True, nullable=False),
        *_texts("name outcome"),
        *_texts("reason message path", nullable=True),
        sa.Column("byte_offset", sa.BigInteger),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        *_texts("claimed_at finished_at"),
        *_texts("resume_id", nullable=True),
        sa.Column("source", sa.LargeBinary),
        *_texts("root items", nullable=True),
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
        *_texts("outcome resume_id"),
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
        *_texts("action requested_at"),
        sa.Column("root", BinaryText),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "importers",
        sa.Column("id", BinaryText, primary_key=True, nullable=False),
        sa.Column("host", BinaryText, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        *_texts("root state findings"),
        sa.Column("waiting", sa.Integer),
        *_texts("started_at seen_at"),
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
        *_texts("id words"),
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
