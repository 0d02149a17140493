"""The first tables, and the three plans that a new store has (docs/accounts.md)."""

import sqlalchemy as sa
from alembic import op

from resumes.store.schema import Text

revision = "0001"
down_revision = None

ACCOUNT = "accounts.id"


def upgrade() -> None:
    """All tables of the first version exist; the plans free, pro and business are in them."""
    plans = op.create_table(
        "plans",
        sa.Column("name", Text, primary_key=True, nullable=False),
        sa.Column("max_resumes", sa.Integer),
        sa.Column("api_listing", sa.Boolean, nullable=False),
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
        sa.Column("id", Text, primary_key=True, nullable=False),
        sa.Column("name", Text, nullable=False, unique=True),
        sa.Column("plan", Text, sa.ForeignKey("plans.name"), nullable=False),
        sa.Column("created_at", Text, nullable=False),
        sa.Column("closed_at", Text),
    )
    op.create_table(
        "account_usage",
        sa.Column("account_id", Text, sa.ForeignKey(ACCOUNT), primary_key=True, nullable=False),
        sa.Column("resume_count", sa.Integer, nullable=False),
        sa.Column("last_id_us", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "api_keys",
        sa.Column("account_id", Text, sa.ForeignKey(ACCOUNT), primary_key=True, nullable=False),
        sa.Column("id", Text, primary_key=True, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("masked", Text, nullable=False),
        sa.Column("created_at", Text, nullable=False),
        sa.Column("shown_at", Text),
        sa.Column("last_used_at", Text),
        sa.Column("expires_at", Text),
        sa.Column("revoked_at", Text),
    )
    op.create_table(
        "key_directory",
        sa.Column("key_hash", sa.LargeBinary, primary_key=True, nullable=False),
        sa.Column("account_id", Text, nullable=False),
        sa.Column("key_id", Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "resumes",
        sa.Column("account_id", Text, sa.ForeignKey(ACCOUNT), primary_key=True, nullable=False),
        sa.Column("id", Text, primary_key=True, nullable=False),
        sa.Column("title", Text),
        sa.Column("name", Text),
        sa.Column("filename", Text, nullable=False),
        sa.Column("created_at", Text, nullable=False),
        sa.Column("updated_at", Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "documents",
        sa.Column("account_id", Text, sa.ForeignKey(ACCOUNT), primary_key=True, nullable=False),
        sa.Column("id", Text, primary_key=True, nullable=False),
        sa.Column("document", Text, nullable=False),
    )
    op.create_table(
        "idempotency",
        sa.Column("account_id", Text, sa.ForeignKey(ACCOUNT), primary_key=True, nullable=False),
        sa.Column("key", Text, primary_key=True, nullable=False),
        sa.Column("body_sha256", sa.LargeBinary, nullable=False),
        sa.Column("resume_id", Text, nullable=False),
        sa.Column("created_at", Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "imported_files",
        sa.Column("account_id", Text, sa.ForeignKey(ACCOUNT), primary_key=True, nullable=False),
        sa.Column("claim_id", Text, primary_key=True, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("outcome", Text, nullable=False),
        sa.Column("reason", Text),
        sa.Column("message", Text),
        sa.Column("path", Text),
        sa.Column("byte_offset", sa.BigInteger),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("claimed_at", Text, nullable=False),
        sa.Column("finished_at", Text, nullable=False),
        sa.Column("source", sa.LargeBinary),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "imported_items",
        sa.Column("account_id", Text, sa.ForeignKey(ACCOUNT), primary_key=True, nullable=False),
        sa.Column("claim_id", Text, primary_key=True, nullable=False),
        sa.Column("item", sa.Integer, primary_key=True, nullable=False),
        sa.Column("outcome", Text, nullable=False),
        sa.Column("resume_id", Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "imported_digests",
        sa.Column("account_id", Text, sa.ForeignKey(ACCOUNT), primary_key=True, nullable=False),
        sa.Column("digest", sa.LargeBinary, primary_key=True, nullable=False),
        sa.Column("resume_id", Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_imported_digests_resume", "imported_digests", ["account_id", "resume_id"])
