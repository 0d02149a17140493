"""The tables, as SQLModel models.

`Store.session()` and the changes of `Store.write` use a `Session`; `select(Account)` and
`session.add(Account(…))` work as in any program that uses SQLModel. A class that combines a model
with figures from other tables extends the model's base: `Plan` and `plans.PlanInfo` are both a
`PlanBase`. Statements that list many rows select columns, which are read by name.

For speed, some statements bypass SQLAlchemy when they run: they create resumes, read a page of the
list or one resume, look up an API key (`statements.Prepared`), find candidates of a search, or copy
rows.

In tables whose rows belong to accounts, the primary key begins with `account_id`, by which sharded
engines distribute the rows; every query about an account specifies its ID. The tables `plans`,
`accounts`, `deleted_accounts`, `forgotten`, `key_directory`, `importers` and `store_facts` are
small. Deletions do not cascade from `accounts`, so a migration that rebuilds this table cannot
delete resumes.
"""

import secrets
from typing import Any, ClassVar, Final

import sqlalchemy
from sqlalchemy import BigInteger, Connection, Index, LargeBinary, Table, TypeDecorator, insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import TypeCompiler
from sqlmodel import Field, SQLModel


class BinaryText(TypeDecorator[str]):
    """Text that is compared byte by byte on every engine.

    IDs are cursors and must sort in commit order, but by default PostgreSQL sorts by locale.
    """

    impl = sqlalchemy.Text
    cache_ok = True


@compiles(BinaryText, "postgresql")
def _text_postgresql(kind: BinaryText, compiler: TypeCompiler, **options: Any) -> str:
    # Only columns need the collation; PostgreSQL also applies it to values compared with them.
    return 'TEXT COLLATE "C"' if "type_expression" in options else "TEXT"


CLUSTERED: dict[str, Any] = {"sqlite_with_rowid": False}
"""Store rows in their primary key's tree, so that a page of an account is one range of it."""


class PlanBase(SQLModel):
    """The limits and API rights of the accounts with this plan.

    If `max_resumes` is None, the number of resumes is unlimited. Resumes that are older than
    `keep_days` are erased (`retention`); if this is None, they are kept forever.
    """

    name: str = Field(primary_key=True, sa_type=BinaryText)
    max_resumes: int | None = None
    api_listing: bool = False
    keep_days: int | None = None


class Plan(PlanBase, table=True):
    """A stored plan."""

    __tablename__: ClassVar[str] = "plans"


class AccountBase(SQLModel):
    """A tenant. `id` is random and never reused; commands use the `name`."""

    id: str = Field(primary_key=True, sa_type=BinaryText)
    name: str = Field(unique=True, sa_type=BinaryText)
    plan: str = Field(foreign_key="plans.name", sa_type=BinaryText)
    created_at: str = Field(sa_type=BinaryText)
    # Set at the beginning of a deletion, so that nothing is stored in the account meanwhile.
    closed_at: str | None = Field(default=None, sa_type=BinaryText)
    # If it is "replace", a new resume replaces the older resumes of the same person.
    on_newer: str = Field(
        default="keep", sa_type=BinaryText, sa_column_kwargs={"server_default": "keep"}
    )
    # The number that the account's analyzer writes for January; if None, the setting determines it.
    first_month: int | None = None
    # Separated by spaces. The account still owns folders with them (docs/decisions/0022).
    former_names: str = Field(
        default="", sa_type=BinaryText, sa_column_kwargs={"server_default": ""}
    )

    @property
    def folders(self) -> list[str]:
        """Return the names of the account's folders: its current name and its former names."""
        return [self.name, *self.former_names.split()]


class Account(AccountBase, table=True):
    """A stored tenant."""

    __tablename__: ClassVar[str] = "accounts"


class DeletedAccount(SQLModel, table=True):
    """An account that this store has deleted or has begun to delete. Such a row is never removed.

    A file may wait for an account that is not in `accounts`. If the account is in this table, it
    was deleted; otherwise, the store was restored from an older backup (docs/decisions/0013).
    """

    __tablename__: ClassVar[str] = "deleted_accounts"
    id: str = Field(primary_key=True, sa_type=BinaryText)


class OfAccount(SQLModel):
    """The first column of the primary key in all tables whose rows belong to accounts."""

    account_id: str = Field(primary_key=True, foreign_key="accounts.id", sa_type=BinaryText)


class Forgotten(SQLModel, table=True):
    """The keyed digest of an erased person, whose resumes are rejected (`forgotten.Subject`)."""

    __tablename__: ClassVar[str] = "forgotten"
    __table_args__: ClassVar[Any] = CLUSTERED
    digest: bytes = Field(primary_key=True, sa_type=LargeBinary)
    forgotten_at: str = Field(sa_type=BinaryText)


class AccountUsage(OfAccount, table=True):
    """The account's counter and last ID, in a narrow row because create requests rewrite it.

    The row is the account's lock: each write to the account locks it first. `last_id_us` does not
    change when resumes are deleted, so that no ID is assigned twice.
    """

    __tablename__: ClassVar[str] = "account_usage"
    resume_count: int = 0
    last_id_us: int = Field(default=0, sa_type=BigInteger)


class ApiKeyBase(OfAccount):
    """An API key without its secret. Lists show `masked`."""

    id: str = Field(primary_key=True, sa_type=BinaryText)
    name: str = Field(sa_type=BinaryText)
    masked: str = Field(sa_type=BinaryText)
    created_at: str = Field(sa_type=BinaryText)
    # None until the key has been shown to its owner; until then, it may be replaced.
    shown_at: str | None = Field(default=None, sa_type=BinaryText)
    last_used_at: str | None = Field(default=None, sa_type=BinaryText)
    expires_at: str | None = Field(default=None, sa_type=BinaryText)
    revoked_at: str | None = Field(default=None, sa_type=BinaryText)
    # The ID of the key that replaced this one in a rotation.
    replaced_by: str | None = Field(default=None, sa_type=BinaryText)
    is_read_only: bool = Field(
        default=False, sa_column_kwargs={"server_default": sqlalchemy.false()}
    )


class ApiKey(ApiKeyBase, table=True):
    """A stored API key."""

    __tablename__: ClassVar[str] = "api_keys"


class KeyDirectory(SQLModel, table=True):
    """Maps a key's SHA-256 to its account, for the only look-up without a known account."""

    __tablename__: ClassVar[str] = "key_directory"
    __table_args__: ClassVar[Any] = CLUSTERED
    key_hash: bytes = Field(primary_key=True, sa_type=LargeBinary)
    account_id: str = Field(sa_type=BinaryText)
    key_id: str = Field(sa_type=BinaryText)


class ResumeRow(OfAccount, table=True):
    """A stored resume as a list shows it. Rows are short, so that a list reads few pages.

    `person` is the digest of the resume's person, or None if unknown. `claim_id` is the claim of
    the file that it was imported from. `first_month` is the number of January in its dates (0 or
    1), or None if that was not known when it was created. `is_person_indexed` is None until the row
    is in the index of persons, then True (`versions`).
    """

    __tablename__: ClassVar[str] = "resumes"
    __table_args__: ClassVar[Any] = CLUSTERED
    id: str = Field(primary_key=True, sa_type=BinaryText)
    title: str | None = Field(default=None, sa_type=BinaryText)
    name: str | None = Field(default=None, sa_type=BinaryText)
    filename: str = Field(sa_type=BinaryText)
    created_at: str = Field(sa_type=BinaryText)
    updated_at: str = Field(sa_type=BinaryText)
    label: str | None = Field(default=None, sa_type=BinaryText)
    person: bytes | None = Field(default=None, sa_type=LargeBinary)
    claim_id: str | None = Field(default=None, sa_type=BinaryText)
    first_month: int | None = None
    is_person_indexed: bool | None = None


class Document(OfAccount, table=True):
    """The JSON text of a stored resume, which the analyzer wrote, and the CRC-32 of its bytes.

    It is text on every engine, so that the order of keys does not change. It is not in `resumes`,
    because SQLite reads a clustered row with all of its overflow pages to compare its key.
    """

    __tablename__: ClassVar[str] = "documents"
    id: str = Field(primary_key=True, sa_type=BinaryText)
    crc32: int = Field(sa_type=BigInteger)
    document: str = Field(sa_type=BinaryText)


class Idempotency(OfAccount, table=True):
    """The resume that was created with an Idempotency-Key; written in the same transaction."""

    __tablename__: ClassVar[str] = "idempotency"
    __table_args__: ClassVar[Any] = (
        # For deleting old keys of all accounts.
        Index("ix_idempotency_created_at", "created_at"),
        CLUSTERED,
    )
    key: str = Field(primary_key=True, sa_type=BinaryText)
    body_sha256: bytes = Field(sa_type=LargeBinary)
    resume_id: str = Field(sa_type=BinaryText)
    created_at: str = Field(sa_type=BinaryText)


class ImportedFileBase(OfAccount):
    """The outcome of a claimed file. Each claim with an outcome has one row.

    `name` is the file's path relative to the watched folder, escaped for display.
    """

    claim_id: str = Field(primary_key=True, sa_type=BinaryText)
    name: str = Field(sa_type=BinaryText)
    outcome: str = Field(sa_type=BinaryText)
    reason: str | None = Field(default=None, sa_type=BinaryText)
    message: str | None = Field(default=None, sa_type=BinaryText)
    path: str | None = Field(default=None, sa_type=BinaryText)
    byte_offset: int | None = Field(default=None, sa_type=BigInteger)
    size_bytes: int = Field(sa_type=BigInteger)
    claimed_at: str = Field(sa_type=BinaryText)
    finished_at: str = Field(sa_type=BinaryText)


class ImportedFile(ImportedFileBase, table=True):
    """The stored outcome of a claimed file.

    `root` is the watched folder, or None if unknown. `resume_id` is the resume that a file with a
    single resume was stored as or duplicates; it is kept when that resume is deleted. `source`
    contains the first 64 KiB of the file, or the analyzer's output; it is None for files that are
    done. `items` is JSON (`import_ledger.Items`), or None for a JSON file with a single resume and
    no warnings.
    """

    __tablename__: ClassVar[str] = "imported_files"
    __table_args__: ClassVar[Any] = CLUSTERED
    resume_id: str | None = Field(default=None, sa_type=BinaryText)
    source: bytes | None = Field(default=None, sa_type=LargeBinary)
    root: str | None = Field(default=None, sa_type=BinaryText)
    items: str | None = Field(default=None, sa_type=BinaryText)


class ImportedItem(OfAccount, table=True):
    """The outcome of an imported item of a bundle.

    It is kept when its resume is deleted, because recovery and release rely on it. The primary key
    prevents two importers from importing the same item of a claim.
    """

    __tablename__: ClassVar[str] = "imported_items"
    __table_args__: ClassVar[Any] = CLUSTERED
    claim_id: str = Field(primary_key=True, sa_type=BinaryText)
    item: int = Field(primary_key=True)
    outcome: str = Field(sa_type=BinaryText)
    resume_id: str = Field(sa_type=BinaryText)


class ImportedDigest(OfAccount, table=True):
    """The digest of an imported resume that is stored. It is deleted with the resume.

    `digest` is the SHA-256 of the JSON value's bytes without surrounding white space; an analyzed
    file has another row for the bytes of the file. If `is_older`, it is the digest of an older
    version that the resume has replaced.
    """

    __tablename__: ClassVar[str] = "imported_digests"
    __table_args__: ClassVar[Any] = (
        Index("ix_imported_digests_resume", "account_id", "resume_id"),
        CLUSTERED,
    )
    digest: bytes = Field(primary_key=True, sa_type=LargeBinary)
    resume_id: str = Field(sa_type=BinaryText)
    is_older: bool = Field(default=False, sa_column_kwargs={"server_default": sqlalchemy.false()})


class ReplacedResume(OfAccount, table=True):
    """A record of a version that `resume_id` replaced when created. It outlives both resumes."""

    __tablename__: ClassVar[str] = "replaced_resumes"
    __table_args__: ClassVar[Any] = CLUSTERED
    resume_id: str = Field(primary_key=True, sa_type=BinaryText)
    replaced_id: str = Field(primary_key=True, sa_type=BinaryText)


class ImportRequest(OfAccount, table=True):
    """A request to the importer about one file. It is deleted after it has been handled.

    `root` is the file's watched folder, so that importers of other folders skip it without a
    look-up.
    """

    __tablename__: ClassVar[str] = "import_requests"
    __table_args__: ClassVar[Any] = CLUSTERED
    claim_id: str = Field(primary_key=True, sa_type=BinaryText)
    action: str = Field(sa_type=BinaryText)
    requested_at: str = Field(sa_type=BinaryText)
    root: str | None = Field(default=None, sa_type=BinaryText)


class ImporterBase(SQLModel):
    """The report of an importer. `root` is escaped; `id` consists of 24 random hexadecimal digits.

    `findings` is JSON in the table. `waiting` is the last known number of files in the inbox.
    """

    id: str = Field(primary_key=True, sa_type=BinaryText)
    host: str = Field(sa_type=BinaryText)
    pid: int
    root: str = Field(sa_type=BinaryText)
    state: str = Field(sa_type=BinaryText)
    findings: Any = Field(sa_type=BinaryText)
    waiting: int | None = None
    started_at: str = Field(sa_type=BinaryText)


class ImporterProcess(ImporterBase, table=True):
    """The last report of an importer, which was stored at `seen_at`."""

    __tablename__: ClassVar[str] = "importers"
    seen_at: str = Field(sa_type=BinaryText)


class SearchProgress(OfAccount, table=True):
    """How far an account is indexed for search: all resumes up to the position `indexed_us`.

    `number` identifies the account inside the index, `last_seq` is the number of its last entry,
    and `entries` is the number of its entries.
    """

    __tablename__: ClassVar[str] = "search_progress"
    __table_args__: ClassVar[Any] = CLUSTERED
    number: int = Field(unique=True, sa_type=BigInteger)
    last_seq: int = Field(sa_type=BigInteger)
    entries: int
    indexed_us: int = Field(sa_type=BigInteger)


class SearchEntry(OfAccount, table=True):
    """A resume in the search index. In an account, `seq` increases with the ID and is never reused.

    Each engine has its own tables or columns for the tokens (resumes.store.search_engine).
    """

    __tablename__: ClassVar[str] = "search_entries"
    __table_args__: ClassVar[Any] = (
        Index("ix_search_entries_id", "account_id", "id", unique=True),
        CLUSTERED,
    )
    seq: int = Field(primary_key=True, sa_type=BigInteger)
    id: str = Field(sa_type=BinaryText)


class StoreFact(SQLModel, table=True):
    """A fact about the entire store.

    - `oldest_program`: the revision that a program must know to open the store
    - `closed_for`: the target that the store is being copied to; empty if it is not closed
    - `copy_id`: the random ID of the copy that closed the store
    - `probe`: a value that is written to test writing
    - `store_id`: a random ID of the store, which its watched folders, backups and copies also have
    - `forget_key`: the random key of the digests in `forgotten`; missing until the first digest
    - `contents`: the SHA-256 of the tables; only in an account file
    - `moving_to`: never empty, which keeps programs of version 1.0.0 from writing
    - `swept_at`: the time when `retention` last began to erase resumes or last erased some
    - `expired`: the number of resumes that `retention` has erased
    """

    __tablename__: ClassVar[str] = "store_facts"
    name: str = Field(primary_key=True, sa_type=BinaryText)
    value: str = Field(sa_type=BinaryText)


def _table(model: type[SQLModel]) -> Table:
    return model.metadata.tables[str(model.__tablename__)]


# The models' tables, for statements that use tables instead of models.
plans = _table(Plan)
accounts = _table(Account)
deleted_accounts = _table(DeletedAccount)
forgotten = _table(Forgotten)
account_usage = _table(AccountUsage)
api_keys = _table(ApiKey)
key_directory = _table(KeyDirectory)
resumes = _table(ResumeRow)
documents = _table(Document)
idempotency = _table(Idempotency)
imported_files = _table(ImportedFile)
imported_items = _table(ImportedItem)
imported_digests = _table(ImportedDigest)
replaced_resumes = _table(ReplacedResume)
import_requests = _table(ImportRequest)
importers = _table(ImporterProcess)
search_progress = _table(SearchProgress)
search_entries = _table(SearchEntry)
store_facts = _table(StoreFact)
metadata = SQLModel.metadata

ACCOUNT_TABLES = tuple(table for table in metadata.sorted_tables if "account_id" in table.columns)
"""The tables whose rows belong to accounts."""

# For lists of failed and held files. The index leaves out done files, which are nearly all files.
_NOT_DONE: Final = (
    "CREATE INDEX ix_imported_files_not_done ON imported_files"
    " (account_id, outcome, claim_id, reason) WHERE outcome != 'done'"
)

_PEOPLE: Final = (
    "CREATE INDEX ix_resumes_label ON resumes (account_id, label, id) WHERE label IS NOT NULL",
    # SQLite also reads the row unless the index contains the column of its condition.
    "CREATE INDEX ix_resumes_person ON resumes (account_id, person, id, is_person_indexed)"
    " WHERE is_person_indexed IS NOT NULL",
)

SEARCH_SQLITE: Final = (
    # Stores the entries of each token, but no text or positions. The tokenizer leaves tokens as is.
    "CREATE VIRTUAL TABLE search_tokens USING fts5(tokens, content='', contentless_delete=1,"
    """ detail=none, tokenize="ascii tokenchars '+#.'")""",
    "CREATE VIRTUAL TABLE search_words USING fts5vocab('search_tokens', 'instance')",
    # Allows `search_engine.merge` to merge two parts of similar size, instead of four.
    "INSERT INTO search_tokens (search_tokens, rank) VALUES ('usermerge', 2)",
)
SEARCH_POSTGRESQL: Final = (
    "ALTER TABLE search_entries ADD COLUMN words TEXT COLLATE \"C\" NOT NULL DEFAULT ''",
    # Keeps the rows short, so that a search reads few pages.
    "ALTER TABLE search_entries SET (toast_tuple_target = 128)",
    # With this cost, the planner uses the index instead of computing the tokens of rows.
    "CREATE FUNCTION search_keys(words TEXT) RETURNS TEXT[] LANGUAGE sql IMMUTABLE PARALLEL SAFE"
    " COST 1000 RETURN (SELECT string_to_array(words, ' '))",
    # The maximum size of the pending list in KiB; every search reads this list entirely.
    "CREATE INDEX ix_search_entries_words ON search_entries USING gin (search_keys(words))"
    " WITH (gin_pending_list_limit = 4096)",
    "ALTER INDEX ix_search_entries_words ALTER COLUMN 1 SET STATISTICS 0",
    'CREATE TABLE search_words (term TEXT COLLATE "C" PRIMARY KEY)',
)
"""The DDL of each engine's own search tables and columns (resumes.store.search_engine)."""

_NOT_IN_MODELS: Final = {
    "sqlite": (_NOT_DONE, *_PEOPLE, *SEARCH_SQLITE),
    "postgresql": (
        _NOT_DONE,
        *_PEOPLE,
        # With free space in the page, a changed row needs no new index entries (pitfalls S18).
        "ALTER TABLE account_usage SET (fillfactor = 50)",
        *SEARCH_POSTGRESQL,
    ),
}
"""DDL that is not in the models.

PostgreSQL options in a model would import its dialect with the tables, which takes 40 ms.
"""


NEWER_VERSION: Final = "a newer version of this program"
"""The target that programs of version 1.0.0 name in their error message about a moved store."""


def create_tables(connection: Connection) -> None:
    """Create the tables, the initial plans (docs/accounts.md) and the facts."""
    metadata.create_all(connection, checkfirst=False)
    for statement in _NOT_IN_MODELS[connection.dialect.name]:
        connection.exec_driver_sql(statement)
    sizes = {"free": 5, "pro": 50, "business": 1_000}
    connection.execute(
        insert(plans),
        [
            {"name": name, "max_resumes": size, "api_listing": name == "business"}
            for name, size in sizes.items()
        ],
    )
    facts = {
        "oldest_program": "",
        "closed_for": "",
        "probe": "",
        "store_id": secrets.token_hex(8),
        "moving_to": NEWER_VERSION,
        "swept_at": "",
        "expired": "0",
    }
    connection.execute(
        insert(store_facts), [{"name": name, "value": value} for name, value in facts.items()]
    )
