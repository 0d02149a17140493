"""A store that moves: closed, copied row by row to another engine, whole and compared, or not at all."""

import contextlib
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from resumes.errors import Conflict, InvalidArgument, OutcomeUnknown, ResumesError, StoreUnavailable
from resumes.store import Store, accounts, open_store, plans, stored_resumes
from resumes.store.addresses import parse_address
from resumes.store.creation import create
from resumes.store.plans import PlanChange
from resumes.store.postgresql.connection import TimeoutConnection
from resumes.store.schema import metadata
from resumes.store.sqlite import files
from resumes.store.store import check_closed, close_store, read_fact, reopen_store
from resumes.store.transfer import copies
from resumes.store.transfer.copies import BATCH_ROWS, TABLES, CopyProgress, Stage, encode
from tests.support import postgres
from tests.support.engines import Engine
from tests.support.inbox.builders import a_full_disk
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    count_all,
    count_rows,
    damage,
    free_maximum,
    held_by,
    ids_of,
    names_in,
    refused_for_want_of_room,
    rename,
    run_python,
)
from tests.support.stores import make_store_file
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engines

THERE = "sqlite:////there.db"


def is_file(url: str) -> bool:
    return url.startswith("sqlite")


def assert_takes_no_writes(store: Store) -> None:
    with pytest.raises(StoreUnavailable, match="being moved to"):
        accounts.create_account(store, "late")


# Copies


def test_a_copy_there_and_back_holds_the_same(source: Store, place: str, tmp_path: Path) -> None:
    before, newest = held_by(source), ids_of(source, "ana")[-1]
    assert all(digest.rows for digest in before)
    last: dict[Stage, CopyProgress] = {}
    with open_store(place) as store:
        plans.set_plan_limits(store, PlanChange("theirs", 7))  # which goes

    there = copies.copy(source, place, on_progress=lambda one: last.update({one.stage: one}))

    (tmp_path / "new").mkdir()
    back_url = f"sqlite:///{tmp_path / 'new' / 'back.db'}"
    with open_store(place) as store:
        again = copies.copy(store, back_url)
        assert count_all(store) == count_all(source)
    assert names_in(tmp_path / "new") == ["back.db", "back.db.lock"]
    assert (tmp_path / "new" / "back.db").stat().st_mode & 0o777 == 0o600
    with open_store(back_url) as back:
        assert there == again == before == held_by(back)
        accounts.create_account(back, "new")
        assert ids_of(back, "ana") == ids_of(source, "ana")
        # Ids and cursors go on where they were, and the index is filled anew.
        account = accounts.get_account(back, "ana")
        create(back, account.id, [a_resume("Later")])
        (entry,) = stored_resumes.list_page(back, account.id, cursor=newest).entries
        assert entry.id > newest
        assert count_rows(back, "search_entries") == 0
    assert [stage.value for stage in last] == ["copying", "proving"]
    assert all(progress.done == progress.total for progress in last.values())
    # A copy that was copied on is not the store to use.
    with pytest.raises(Conflict, match="already has account"):
        copies.copy(source, place)


def test_more_rows_than_one_statement_inserts_are_copied(place: str, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'large.db'}") as source:
        account = accounts.create_account(source, "ana", plan="business")
        plans.set_plan_limits(source, PlanChange("business", None))
        create(source, account.id, [a_resume()] * (BATCH_ROWS + 1))
        there = copies.copy(source, place)
        assert {one.name: one.rows for one in there} == count_all(source)
    if not is_file(place):  # which plans by what it knows of a table
        with psycopg.connect(place) as connection:
            known = connection.execute(
                "SELECT reltuples FROM pg_class WHERE relname = 'documents'"
            ).fetchone()
            assert known == (BATCH_ROWS + 1,)


PEAK = """
    import resource, sys
    from resumes.store import open_store
    from resumes.store.transfer import copies

    with open_store(sys.argv[1]) as source:
        copies.copy(source, sys.argv[2])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_a_copy_of_a_large_store_takes_no_more_memory(engine: Engine, tmp_path: Path) -> None:
    peaks_kb = []
    for count in (100, 10_000):
        folder = tmp_path / f"{count}"
        with open_store(f"sqlite:///{folder}.db") as source, engine.a_place(folder) as target:
            plans.set_plan_limits(source, PlanChange("business", None))
            account = accounts.create_account(source, "ana", plan="business")
            folder.mkdir()
            for _ in range(count // 100):
                create(source, account.id, [a_resume("Ada " + "x" * 10_000)] * 100)
            peaks_kb.append(int(run_python(PEAK, source.url, target).stdout))
    assert peaks_kb[1] < peaks_kb[0] + 30_000  # of 100,000 more


KILLED = """
    import os, sys
    from resumes.store import open_store
    from resumes.store.transfer import copies

    def die(progress):
        if (progress.stage, progress.what) == (sys.argv[3], "documents"):
            os.kill(os.getpid(), 9)

    def die_when_it_has_both_names(event, arguments):
        if event == "os.remove" and str(arguments[0]).endswith(".scratch/resumes.db"):
            os.kill(os.getpid(), 9)

    with open_store(sys.argv[1]) as source:
        if sys.argv[3] == "both names":
            sys.addaudithook(die_when_it_has_both_names)
        copies.copy(source, sys.argv[2], on_progress=die)
"""


@pytest.mark.parametrize(
    "at",
    [
        Stage.PROVING,
        *(pytest.param(at, marks=pytest.mark.slow) for at in (Stage.COPYING, "both names")),
    ],
)
def test_a_copy_that_was_killed_is_not_there_and_starts_again_or_is_found(
    source: Store, place: str, tmp_path: Path, at: str
) -> None:
    if at == "both names" and not is_file(place):
        pytest.skip("a database has one name")
    assert run_python(KILLED, source.url, place, at).returncode == -signal.SIGKILL
    assert_takes_no_writes(source)

    assert copies.copy(source, place) == held_by(source)

    with open_store(place) as store:
        assert held_by(store) == held_by(source)
        accounts.create_account(store, "new")
    assert not [name for name in names_in(tmp_path) if name.endswith(".scratch")]
    assert_takes_no_writes(source)


def test_s13_the_source_of_a_copy_stays_closed_and_goes_to_one_place(
    source: Store, place: str, tmp_path: Path
) -> None:
    copies.copy(source, place)
    with pytest.raises(
        Conflict, match=r"is being moved to .*\. Copy it there, or make it writable again"
    ):
        copies.copy(source, f"sqlite:///{tmp_path / 'elsewhere.db'}")
    assert not (tmp_path / "elsewhere.db").exists()
    assert_takes_no_writes(source)
    assert reopen_store(source) == parse_address(place).label
    accounts.create_account(source, "late")
    assert reopen_store(source) is None


def lose_the_terminal(source: Store, progress: CopyProgress) -> None:
    if progress.stage is Stage.PROVING:
        raise OSError("the terminal is gone")


def spoil(source: Store, progress: CopyProgress) -> None:
    if progress.stage is Stage.COPYING and progress.done == progress.total:
        damage(source, "UPDATE documents SET document = replace(document, 'B', 'b')")


def reopen(source: Store, progress: CopyProgress) -> None:
    if progress.stage is Stage.PROVING and progress.done == progress.total:
        reopen_store(source)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("happens", "error", "why"),
    [
        (lose_the_terminal, OSError, "the terminal is gone"),
        (spoil, Conflict, 'differs in table "documents"'),
        (reopen, Conflict, "reopened during the copy"),
    ],
)
def test_s13_a_copy_that_fails_is_not_kept_and_its_source_takes_writes(
    source: Store,
    place: str,
    tmp_path: Path,
    happens: Callable[[Store, CopyProgress], None],
    error: type[Exception],
    why: str,
) -> None:
    with pytest.raises(error, match=why):
        copies.copy(source, place, on_progress=partial(happens, source))

    if is_file(place):
        names = names_in(tmp_path)
        assert not [one for one in names if one == "resumes.db" or one.endswith(".scratch")]
    else:
        with open_store(place) as store:
            assert not any(rows for table, rows in count_all(store).items() if table != "plans")
    accounts.create_account(source, "late")
    assert copies.copy(source, place) == held_by(source)


def test_s13_the_source_of_a_copy_that_may_be_there_stays_closed(
    source: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(end: Callable[..., Any], error: BaseException) -> Callable[..., Any]:
        def end_and_fail(*arguments: Any) -> None:
            end(*arguments)
            raise error

        return end_and_fail

    with monkeypatch.context() as patch:
        if is_file(url):
            patch.setattr(copies, "exchange", failing(files.exchange, KeyboardInterrupt()))
        else:
            no_answer = failing(TimeoutConnection.commit, psycopg.OperationalError("no answer"))
            patch.setattr(TimeoutConnection, "commit", no_answer)
        with pytest.raises((KeyboardInterrupt, OutcomeUnknown)):
            copies.copy(source, url)
    assert_takes_no_writes(source)

    # Called again, it says that all is well, as long as nobody has written to the copy.
    assert copies.copy(source, url) == held_by(source)
    assert_takes_no_writes(source)
    with open_store(url) as store:
        accounts.create_account(store, "new")
    with pytest.raises(Conflict, match="already has account"):
        copies.copy(source, url)
    assert_takes_no_writes(source)


@pytest.mark.sqlite("a file")
@pytest.mark.parametrize("was_there", [False, True])
def test_s21_a_file_that_gets_the_name_of_the_target_meanwhile_stays(
    source: Store, tmp_path: Path, was_there: bool
) -> None:
    target, other = tmp_path / "resumes.db", tmp_path / "other"
    if was_there:
        make_store_file(target)

    def move_there(progress: CopyProgress) -> None:
        if progress.stage is Stage.PROVING and progress.done == progress.total:
            other.write_text("mine")
            other.replace(target)

    with pytest.raises(Conflict, match="already exists"):
        copies.copy(source, f"sqlite:///{target}", on_progress=move_there)
    assert target.read_text() == "mine"
    accounts.create_account(source, "late")  # the copy is certainly not there


@pytest.mark.slow
def test_s13_a_source_is_given_back_though_its_target_is_lost(source: Store) -> None:
    with postgres.running("18") as server:
        place = server.url(server.make_database())
        with pytest.raises(StoreUnavailable, match="is unavailable"):
            copies.copy(source, place, on_progress=lambda _: server.stop())
    accounts.create_account(source, "late")


def test_a_target_that_is_the_source_or_holds_something_is_refused_and_both_stay_as_they_were(
    source: Store, url: str, tmp_path: Path
) -> None:
    with open_store(url) as store:
        with pytest.raises(InvalidArgument, match="to itself"):
            copies.copy(store, url)
        if is_file(url):  # a database may be open elsewhere
            with pytest.raises(StoreUnavailable, match=r"in use \(process .* then copy"):
                copies.copy(source, url)
        accounts.create_account(store, "mine")
        before = held_by(store)
    with pytest.raises(Conflict, match='already has account "mine"'):
        copies.copy(source, url)
    notes, gone = tmp_path / "notes.db", tmp_path / "gone.db"
    notes.write_text("mine")
    (tmp_path / "gone.db-wal").write_text("what is left of one")
    for path, why in ((notes, "notes"), (gone, "would be mistaken for part of")):
        with pytest.raises(ResumesError, match=why):
            copies.copy(source, f"sqlite:///{path}")
    assert notes.read_text() == "mine"
    with open_store(url) as store:
        assert held_by(store) == before
        for one in (source, store):
            accounts.create_account(one, "late")


def test_a_database_that_is_being_filled_can_be_read_and_takes_no_writes(
    source: Store, url: str
) -> None:
    if is_file(url):
        pytest.skip("a file is not there yet")

    def use(progress: CopyProgress) -> None:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SET lock_timeout = '10ms'")
            assert other.execute("SELECT count(*) FROM accounts").fetchone() == (0,)
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("INSERT INTO plans (name, api_listing) VALUES ('mine', false)")

    assert copies.copy(source, url, on_progress=use) == held_by(source)


def test_a_copy_begins_where_there_is_room_and_a_file_that_cannot_grow_is_named_with_the_reason(
    source: Store, tmp_path: Path
) -> None:
    small = tmp_path / "small.db"
    with refused_for_want_of_room():
        copies.copy(source, f"sqlite:///{small}")
    accounts.create_account(source, "late")
    with (
        contextlib.ExitStack() as disk,
        pytest.raises(StoreUnavailable, match=r"/small\.db is unavailable: .*(full|I/O)"),
    ):
        copies.copy(
            source, f"sqlite:///{small}", on_progress=lambda _: disk.enter_context(a_full_disk())
        )
    assert not small.exists()


def test_every_table_is_moved_but_what_is_made_from_others_or_of_one_store_in_a_fit_order() -> None:
    left_out = {"importers", "search_entries", "search_progress", "store_facts"}
    assert set(metadata.tables) - {table.name for table in TABLES} == left_out
    there: set[str] = set()
    for table in TABLES:
        assert {key.column.table.name for key in table.foreign_keys} <= there
        there.add(table.name)


# Proofs


def test_rows_that_differ_are_encoded_otherwise() -> None:
    rows = [
        ("a", "b"), ("ab", ""), ("", "ab"), ("a", None), (None, "a"), ("a", 1), ("a", "1"),
        ("a", b"1"), ("a", b""), ("a", "-"), ("a", 11), ("a\0", "b"),
    ]  # fmt: skip
    assert len({encode(row) for row in rows}) == len(rows)
    # Booleans are the numbers that engines without them have.
    assert encode((True, False)) == encode((1, 0))
    assert encode((memoryview(b"x"),)) == encode((b"x",))


# Closed stores


def test_s13_a_closed_store_takes_no_write_of_any_process_and_undoes_what_began(
    store: Store, url: str
) -> None:
    accounts.create_account(store, "ana")
    close_store(store, THERE, "0123")

    with open_store(url) as of_another_process:
        for one in (store, of_another_process):
            for write in (
                lambda one=one: accounts.create_account(one, "bob"),
                lambda one=one: one.write(rename("x")),
            ):
                with pytest.raises(StoreUnavailable, match=r"moved to sqlite:////there\.db"):
                    write()
            assert free_maximum(one) == 5
            assert [account.name for account in accounts.list_accounts(one)] == ["ana"]


def test_s13_a_copy_that_failed_does_not_reopen_what_another_has_closed(source: Store) -> None:
    close_store(source, THERE, "0123")
    close_store(source, THERE, "4567")
    assert reopen_store(source, "0123") is None
    check_closed(source, "4567")
    assert_takes_no_writes(source)


def test_s13_who_was_not_refused_and_has_not_yet_committed_is_waited_for(
    store: Store, url: str
) -> None:
    if store.path is not None:
        pytest.skip("writers to a file exclude one another")

    def is_closed() -> bool:
        with store.session() as session:
            return bool(read_fact(session, "closed_for"))

    closer = threading.Thread(target=close_store, args=(store, THERE, "0123"))
    with psycopg.connect(url) as writer:
        writer.execute("INSERT INTO plans (name, api_listing) VALUES ('slow', false)")
        closer.start()
        wait_until(is_closed)
        closer.join(0.5)
        assert closer.is_alive(), "closed with a writer under way"
    closer.join(60)
    assert not closer.is_alive()
