"""The tables, as SQLModel models. Every query that concerns an account begins with its id.

`Store.session()` and the changes of `Store.write` give a `Session`; `select(Account)` and
`session.add(Account(…))` work as in any program that uses SQLModel. What is shown with figures of other
tables extends the model's base: `Plan` and `plans.PlanInfo` are both a `PlanBase`. Lists of many rows
select columns, and read them by name.

For speed, a few statements bypass SQLAlchemy when they run: those of a create, a page of the list, one
resume, and the look-up of an API key (`statements.Prepared`), the candidates of a search, and the rows of
a copy.

Tables of one account have `account_id` first in their primary key, which is what sharded
engines distribute by; `plans`, `accounts`, `deleted_accounts`, `forgotten`, `key_directory`,
`importers` and `store_facts` are small directories. There is no cascade from accounts: a migration that rebuilds
the table must not take resumes with it.
"""

import secrets
from typing import Any, ClassVar, Final

import sqlalchemy
from sqlalchemy import BigInteger, Connection, Index, LargeBinary, Table, TypeDecorator, insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import TypeCompiler
from sqlmodel import Field, SQLModel


class BinaryText(TypeDecorator[str]):
    """Text that is compared by its bytes, as on SQLite. Ids are cursors and must sort in the order of
    commits; PostgreSQL's default sorts by the locale of its database."""

    impl = sqlalchemy.Text
    cache_ok = True


@compiles(BinaryText, "postgresql")
def _text_postgresql(kind: BinaryText, compiler: TypeCompiler, **options: Any) -> str:
    # Only for columns: a value that is compared with a column takes its collation.
    return 'TEXT COLLATE "C"' if "type_expression" in options else "TEXT"


CLUSTERED: dict[str, Any] = {"sqlite_with_rowid": False}
"""Rows are stored in their primary key's tree, so a page of an account is one range of one tree."""


class PlanBase(SQLModel):
    """A plan: the limit and the API rights of its accounts. `max_resumes` None is unlimited.

    Resumes older than `keep_days` are erased (`retention`); None keeps them forever.
    """

    name: str = Field(primary_key=True, sa_type=BinaryText)
    max_resumes: int | None = None
    api_listing: bool = False
    keep_days: int | None = None


class Plan(PlanBase, table=True):
    """A plan as it is stored."""

    __tablename__: ClassVar[str] = "plans"


class AccountBase(SQLModel):
    """A tenant. `id` is random and never reused; `name` is typed in commands."""

    id: str = Field(primary_key=True, sa_type=BinaryText)
    name: str = Field(unique=True, sa_type=BinaryText)
    plan: str = Field(foreign_key="plans.name", sa_type=BinaryText)
    created_at: str = Field(sa_type=BinaryText)
    # Set first when an account is deleted, so that nothing is stored in it meanwhile.
    closed_at: str | None = Field(default=None, sa_type=BinaryText)
    # "replace": a create removes the older resumes of the same person.
    on_newer: str = Field(
        default="keep", sa_type=BinaryText, sa_column_kwargs={"server_default": "keep"}
    )
    # The number of January in what its analyzer writes; None: as the setting says.
    first_month: int | None = None
    # With blanks between them. Folders of these names still belong to it (docs/decisions/0022).
    former_names: str = Field(
        default="", sa_type=BinaryText, sa_column_kwargs={"server_default": ""}
    )

    @property
    def folders(self) -> list[str]:
        """Return the names of the folders that belong to it: its name, and its former names."""
        return [self.name, *self.former_names.split()]


class Account(AccountBase, table=True):
    """A tenant as it is stored."""

    __tablename__: ClassVar[str] = "accounts"


class DeletedAccount(SQLModel, table=True):
    """An account that this store has deleted, or has begun to. Never removed.

    A file may wait for an account that is not in `accounts`: it was deleted only if it is in this
    table. Otherwise the store was restored from an older backup (docs/decisions/0013).
    """

    __tablename__: ClassVar[str] = "deleted_accounts"
    id: str = Field(primary_key=True, sa_type=BinaryText)


class OfAccount(SQLModel):
    """The first column of the tables of an account, and the first of their keys."""

    account_id: str = Field(primary_key=True, foreign_key="accounts.id", sa_type=BinaryText)


class Forgotten(SQLModel, table=True):
    """A person who was erased and may not come back, as a keyed digest (`forgotten.Subject`)."""

    __tablename__: ClassVar[str] = "forgotten"
    __table_args__: ClassVar[Any] = CLUSTERED
    digest: bytes = Field(primary_key=True, sa_type=LargeBinary)
    forgotten_at: str = Field(sa_type=BinaryText)


class AccountUsage(OfAccount, table=True):
    """The account's counter and last id, in a separate row because every create rewrites it.

    The row is the account's lock: each write to an account takes it first. `last_id_us` is kept when
    resumes are deleted, so an id is never given twice.
    """

    __tablename__: ClassVar[str] = "account_usage"
    resume_count: int = 0
    last_id_us: int = Field(default=0, sa_type=BigInteger)


class ApiKeyBase(OfAccount):
    """An API key, without the secret. Lists show `masked`."""

    id: str = Field(primary_key=True, sa_type=BinaryText)
    name: str = Field(sa_type=BinaryText)
    masked: str = Field(sa_type=BinaryText)
    created_at: str = Field(sa_type=BinaryText)
    # None until the key was shown to its owner; such a key may be replaced.
    shown_at: str | None = Field(default=None, sa_type=BinaryText)
    last_used_at: str | None = Field(default=None, sa_type=BinaryText)
    expires_at: str | None = Field(default=None, sa_type=BinaryText)
    revoked_at: str | None = Field(default=None, sa_type=BinaryText)
    # The id of the key that was made when this one was rotated.
    replaced_by: str | None = Field(default=None, sa_type=BinaryText)
    is_read_only: bool = Field(
        default=False, sa_column_kwargs={"server_default": sqlalchemy.false()}
    )


class ApiKey(ApiKeyBase, table=True):
    """An API key as it is stored."""

    __tablename__: ClassVar[str] = "api_keys"


class KeyDirectory(SQLModel, table=True):
    """Maps a key's SHA-256 to its account: the only look-up that does not begin with an account."""

    __tablename__: ClassVar[str] = "key_directory"
    __table_args__: ClassVar[Any] = CLUSTERED
    key_hash: bytes = Field(primary_key=True, sa_type=LargeBinary)
    account_id: str = Field(sa_type=BinaryText)
    key_id: str = Field(sa_type=BinaryText)


class ResumeRow(OfAccount, table=True):
    """A stored resume as a list shows it. Narrow, so that a page of a list is a page of the tree.

    `person` is the digest of whose it is, None if unknown; `claim_id` the file that it was imported from;
    `first_month` the number of January in its dates, None if that was not known when it was created;
    `is_person_indexed` is True once the index of persons has the row, None before (`versions`).
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
    """A stored resume in full: the JSON text that the analyzer made, and the CRC-32 of its bytes.

    Text on every engine, so that key order survives. Not in `resumes`: SQLite compares keys of
    a clustered row by reading it whole, overflow pages and all.
    """

    __tablename__: ClassVar[str] = "documents"
    id: str = Field(primary_key=True, sa_type=BinaryText)
    crc32: int = Field(sa_type=BigInteger)
    document: str = Field(sa_type=BinaryText)


class Idempotency(OfAccount, table=True):
    """The resume that an Idempotency-Key created, written in that resume's transaction."""

    __tablename__: ClassVar[str] = "idempotency"
    __table_args__: ClassVar[Any] = (
        # For pruning by age, across accounts.
        Index("ix_idempotency_created_at", "created_at"),
        CLUSTERED,
    )
    key: str = Field(primary_key=True, sa_type=BinaryText)
    body_sha256: bytes = Field(sa_type=LargeBinary)
    resume_id: str = Field(sa_type=BinaryText)
    created_at: str = Field(sa_type=BinaryText)


class ImportedFileBase(OfAccount):
    """The outcome of a claimed file: one row for each claim that has one.

    `name` is the path below the watched folder, escaped for display.
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
    """The outcome of a claimed file as it is stored.

    `root` is the watched folder, None if unknown. `resume_id` is the resume that a file of one resume
    became or duplicates; it outlives the resume, as ImportedItem does. `source` is the first 64 KiB
    that were read, or what the analyzer wrote; None for files that are done. `items` is JSON
    (`import_ledger.Items`), None for a JSON file of one resume without warnings.
    """

    __tablename__: ClassVar[str] = "imported_files"
    __table_args__: ClassVar[Any] = CLUSTERED
    resume_id: str | None = Field(default=None, sa_type=BinaryText)
    source: bytes | None = Field(default=None, sa_type=LargeBinary)
    root: str | None = Field(default=None, sa_type=BinaryText)
    items: str | None = Field(default=None, sa_type=BinaryText)


class ImportedItem(OfAccount, table=True):
    """The outcome of each item of a bundle. It outlives its resume: recovery and release rely on it.

    Its primary key prevents two importers from importing an item of a claim twice.
    """

    __tablename__: ClassVar[str] = "imported_items"
    __table_args__: ClassVar[Any] = CLUSTERED
    claim_id: str = Field(primary_key=True, sa_type=BinaryText)
    item: int = Field(primary_key=True)
    outcome: str = Field(sa_type=BinaryText)
    resume_id: str = Field(sa_type=BinaryText)


class ImportedDigest(OfAccount, table=True):
    """The digest of each imported resume that is stored; deleted with the resume.

    `digest` is the SHA-256 of the JSON value's bytes without outer white space; an analyzed file has
    another row for its own bytes. With `is_older`, it is the content of an older version of the resume,
    which replaced it.
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
    """An older version of a person's resume that the create of `resume_id` deleted. Outlives both."""

    __tablename__: ClassVar[str] = "replaced_resumes"
    __table_args__: ClassVar[Any] = CLUSTERED
    resume_id: str = Field(primary_key=True, sa_type=BinaryText)
    replaced_id: str = Field(primary_key=True, sa_type=BinaryText)


class ImportRequest(OfAccount, table=True):
    """A request to the importer about one file; deleted when it was handled.

    `root` is the file's watched folder, so that importers of other folders skip it without a look-up.
    """

    __tablename__: ClassVar[str] = "import_requests"
    __table_args__: ClassVar[Any] = CLUSTERED
    claim_id: str = Field(primary_key=True, sa_type=BinaryText)
    action: str = Field(sa_type=BinaryText)
    requested_at: str = Field(sa_type=BinaryText)
    root: str | None = Field(default=None, sa_type=BinaryText)


class ImporterBase(SQLModel):
    """The report of an importer. `root` is escaped; `id` is 24 random hex digits.

    `findings` is JSON in the table. `waiting` counts the files in the inbox, as last known.
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
    """The last report of an importer, at `seen_at`."""

    __tablename__: ClassVar[str] = "importers"
    seen_at: str = Field(sa_type=BinaryText)


class SearchProgress(OfAccount, table=True):
    """How far an account is indexed for search: all resumes up to the position `indexed_us` are.

    `number` stands for the account inside the index; `last_seq` is the number of its last entry, and
    `entries` how many it has.
    """

    __tablename__: ClassVar[str] = "search_progress"
    __table_args__: ClassVar[Any] = CLUSTERED
    number: int = Field(unique=True, sa_type=BigInteger)
    last_seq: int = Field(sa_type=BigInteger)
    entries: int
    indexed_us: int = Field(sa_type=BigInteger)


class SearchEntry(OfAccount, table=True):
    """A resume in the search index. `seq` rises with the ids of an account and is never reused.

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
    """Facts about the store as a whole.

    `oldest_program`: the revision that a program has to know; `closed_for`: where the store is being
    copied, empty if it is not; `copy_id`: random, the copy that closed it; `probe`: written to test
    that writing works; `store_id`: random, by which watched folders know their store, the same in its
    backups and its copy; `forget_key`: random, the key of the digests in `forgotten`, once there was
    one; `contents`: only in an account file, the SHA-256 of its tables; `moving_to`: never empty,
    since version 1.0.0 writes to a store only while it is; `swept_at`: when `retention` last began to
    erase, or erased; `expired`: how many resumes it has erased.
    """

    __tablename__: ClassVar[str] = "store_facts"
    name: str = Field(primary_key=True, sa_type=BinaryText)
    value: str = Field(sa_type=BinaryText)


def _table(model: type[SQLModel]) -> Table:
    return model.metadata.tables[str(model.__tablename__)]


# The models' tables, for statements with SQLAlchemy's types.
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
"""The tables whose rows belong to an account, which is in `accounts`."""

# For lists of failed and held files. It leaves out done files, which are nearly all files.
_NOT_DONE: Final = (
    "CREATE INDEX ix_imported_files_not_done ON imported_files"
    " (account_id, outcome, claim_id, reason) WHERE outcome != 'done'"
)

_PEOPLE: Final = (
    "CREATE INDEX ix_resumes_label ON resumes (account_id, label, id) WHERE label IS NOT NULL",
    # SQLite reads the row, too, unless the index also has the column of its condition.
    "CREATE INDEX ix_resumes_person ON resumes (account_id, person, id, is_person_indexed)"
    " WHERE is_person_indexed IS NOT NULL",
)

SEARCH_SQLITE: Final = (
    # Only the entries of each token: neither text, nor positions. Its tokenizer leaves tokens as they are.
    "CREATE VIRTUAL TABLE search_tokens USING fts5(tokens, content='', contentless_delete=1,"
    """ detail=none, tokenize="ascii tokenchars '+#.'")""",
    "CREATE VIRTUAL TABLE search_words USING fts5vocab('search_tokens', 'instance')",
    # FTS5 lets us merge two parts of a size, not only four (`search_engine.merge`).
    "INSERT INTO search_tokens (search_tokens, rank) VALUES ('usermerge', 2)",
)
SEARCH_POSTGRESQL: Final = (
    "ALTER TABLE search_entries ADD COLUMN words TEXT COLLATE \"C\" NOT NULL DEFAULT ''",
    # Rows stay short, so that those of a search are in few pages.
    "ALTER TABLE search_entries SET (toast_tuple_target = 128)",
    # The cost keeps every plan from computing the tokens of rows: it has to use the index.
    "CREATE FUNCTION search_keys(words TEXT) RETURNS TEXT[] LANGUAGE sql IMMUTABLE PARALLEL SAFE"
    " COST 1000 RETURN (SELECT string_to_array(words, ' '))",
    # The size in KiB of what is written to the index at once; every search looks through it until then.
    "CREATE INDEX ix_search_entries_words ON search_entries USING gin (search_keys(words))"
    " WITH (gin_pending_list_limit = 1024)",
    "ALTER INDEX ix_search_entries_words ALTER COLUMN 1 SET STATISTICS 0",
    'CREATE TABLE search_words (term TEXT COLLATE "C" PRIMARY KEY)',
)
"""The tables of the search index that each engine has for itself (resumes.store.search_engine)."""

_NOT_IN_MODELS: Final = {
    "sqlite": (
        _NOT_DONE,
        *_PEOPLE,
        *SEARCH_SQLITE,
    ),
    "postgresql": (
        _NOT_DONE,
        *_PEOPLE,
        # With room in the page to rewrite a row, no index has to change (pitfalls S18).
        "ALTER TABLE account_usage SET (fillfactor = 50)",
        *SEARCH_POSTGRESQL,
    ),
}
"""DDL beyond the models.

Options of PostgreSQL in a model would import its dialect with the tables, which takes 40 ms.
"""


NEWER_VERSION: Final = "a newer version of this program"
"""What running programs of version 1.0.0 say that the store is being moved to."""


def create_tables(connection: Connection) -> None:
    """Create the tables, the plans that a new store has (docs/accounts.md), and its facts."""
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
