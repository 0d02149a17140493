"""Accounts, resumes, files and importers for tests; damage and waiting below a store; and what a
store holds."""

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Engine, event, text
from sqlmodel import Session

from resumes import analyzer
from resumes.errors import StoreUnavailable
from resumes.output_files import OutputFile
from resumes.store import (
    Store,
    accounts,
    api_keys,
    creation,
    forgotten,
    import_history,
    import_ledger,
    import_requests,
    importers,
    integrity,
    plans,
    stored_resumes,
)
from resumes.store.accounts import AccountInfo
from resumes.store.addresses import SqliteAddress, parse_address
from resumes.store.creation import Created, NewResume
from resumes.store.entry import Entry
from resumes.store.forgotten import Subject
from resumes.store.import_history import FileRow
from resumes.store.import_ledger import FileOutcome, Verdict
from resumes.store.import_requests import RequestKind
from resumes.store.importers import ImporterFinding, ImporterReport, ImporterState
from resumes.store.integrity import Flaw
from resumes.store.locks import FileLock
from resumes.store.plans import PlanChange
from resumes.store.postgresql.connection import postgres_engine
from resumes.store.postgresql.writer import THREADS
from resumes.store.schema import metadata
from resumes.store.search_index import Indexer, list_behind
from resumes.store.sqlite.store import sqlite_engine
from resumes.store.store import WRITE_DEADLINE_S, session_on, set_facts
from resumes.store.stored_resumes import Page
from resumes.store.transfer.account_files import contents_of, export_account
from resumes.store.transfer.copies import TABLES, TableDigest, digest_tables
from resumes.store.write_queue import Proof, Write
from tests.support.resumes import a_claim, a_document, a_resume

MakeAccount = Callable[..., AccountInfo]
"""What the fixture `an_account` is."""

NOW = "2027-01-15T08:00:00.000Z"


# Resumes


def made_ids(outcomes: Sequence[creation.Outcome]) -> list[str]:
    """The ids of the resumes that were made."""
    return [one.id for one in outcomes if isinstance(one, Created)]


def add_resumes(store: Store, account: AccountInfo, count: int) -> list[str]:
    """The ids of so many new resumes, `Ada 0` and so on."""
    new = [a_resume(f"Ada {number}") for number in range(count)]
    return made_ids(creation.create(store, account.id, new))


def import_resumes(store: Store, account: AccountInfo, count: int) -> list[str]:
    """The ids of so many resumes that an importer brought in from one file."""
    new = [
        a_resume(f"Ada {number}", item=number, with_digest=True) for number in range(1, count + 1)
    ]
    return made_ids(creation.create(store, account.id, new, claim=a_claim()))


def a_person(
    name: str | None = None, *, title: str | None = None, email: str | None = None
) -> NewResume:
    """A resume that is searched by these alone."""
    header = {"name": name, "email": email}
    return NewResume(analyzer.parse(a_document(title=title, header=header)))


def add_people(store: Store, account: AccountInfo, *names: str) -> list[str]:
    """The ids of new resumes that are searched by these names alone."""
    return made_ids(creation.create(store, account.id, [a_person(name) for name in names]))


def entries_of(read: Callable[..., Page], *, after: str = "") -> Iterator[Entry]:
    """Those of all pages from a cursor on; `read(cursor=…)` gives one."""
    cursor: str | None = after
    while cursor is not None:
        page = read(cursor=cursor)
        yield from page.entries
        cursor = page.cursor


def listed_ids(store: Store, account: AccountInfo) -> list[str]:
    """The ids of the account's first hundred resumes, in order."""
    return [entry.id for entry in stored_resumes.list_page(store, account.id, limit=100).entries]


def ids_of(store: Store, account_name: str) -> list[str]:
    """The ids of the first hundred resumes of the account of this name, in order."""
    return listed_ids(store, accounts.get_account(store, account_name))


def index_all(store: Store) -> None:
    """Have all that is stored in the search index."""
    indexer = Indexer(store)
    while list_behind(store):
        indexer.step()


def indexed_words(store: Store) -> set[str]:
    """The tokens of all resumes in the search index."""
    if store.path is None:
        with store.read() as connection:
            words = text("SELECT DISTINCT unnest(search_keys(words)) FROM search_entries")
            return set(connection.execute(words).scalars())
    with store.read() as connection:
        rows = connection.exec_driver_sql("SELECT DISTINCT term FROM search_words")
        return set(rows.scalars())


# What importers bring, and what they are


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
    claim = a_claim(claim_id, root=root, items=items)
    import_ledger.record(store, account.id, claim, Verdict(outcome, reason, "why"))
    return import_history.get_file(store, claim_id)


def an_importer(
    importer_id: str = "1" * 24,
    *,
    root: str = "/srv/inbox",
    state: ImporterState = ImporterState.OK,
    findings: tuple[ImporterFinding, ...] = (),
    waiting: int | None = 3,
) -> ImporterReport:
    """What an importer says of itself."""
    return ImporterReport(
        id=importer_id,
        host="host",
        pid=4_711,
        root=root,
        state=state,
        findings=findings,
        waiting=waiting,
        started_at=NOW,
    )


# Accounts as files


def exported(store: Store, path: Path, name: str = "ana", *, with_keys: bool = False) -> Path:
    """The account is in the file, which is replaced."""
    output = OutputFile(path, remedy="", may_replace=lambda _: True)
    export_account(store, name, output, with_keys=with_keys)
    return path


def tamper(file: Path, *statements: str, seals: bool = True, **values: Any) -> Path:
    """The statements are run in an account file, which shows nothing of it if it `seals`."""
    with sqlite_engine(file, transactions=False).connect() as connection:
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        for statement in statements:
            connection.execute(text(statement), values)
        if seals:
            digests = digest_tables(connection)
            set_facts(session_on(connection), contents=contents_of(digests))
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
    return file


# Whole stores

NAMES = ("Zoë Ünal", "李娜", "Ada \N{GRINNING FACE}", "o'Neil \\N \t x", 'quo"te')


LABELS = (None, "class-2026", "Zoë 😀 'x' \\N")


def fill_store(store: Store, *, resumes: int = 10, names: tuple[str, ...] = NAMES) -> None:
    """Two accounts with so many resumes each, and every other table has rows, too."""
    plans.set_plan_limits(store, PlanChange("business", None, keep_days=plans.MAX_KEEP_DAYS))
    accounts.create_account(store, "gone")
    accounts.delete_account(store, "gone")
    forgotten.remember(store, [Subject.of_email("gone@example.com")])
    for account_name in ("ana", "bob"):
        account = accounts.create_account(store, account_name, plan="business")
        api_keys.create_key(store, account_name)
        batch = [
            a_resume(
                f"{names[number % len(names)]} {number}",
                item=number + 1,
                with_digest=True,
                idempotency=f"key-{number}",
            )._replace(label=LABELS[number % len(LABELS)])
            for number in range(resumes)
        ]
        claim = a_claim(account.id[:12].ljust(24, "a"))
        first, *_ = creation.create(store, account.id, batch, claim=claim)
        assert isinstance(first, Created)
        stored_resumes.delete_resume(store, account.id, first.id)
        accounts.set_options(store, account_name, {"on_newer": "replace"})
        newest = a_resume(f"{names[(resumes - 1) % len(names)]} {resumes - 1}")
        creation.create(store, account.id, [newest])
        failed = a_file(store, account, account.id[:12].ljust(24, "b"), FileOutcome.FAILED)
        import_requests.request_files(store, [failed], RequestKind.RETRY)
    accounts.set_options(store, "ana", {"on_newer": "keep"})
    importers.register(store, an_importer())
    index_all(store)


def held_by(store: Store) -> list[TableDigest]:
    """What each table of the store holds."""
    with store.read() as connection:
        return digest_tables(connection)


def count_rows(store: Store, table: str) -> int:
    """How many rows the table has."""
    with store.read() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def count_all(store: Store) -> dict[str, int]:
    """How many rows each table has that is moved with a store."""
    return {table.name: count_rows(store, table.name) for table in TABLES}


def names_in(folder: Path) -> list[str]:
    """What the folder holds, by name."""
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def refused_for_want_of_room() -> Iterator[None]:
    """The disk has too little room for what is begun in the block, which is refused and says so."""
    why = r"has 0\.1 MB of free space, but 0\.[2-9] MB is needed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000))
        with pytest.raises(StoreUnavailable, match=why):
            yield


# Damage


def damage(store: Store, *statements: str, **values: Any) -> None:
    """The statements are run by the engine itself, which is told to let foreign keys pass."""
    address = parse_address(store.url)
    if isinstance(address, SqliteAddress):
        engine = sqlite_engine(address.path, transactions=False)
        freely = "PRAGMA foreign_keys=OFF"
    else:
        engine = postgres_engine(address, timeout_s=10)
        freely = "SET session_replication_role = replica"
    with engine.connect() as connection:
        connection.exec_driver_sql(freely)
        for statement in statements:
            assert connection.execute(text(statement), values).rowcount > 0, statement
    engine.dispose()


REFUSALS = {
    "sqlite": (
        "CREATE TRIGGER refuses BEFORE INSERT ON resumes WHEN NEW.name = 'Refused'"
        " BEGIN SELECT RAISE(ABORT, 'not in this database'); END",
        "DROP TRIGGER refuses",
    ),
    "postgresql": (
        "ALTER TABLE resumes ADD CONSTRAINT refuses CHECK (name <> 'Refused')",
        "ALTER TABLE resumes DROP CONSTRAINT refuses",
    ),
}


@contextmanager
def refusing(store: Store) -> Iterator[None]:
    """The database refuses resumes of this one name."""
    address = parse_address(store.url)
    if isinstance(address, SqliteAddress):
        engine, name = sqlite_engine(address.path, transactions=False), "sqlite"
    else:
        engine, name = postgres_engine(address, timeout_s=10), "postgresql"
    begin, end = REFUSALS[name]
    with engine.connect() as connection:
        connection.exec_driver_sql(begin)
        yield
        connection.exec_driver_sql(end)
    engine.dispose()


def find_flaws(store: Store) -> list[Flaw]:
    """All that is wrong with the store and its accounts."""
    return [
        *integrity.iter_damage(store),
        *(one for checked in integrity.iter_accounts(store) for one in checked.flaws),
    ]


# Writes


@dataclass(frozen=True)
class Of:
    """A request of an account."""

    account_id: str
    number: int = 0


class Seen:
    """A write that notes its batches, and in which thread they were applied."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.threads: list[str] = []

    def __call__(self, _: Connection, requests: Sequence[Any]) -> Sequence[Any]:
        self.batches.append(list(requests))
        self.threads.append(threading.current_thread().name)
        return requests

    @property
    def sizes(self) -> list[int]:
        """How large each batch was."""
        return [len(batch) for batch in self.batches]


def execute(store: Store, statement: str) -> None:
    """The statement is run where the store writes, and committed."""
    store.write(lambda session: session.connection().execute(text(statement)))


def lose_table(store: Store, name: str) -> None:
    """The store has no table of this name any more."""
    execute(store, f"ALTER TABLE {name} RENAME TO elsewhere")


def rename(name: str) -> Callable[[Session], str]:
    """A change that fails on data for `bad`, as a constraint would."""

    def change(session: Session) -> str:
        connection = session.connection()
        if name == "bad":
            connection.execute(text("INSERT INTO plans (name) VALUES ('free')"))
        connection.execute(text("UPDATE plans SET max_resumes = max_resumes + 1"))
        return name.upper()

    return change


def batched(
    apply: Any, request: Any, *, deadline_s: float = WRITE_DEADLINE_S, proof: Proof | None = None
) -> Write:
    """A write that is applied together with others of its kind."""
    deadline = time.monotonic() + deadline_s
    return Write(apply, request, deadline=deadline, account_id=request.account_id, proof=proof)


def write_batched(store: Store, apply: Any, request: Any, **options: Any) -> Any:
    """The result of a write that is applied together with others of its kind."""
    (outcome,) = store.commit([batched(apply, request, **options)])
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def end_thread(store: Store, thread: threading.Thread) -> None:
    """The thread has ended by an error where it waits, which nothing there handles."""
    assert thread.ident is not None
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    shown, threading.excepthook = threading.excepthook, lambda _: None
    try:
        raise_in(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
        while thread.is_alive():
            with contextlib.suppress(StoreUnavailable):  # until each has been woken by one
                store.write(lambda connection: None, deadline_s=0.1)
    finally:
        threading.excepthook = shown


def hold_writer(store: Store) -> tuple[threading.Event, threading.Thread]:
    """All that writes is busy until the event is set."""
    writers = 1 if store.path else THREADS
    entered, go_on = threading.Barrier(writers + 1), threading.Event()

    def wait(_: Connection, requests: Sequence[Of]) -> list[None]:
        entered.wait(60)
        go_on.wait(60)
        return [None] * len(requests)

    writes = [batched(wait, Of(f"hold {number}")) for number in range(writers)]
    thread = threading.Thread(target=lambda: store.commit(writes))
    thread.start()
    entered.wait(60)
    return go_on, thread


@contextmanager
def at_commit(action: Callable[[], object], what: str = "commit") -> Iterator[None]:
    """The action is called when a transaction is about to be committed, or to be rolled back for
    "rollback", in the thread that does so."""

    def before(_: Connection) -> None:
        action()

    event.listen(Engine, what, before)
    try:
        yield
    finally:
        event.remove(Engine, what, before)


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
            self._file = FileLock(self._path.with_name(f"{self._path.name}.writer"))
            assert self._file.acquire(timeout_s=5)
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


def free_maximum(store: Store) -> int:
    """How many resumes the plan `free` allows."""
    return plans.get_plan(store, "free").max_resumes or 0


def path_of(store: Store) -> Path:
    """The file of a store that is one."""
    assert store.path is not None
    return store.path


def run_python(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The code, run to its end in a process of its own, from the root of the checkout."""
    return subprocess.run(
        _python(code, arguments), **_FROM_ROOT, capture_output=True, timeout=60, check=False
    )


@contextmanager
def python_running(code: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """The code, run as by `run_python` during the block, and killed at its end."""
    command = _python(code, arguments)
    with subprocess.Popen(command, **_FROM_ROOT, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def read_lines(process: "subprocess.Popen[str]", count: int) -> list[str]:
    """So many lines that the process prints."""
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(count)]
    assert all(lines), "it has ended"
    return lines


def _python(code: str, arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code), *arguments]


_ROOT = Path(__file__).parents[3]
_FROM_ROOT: dict[str, Any] = {
    "env": {**os.environ, "PYTHONPATH": str(_ROOT)},
    "cwd": _ROOT,
    "text": True,
}
