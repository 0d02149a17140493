"""How one process writes to a file: faults of its disk, its lock, and of the process itself."""

import asyncio
import errno
import fcntl
import os
import signal
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from resumes.errors import OutcomeUnknown, StoreUnavailable
from resumes.store import Store, accounts, creation, open_store
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Created
from resumes.store.sqlite import writer
from resumes.store.statements import driver
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    at_commit,
    free_maximum,
    ids_of,
    listed_ids,
    rename,
    run_python,
)

pytestmark = pytest.mark.sqlite("its writer thread")

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


def test_s2_a_commit_that_failed_for_want_of_space_is_unknown_and_the_store_goes_on(
    url: str,
) -> None:
    run = run_python(FULL_DISK, url, "go on")
    assert run.stdout.split() == ["unknown"] * 3 + ["Created"], run.stderr
    # Told in a line, once until it is over.
    assert run.stderr.splitlines() == [
        "A commit failed and will be retried: disk I/O error",
        "The outcome of a batch of writes is unknown: disk I/O error",
        "Writes to the store succeed again",
    ]
    with open_store(url) as store:
        assert len(ids_of(store, "ana")) == 2
        assert accounts.list_wrong(store) == []


def test_s2_a_process_that_dies_after_a_failed_commit_leaves_counter_and_rows_equal(
    url: str,
) -> None:
    assert run_python(FULL_DISK, url).stdout.split() == ["unknown"] * 3
    with open_store(url) as store:
        assert accounts.get_account(store, "ana").resume_count in (1, 2)
        assert accounts.list_wrong(store) == []


def raw_of(store: Store) -> Any:
    """The driver's connection that the store writes by."""
    return store.write(driver)


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


def test_what_nobody_expects_is_logged_whole(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with at_commit(fail), pytest.raises(OutcomeUnknown):
        store.write(rename("x"))
    assert [record.exc_info is not None for record in caplog.records] == [True, True]
    assert store.write(rename("x")) == "X"


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
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(STOPPED_IN_A_WRITE), url],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "inside\n"
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        with pytest.raises(StoreUnavailable, match="busy"):
            creation.create(store, ana.id, [a_resume()], deadline_s=0.2)
        assert listed_ids(store, ana) == []
        child.send_signal(signal.SIGCONT)
        assert isinstance(creation.create(store, ana.id, [a_resume()])[0], Created)
        assert child.stdout.readline() == "done\n"
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def fail(*_: object) -> None:
    raise OSError("input/output error")


def test_a_failed_commit_that_cannot_be_rolled_back_either_is_unknown(store: Store) -> None:
    with at_commit(fail), at_commit(fail, "rollback"), pytest.raises(OutcomeUnknown):
        store.write(rename("x"))


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
