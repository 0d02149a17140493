import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, text

from resumes.errors import NotFound, OutcomeUnknown, StoreUnavailable
from resumes.store import Store, accounts, counters, creating, listing, open_store
from resumes.store.accounts import AccountInfo
from resumes.store.creating import Created, Creation, NewResume
from resumes.store.engine import each
from resumes.store.writes import Write
from tests.resumes.builders import a_resume
from tests.resumes.store.builders import free_maximum, hold_lane, rename, sqlite_of
from tests.resumes.store.sqlite.processes import run_python

pytestmark = pytest.mark.sqlite("its lane")

MakeAccount = Callable[..., AccountInfo]


def test_writes_that_wait_together_are_committed_together(store: Store) -> None:
    sizes: list[int] = []

    def count(_: Connection, requests: Sequence[str]) -> Sequence[str]:
        sizes.append(len(requests))
        return requests

    go_on, holder = hold_lane(store)
    threads = [threading.Thread(target=lambda: store.write(count, "x")) for _ in range(20)]
    for thread in threads:
        thread.start()
    while len(sqlite_of(store).lane._waiting) < 20:
        threading.Event().wait(0.001)
    go_on.set()
    for thread in [holder, *threads]:
        thread.join()
    assert sizes == [20]


def test_s7_one_bad_row_does_not_fail_the_rest_of_its_batch(store: Store) -> None:
    go_on, holder = hold_lane(store)
    answers: dict[str, Any] = {}

    def write(request: str) -> None:
        try:
            answers[request] = store.write(rename, request)
        except StoreUnavailable as error:
            answers[request] = error

    threads = [threading.Thread(target=write, args=[name]) for name in ("a", "bad", "c")]
    for thread in threads:
        thread.start()
    while len(sqlite_of(store).lane._waiting) < 3:
        threading.Event().wait(0.001)
    go_on.set()
    for thread in [holder, *threads]:
        thread.join()
    assert (answers["a"], answers["c"]) == ("A", "C")
    assert isinstance(answers["bad"], StoreUnavailable)
    assert free_maximum(store) == 7


def test_s7_the_lane_outlives_an_error_that_it_does_not_know(store: Store) -> None:
    def broken(_: Connection, requests: Sequence[str]) -> list[str]:
        raise ZeroDivisionError(requests[0])

    with pytest.raises(ZeroDivisionError):
        store.write(broken, "x")
    assert store.write(rename, "next") == "NEXT"
    assert store.lane.is_alive


def test_s3_a_write_that_is_overdue_before_its_turn_is_not_done(store: Store) -> None:
    go_on, holder = hold_lane(store)
    before = free_maximum(store)
    answers: list[Exception] = []

    def write() -> None:
        try:
            store.write(rename, "late", deadline_s=0.01)
        except StoreUnavailable as error:
            answers.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    threading.Event().wait(0.05)
    go_on.set()
    thread.join()
    holder.join()
    assert len(answers) == 1
    assert free_maximum(store) == before


def test_a_refusal_takes_nothing_of_its_batch_along(store: Store) -> None:
    @each
    def refuse(connection: Connection, request: str) -> str:
        connection.execute(
            text("UPDATE plans SET max_resumes = 77 WHERE name = :n"), {"n": request}
        )
        if request == "free":
            raise NotFound("refused")
        return request

    def both(connection: Connection, batches: Sequence[list[str]]) -> list[Any]:
        return [refuse(connection, batch) for batch in batches]

    kept, refused = store.write(both, ["pro", "free"])
    assert kept == "pro"
    assert isinstance(refused, NotFound)
    assert free_maximum(store) == 5


def test_s2_a_failed_commit_is_proved_gone_by_a_later_one_and_doubles_nothing(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = an_account()
    dialect = sqlite_of(store)._write_engine.dialect
    really, failures = dialect.do_commit, iter([True])

    def fail_once(connection: Any) -> None:
        if next(failures, False):
            raise OSError("input/output error")
        really(connection)

    monkeypatch.setattr(dialect, "do_commit", fail_once)
    (outcome,) = creating.create(store, account.id, [a_resume()])
    assert isinstance(outcome, Created)
    assert [e.id for e in listing.list_page(store, account.id).entries] == [outcome.id]


FULL_DISK = """
    import resource, signal, sys
    from resumes.errors import OutcomeUnknown
    from resumes.store import open_store, accounts, creating
    from tests.resumes.builders import a_resume

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open_store(sys.argv[1]) as store:
        account = accounts.create_account(store, "ana", plan="business")
        creating.create(store, account.id, [a_resume()])
        size = store.database.path.with_name(store.database.path.name + "-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, resource.RLIM_INFINITY))
        for _ in range(3):
            try:
                creating.create(store, account.id, [a_resume()])
            except OutcomeUnknown:
                print("unknown", flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if "go on" in sys.argv:
            print(type(creating.create(store, account.id, [a_resume()])[0]).__name__)
        else:
            import os
            os._exit(1)
"""


def test_s2_a_commit_that_failed_for_want_of_space_is_unknown_and_the_store_goes_on(
    url: str,
) -> None:
    run = run_python(FULL_DISK, url, "go on")
    assert run.stdout.split() == ["unknown"] * 3 + ["Created"], run.stderr
    with open_store(url) as store:
        account = accounts.get_account(store, "ana")
        assert len(listing.list_page(store, account.id).entries) == 2
        assert counters.list_wrong(store) == []


def test_what_a_disk_refuses_is_told_in_a_line_once_until_it_is_over(url: str) -> None:
    assert run_python(FULL_DISK, url, "go on").stderr.splitlines() == [
        "A commit failed, and is tried once more: disk I/O error",
        "Whether the writes of a batch are stored is unknown: disk I/O error",
        "Writes to the store succeed again",
    ]


def test_what_nobody_expects_is_logged_whole(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(sqlite_of(store)._write_engine.dialect, "do_commit", fail)
        with pytest.raises(OutcomeUnknown):
            store.write(rename, "x")
    assert [record.exc_info is not None for record in caplog.records] == [True, True]
    assert store.write(rename, "x") == "X"


def test_s2_a_process_that_dies_after_a_failed_commit_leaves_counter_and_rows_equal(
    url: str,
) -> None:
    assert run_python(FULL_DISK, url).stdout.split() == ["unknown"] * 3
    with open_store(url) as store:
        account = accounts.get_account(store, "ana")
        assert account.resume_count in (1, 2)
        assert counters.list_wrong(store) == []


def test_a_full_disk_in_the_middle_of_a_batch_is_unavailable_and_nothing_of_it_is_stored(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    raw = sqlite_of(store)._lane_connection.connection.driver_connection
    assert raw is not None
    (pages,) = raw.execute("PRAGMA page_count").fetchone()
    raw.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreUnavailable, match="full"):
        creating.create(store, account.id, [a_resume() for _ in range(200)])
    assert listing.list_page(store, account.id).entries == []
    raw.execute("PRAGMA max_page_count=1000000")
    assert isinstance(creating.create(store, account.id, [a_resume()])[0], Created)
    assert counters.list_wrong(store) == []


STOPPED_IN_THE_LANE = """
    import signal, sys, threading
    from resumes.store import open_store

    def stop(connection, requests):
        print("inside", flush=True)
        # To this thread: sent to the process, another may take it while this one goes on.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return requests

    with open_store(sys.argv[1]) as store:
        print(store.write(stop, "done"), flush=True)
"""


def test_s9_a_process_stopped_inside_the_lane_costs_others_their_deadline_and_no_more(
    store: Store, url: str, an_account: MakeAccount
) -> None:
    account = an_account()
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(STOPPED_IN_THE_LANE), url],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "inside\n"
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        with pytest.raises(StoreUnavailable, match="busy"):
            creating.create(store, account.id, [a_resume()], deadline_s=0.2)
        assert listing.list_page(store, account.id).entries == []
        child.send_signal(signal.SIGCONT)
        assert isinstance(creating.create(store, account.id, [a_resume()])[0], Created)
        assert child.stdout.readline() == "done\n"
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_s9_no_write_runs_while_the_lane_is_left(store: Store) -> None:
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(store.write(rename, "later")))
    with store.lane.left():
        thread.start()
        thread.join(0.1)
        assert answers == []
    thread.join(60)
    assert answers == ["LATER"]


def test_a_closed_store_takes_no_writes(url: str) -> None:
    store = open_store(url)
    store.close()
    with pytest.raises(StoreUnavailable):
        store.write(rename, "x")


def test_what_was_waiting_when_the_store_closes_is_written(url: str) -> None:
    store = open_store(url)
    go_on, holder = hold_lane(store)
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(store.write(rename, "waiting")))
    thread.start()
    while not sqlite_of(store).lane._waiting:
        threading.Event().wait(0.001)
    go_on.set()
    store.close()
    thread.join()
    holder.join()
    assert answers == ["WAITING"]


def test_withdrawing_tells_whether_the_write_was_still_waiting(store: Store) -> None:
    go_on, holder = hold_lane(store)
    write = Write(rename, "x", deadline=1e18, mailbox=store._threads, waiter=threading.Event())
    store.lane.offer(write)
    assert store.lane.withdraw(write)
    assert not store.lane.withdraw(write)
    go_on.set()
    holder.join()


def test_unknown_is_told_apart_from_not_done() -> None:
    assert not isinstance(OutcomeUnknown(), StoreUnavailable)


def test_creations_of_many_accounts_in_one_batch_each_get_their_own_answer(
    store: Store, an_account: MakeAccount
) -> None:
    people = [an_account(f"account-{n}") for n in range(5)]
    creations = [
        Creation(account.id, [NewResume(a_resume(account.name).resume)], store.clock())
        for account in people * 2
    ]
    results = store.write(lambda c, batch: [creating.apply_creations(c, batch[0])], creations)
    assert len(results) == 10
    for account in people:
        assert len(listing.list_page(store, account.id).entries) == 2


def test_a_commit_for_which_the_disk_has_no_room_is_known_to_be_not_done(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = an_account()
    raw = sqlite_of(store)._lane_connection.connection.driver_connection
    assert raw is not None
    dialect = sqlite_of(store)._write_engine.dialect
    commits: list[object] = []

    def without_room(connection: object) -> None:
        commits.append(connection)
        raw.execute("PRAGMA max_page_count=1")
        raw.execute("CREATE TABLE more (text)")

    with monkeypatch.context() as patched:
        patched.setattr(dialect, "do_commit", without_room)
        with pytest.raises(StoreUnavailable, match="full; nothing was done"):
            creating.create(store, account.id, [a_resume()])
    assert len(commits) == 1
    raw.execute("PRAGMA max_page_count=1000000")
    assert isinstance(creating.create(store, account.id, [a_resume()])[0], Created)
    assert len(listing.list_page(store, account.id).entries) == 1


def test_the_lane_outlives_what_ends_other_threads(store: Store) -> None:
    def leave(_: Connection, requests: Sequence[str]) -> list[str]:
        raise SystemExit(requests[0])

    with pytest.raises(OutcomeUnknown):
        store.write(leave, "x")
    assert store.write(rename, "next") == "NEXT"


def test_a_failed_commit_that_cannot_be_rolled_back_either_is_unknown(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(sqlite_of(store)._write_engine.dialect, "do_commit", fail)
        patched.setattr(store.lane, "_roll_back", fail)
        with pytest.raises(OutcomeUnknown):
            store.write(rename, "x")


def test_what_waits_is_taken_although_the_lock_failed_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = sqlite_of(store)._lane_file
    really, failures = lock.acquire, iter([True])

    def fail_once(*, shared: bool = False, wait_s: float) -> bool:
        if next(failures, False):
            raise OSError("no locks available")
        return really(shared=shared, wait_s=wait_s)

    monkeypatch.setattr(lock, "acquire", fail_once)
    assert store.write(rename, "x") == "X"
