"""Rows of the ledger and of the importers' directory, with defaults for what does not matter;
and writes that show what the lane does."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Connection, text

from resumes import analyzer
from resumes.store import Store, ledger
from resumes.store.accounts import AccountInfo
from resumes.store.creating import NewResume
from resumes.store.importers import Finding, Importer, State
from resumes.store.ledger import FileOutcome, FileRow, FileVerdict, Verdict
from resumes.store.locks import FileLock
from resumes.store.postgresql.lanes import WRITERS, AccountLanes
from resumes.store.schema import metadata
from resumes.store.sqlite.database import SqliteDatabase, sqlite_engine
from tests.resumes.builders import a_claim, a_document

MakeAccount = Callable[..., AccountInfo]
"""What the fixture `an_account` is."""


def sqlite_of(store: Store) -> SqliteDatabase:
    """The file below the store, for tests of what only a file has."""
    assert isinstance(store.database, SqliteDatabase)
    return store.database


def dialect_of(store: Store) -> Any:
    """By which the store's writes are committed: its `do_commit` may be made to wait or fail."""
    lane = store.database.lane
    engine = lane._engine if isinstance(lane, AccountLanes) else sqlite_of(store)._write_engine
    return engine.dialect


def lose_table(store: Store, name: str) -> None:
    """The store has no table of this name any more."""

    def rename_table(connection: Connection, requests: Sequence[str]) -> list[None]:
        connection.execute(text(f"ALTER TABLE {requests[0]} RENAME TO elsewhere"))
        return [None]

    store.write(rename_table, name)


def a_file(
    store: Store,
    account: AccountInfo,
    claim_id: str = "1" * 24,
    outcome: FileOutcome = FileOutcome.FAILED,
    *,
    reason: str | None = "invalid_json",
    root: str | None = "/srv/inbox",
    items: str | None = None,
) -> FileRow:
    """A file of the ledger that came to this outcome."""
    claim = a_claim(claim_id)._replace(root=root, items=items)
    ledger.record(store, FileVerdict(account.id, claim, Verdict(outcome, reason, "why")))
    return ledger.get_file(store, claim_id)


def an_importer(
    importer_id: str = "1" * 24,
    *,
    root: str = "/srv/inbox",
    state: State = State.OK,
    findings: tuple[Finding, ...] = (),
    waiting: int | None = 3,
) -> Importer:
    """What an importer says of itself."""
    return Importer(
        id=importer_id,
        host="host",
        pid=4_711,
        root=root,
        state=state,
        findings=findings,
        waiting=waiting,
        started_at="2027-01-15T08:00:00.000Z",
    )


def rename(connection: Connection, requests: Sequence[str]) -> list[str]:
    """A write whose requests `bad` fail on data, as a constraint would."""
    for request in requests:
        if request == "bad":
            connection.execute(text("INSERT INTO plans (name) VALUES ('free')"))
        connection.execute(text("UPDATE plans SET max_resumes = max_resumes + 1"))
    return [request.upper() for request in requests]


def hold_lane(store: Store) -> tuple[threading.Event, threading.Thread]:
    """All that writes is busy until the event is set."""
    writers = 1 if store.path else WRITERS
    entered, go_on = threading.Barrier(writers + 1), threading.Event()

    def wait(_: Connection, requests: Sequence[str]) -> list[None]:
        entered.wait(60)
        go_on.wait(60)
        return [None] * len(requests)

    thread = threading.Thread(target=lambda: store.write_all(wait, ["hold"] * writers))
    thread.start()
    entered.wait(60)
    return go_on, thread


class Busy:
    """What others hold while they write to all of the store: nobody else writes meanwhile."""

    def __init__(self, store: Store) -> None:
        self._path = store.path
        self._url = store.url
        self._file: FileLock | None = None
        self._connection: psycopg.Connection[object] | None = None

    def acquire(self) -> None:
        """It is held until it is released."""
        if self._path is not None:
            self._file = FileLock(self._path.with_name(f"{self._path.name}.lane"))
            assert self._file.acquire(wait_s=5)
        else:
            self._connection = psycopg.connect(self._url)
            tables = ", ".join(metadata.tables)
            self._connection.execute(f"LOCK TABLE {tables} IN EXCLUSIVE MODE".encode())

    def release(self) -> None:
        """Others write again. Safe to call twice."""
        for held in (self._file, self._connection):
            if held is not None:
                held.close()
        self._file = self._connection = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """It is held during the block."""
        self.acquire()
        try:
            yield
        finally:
            self.release()


def a_person(
    name: str | None = None, *, title: str | None = None, email: str | None = None
) -> NewResume:
    """A resume that is searched by these alone."""
    header = {"name": name, "email": email}
    return NewResume(analyzer.parse(a_document(title=title, header=header)))


def indexed_pieces(store: Store) -> list[str]:
    """The pieces that the search index holds for any resume, as it holds them."""
    if store.path is None:
        with store.read() as connection:
            pieces = text("SELECT DISTINCT unnest(pieces)::text FROM search_pieces")
            return list(connection.execute(pieces).scalars())
    with sqlite_engine(sqlite_of(store).path, transactions=False).connect() as connection:
        connection.exec_driver_sql(
            "CREATE VIRTUAL TABLE temp.pieces USING fts5vocab('main', 'search_pieces', 'instance')"
        )
        rows = connection.exec_driver_sql("SELECT DISTINCT term FROM temp.pieces ORDER BY term")
        return list(rows.scalars())


def free_maximum(store: Store) -> int:
    with store.read() as connection:
        row = connection.execute(text("SELECT max_resumes FROM plans WHERE name = 'free'"))
        return int(row.scalar_one())
