"""One library, durable commits, a log that is kept short, errors that tell no content, and faults of
the disk, the lock and the process."""

import asyncio
import errno
import fcntl
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from resumes.errors import OutcomeUnknown, StoreIncompatible, StoreUnavailable
from resumes.store import Store, accounts, creation, open_store, search
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Created
from resumes.store.sqlite import writer
from resumes.store.sqlite.driver import dbapi
from resumes.store.sqlite.store import explain, sqlite_engine
from resumes.store.sqlite.writer import message_of
from resumes.store.statements import driver
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    add_people,
    at_commit,
    free_maximum,
    ids_of,
    index_all,
    listed_ids,
    path_of,
    python_running,
    read_lines,
    rename,
    run_python,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.sqlite("its files, pragmas and locks")

AT_ONCE = ("CHECKPOINT_BYTES", "CHECKPOINT_INTERVAL_S", "TRUNCATE_BYTES", "TRUNCATE_INTERVAL_S")
"""Set to 0, they have the log copied into the store, and emptied, after each write."""


# The library

LIBRARIES = """
    import sys
    import resumes.store
    from resumes.store import open_store, accounts, api_keys, stored_resumes, migrations
    with open_store(sys.argv[1]) as store:
        accounts.create_account(store, "ana")
    print(*sorted(m for m in sys.modules if m.split(".")[-1] == "_sqlite3"))
"""
ADD = """
    import sys
    from resumes.store import open_store, accounts
    with open_store(sys.argv[1]) as store:
        accounts.create_account(store, "cy")
        print(*[a.name for a in accounts.list_accounts(store)])
"""


def test_s1_a_process_that_made_and_used_a_store_loaded_one_sqlite_library(url: str) -> None:
    run = run_python(LIBRARIES, url)
    assert len(run.stdout.split()) == 1, run.stdout + run.stderr
    assert dbapi.sqlite_version_info >= (3, 51, 3)  # without the WAL-reset bug


def test_s1_closing_one_store_leaves_the_locks_of_another_on_the_same_file(url: str) -> None:
    with open_store(url) as first:
        with open_store(url) as second:
            accounts.create_account(second, "ana")
        accounts.create_account(first, "bo")
        # Another process sees both, and may write: nothing was overwritten behind its back.
        run = run_python(ADD, url)
        assert run.stdout.split() == ["ana", "bo", "cy"], run.stderr
        assert [account.name for account in accounts.list_accounts(first)] == ["ana", "bo", "cy"]


# Connections


def test_a_commit_is_on_the_disk_before_it_is_answered_and_a_schema_runs_nothing_of_ours(
    store: Store,
) -> None:
    names = ("synchronous", "journal_mode", "foreign_keys", "trusted_schema")
    values = store.write(
        lambda session: [
            session.connection().exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names
        ]
    )
    assert values == [2, "wal", 1, 0]
    with sqlite_engine(path_of(store), transactions=False).connect() as connection:
        assert connection.exec_driver_sql("PRAGMA trusted_schema").scalar_one() == 0
    with pytest.raises(StoreUnavailable, match="readonly"), store.read() as connection:
        connection.execute(text("DELETE FROM plans"))


def test_a_store_that_another_program_has_locked_is_unavailable_until_it_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resumes.store.sqlite.writer.BUSY_TIMEOUT_S", 0.2)
    shell = dbapi.connect(path_of(store), isolation_level=None)
    shell.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        accounts.create_account(store, "ana")
    shell.close()
    assert accounts.create_account(store, "ana").name == "ana"


CLOSE_BELOW_READERS = """
    import sys, threading
    from sqlalchemy import text
    from resumes.errors import StoreUnavailable
    from resumes.store import open_store

    endless = text("WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
    store = open_store(sys.argv[1])
    begun = threading.Barrier(5)

    def read():
        try:
            store.ping()
            begun.wait()
            store.fetch(endless)
        except StoreUnavailable as error:
            sys.stdout.write(f"{error}\\n")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    store.close()
    for thread in threads:
        thread.join()
    read()
"""


def test_a_store_that_is_closed_while_threads_read_ends_their_reads(url: str) -> None:
    run = run_python(CLOSE_BELOW_READERS, url)
    assert run.returncode == 0, run.stderr
    said = run.stdout.splitlines()
    assert len(said) == 5
    assert all("interrupted" in line or "is closed" in line for line in said)


# The log


def test_s10_the_log_is_kept_short_and_emptied_when_it_is_too_long(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = path_of(store).with_name("resumes.db-wal")
    for name, value in zip(AT_ONCE, (100_000, 0.0, 10**9, 0.0), strict=True):
        monkeypatch.setattr(f"resumes.store.sqlite.store.{name}", value)
    for n in range(60):
        accounts.create_account(store, f"account-{n}")
    assert log.stat().st_size < 400_000
    for name in AT_ONCE:
        monkeypatch.setattr(f"resumes.store.sqlite.store.{name}", 0)
    accounts.create_account(store, "ana")
    wait_until(lambda: log.stat().st_size == 0)


# Errors


def test_an_error_tells_neither_what_was_to_be_written_nor_what_is_damaged(store: Store) -> None:
    insert = text("INSERT INTO plans (name) VALUES (:name)")
    with (
        pytest.raises(DBAPIError) as caught,
        sqlite_engine(path_of(store), transactions=True).connect() as connection,
    ):
        connection.execute(insert, {"name": "planted@example.com"})
    assert "NOT NULL" in str(caught.value)
    assert "planted" not in str(caught.value)
    assert message_of(caught.value) == "NOT NULL constraint failed: plans.api_listing"

    planted = "Could not decode to UTF-8 column 'title' with text 'Ada Example"
    for error in (dbapi.OperationalError(planted), DBAPIError("", {}, Exception(planted))):
        explained = explain(error, path_of(store))
        assert isinstance(explained, StoreIncompatible)
        assert "text that is not UTF-8" in explained.message
        assert "Ada" not in explained.message


# Writing: faults of the disk, of the lock, and of the process itself

FULL_DISK = """
    import resource, signal, sys
    from resumes.errors import OutcomeUnknown
    from resumes.store import open_store, accounts, creation
    from tests.support.resumes import a_resume

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open_store(sys.argv[1]) as store:
        account = accounts.create_account(store, "ana", plan="business")
        creation.create(store, account.id, [a_resume()])
        size = store.path.with_name(store.path.name + "-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, resource.RLIM_INFINITY))
        for _ in range(3):
            try:
                creation.create(store, account.id, [a_resume()])
            except OutcomeUnknown:
                print("unknown", flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if "go on" in sys.argv:
            print(type(creation.create(store, account.id, [a_resume()])[0]).__name__)
        else:
            import os
            os._exit(1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("should_continue", [True, False])
def test_s2_a_commit_that_failed_for_want_of_space_is_unknown_and_counter_and_rows_stay_equal(
    url: str, should_continue: bool
) -> None:
    run = run_python(FULL_DISK, url, "go on" if should_continue else "die")
    assert run.stdout.split() == ["unknown"] * 3 + ["Created"] * should_continue, run.stderr
    if should_continue:  # Told in a line, once until it is over.
        assert run.stderr.splitlines() == [
            "A commit failed and will be retried: disk I/O error",
            "The outcome of a batch of writes is unknown: disk I/O error",
            "Writes to the store succeed again",
        ]
    with open_store(url) as store:
        count = accounts.get_account(store, "ana").resume_count
        assert count in ((2,) if should_continue else (1, 2))
        assert len(ids_of(store, "ana")) == count
        assert accounts.list_wrong(store) == []


def raw_of(store: Store) -> Any:
    """The driver's connection that the store writes by."""
    return store.write(lambda session: driver(session.connection()))


def test_a_full_disk_is_known_to_have_stored_nothing(store: Store, ana: AccountInfo) -> None:
    raw = raw_of(store)
    (pages,) = raw.execute("PRAGMA page_count").fetchone()
    raw.execute(f"PRAGMA max_page_count={pages}")  # in the middle of a batch
    with pytest.raises(StoreUnavailable, match="full"):
        creation.create(store, ana.id, [a_resume() for _ in range(200)])
    raw.execute("PRAGMA max_page_count=1000000")
    assert listed_ids(store, ana) == []

    commits: list[int] = []

    def without_room() -> None:
        commits.append(1)
        raw.execute("PRAGMA max_page_count=1")
        raw.execute("CREATE TABLE more (text)")

    with (
        at_commit(without_room),
        pytest.raises(StoreUnavailable, match="full, so nothing was done"),
    ):
        creation.create(store, ana.id, [a_resume()])
    assert commits == [1]
    raw.execute("PRAGMA max_page_count=1000000")
    assert isinstance(creation.create(store, ana.id, [a_resume()])[0], Created)
    assert len(listed_ids(store, ana)) == 1
    assert accounts.list_wrong(store) == []


STOPPED_IN_A_WRITE = """
    import signal, sys, threading
    from resumes.store import open_store

    def stop(connection):
        print("inside", flush=True)
        # To this thread: sent to the process, another may take it while this one goes on.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return "done"

    with open_store(sys.argv[1]) as store:
        print(store.write(stop), flush=True)
"""


def test_s9_a_process_stopped_inside_a_write_costs_others_their_deadline_and_no_more(
    store: Store, url: str, ana: AccountInfo
) -> None:
    with python_running(STOPPED_IN_A_WRITE, url) as child:
        assert read_lines(child, 1) == ["inside\n"]
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        with pytest.raises(StoreUnavailable, match="busy"):
            creation.create(store, ana.id, [a_resume()], deadline_s=0.2)
        assert listed_ids(store, ana) == []
        child.send_signal(signal.SIGCONT)
        assert isinstance(creation.create(store, ana.id, [a_resume()])[0], Created)
        assert read_lines(child, 1) == ["done\n"]


def fail(*_: object) -> None:
    raise OSError("input/output error")


def test_a_failed_commit_that_nobody_expects_or_that_cannot_be_rolled_back_is_unknown(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down() -> None:
        raise ZeroDivisionError

    with at_commit(break_down), pytest.raises(OutcomeUnknown):
        store.write(rename("x"))
    assert [record.exc_info is not None for record in caplog.records] == [True, True]
    assert store.write(rename("x")) == "X"
    with at_commit(fail), at_commit(fail, "rollback"), pytest.raises(OutcomeUnknown):
        store.write(rename("x"))


# Searching


def test_a_commit_to_a_disk_that_is_read_only_by_then_is_unknown(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def utime(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patched:
        patched.setattr(os, "utime", utime)
        with pytest.raises(OutcomeUnknown):
            creation.create(store, ana.id, [a_resume()])
    assert isinstance(creation.create(store, ana.id, [a_resume("another")])[0], Created)


def test_after_a_commit_in_doubt_a_read_only_disk_is_known_to_store_nothing(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_open = os.open

    def open_read_only(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return really_open(path, flags, *more, **named)

    with at_commit(fail), pytest.raises(OutcomeUnknown):
        store.write(rename("x"))
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", open_read_only)
        with pytest.raises(StoreUnavailable, match="read-only, so nothing was done"):
            creation.create(store, ana.id, [a_resume()])
    (made,) = creation.create(store, ana.id, [a_resume()])
    assert isinstance(made, Created)
    assert listed_ids(store, ana) == [made.id]


def test_what_waits_is_taken_although_the_lock_failed_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, failures = fcntl.flock, iter([OSError("no locks available")])

    def fail_once(*arguments: int) -> None:
        for error in failures:
            raise error
        really(*arguments)

    monkeypatch.setattr(fcntl, "flock", fail_once)
    assert store.write(rename("x")) == "X"
    assert next(failures, None) is None


def test_what_was_applied_and_not_handed_over_is_rolled_back_and_unknown(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = free_maximum(store)

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        with monkeypatch.context() as patched:
            patched.setattr(writer, "_Begun", fail)
            with pytest.raises(OutcomeUnknown):
                await store.write_async(rename("lost"))

    asyncio.run(scenario())
    assert free_maximum(store) == before
    assert store.write(rename("next")) == "NEXT"


def test_words_that_must_not_occur_are_looked_up_in_small_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # FTS5 cannot be interrupted, and reads all entries of an excluded word (pitfalls S28).
    monkeypatch.setattr(search, "SMALL_UNIT", 8)
    monkeypatch.setattr(search, "LARGE_UNIT", 16)
    monkeypatch.setattr(search, "WINDOW_STEPS", 16 * 2 * search.EXCLUDED_STEPS)
    with open_store(f"sqlite:///{tmp_path}/resumes.db") as store:
        account = accounts.create_account(store, "ana", plan="business")
        add_people(store, account, *["Bo"] * 100)
        index_all(store)
        statements: list[str] = []
        with store.read() as connection:
            driver(connection).set_trace_callback(statements.append)
        found = search.find_page(store, account.id, "-bo -name:bo", timeout_s=60)
    assert found.page.entries == []
    ranges = [
        int(last) - int(first) + 1
        for statement in statements
        for first, last in re.findall(r"rowid BETWEEN (\d+) AND (\d+)\)", statement)
    ]
    assert sum(ranges) == 100
    assert max(ranges) == 16
