"""A store that moves: marked, copied row by row to another engine, proved to be there, and closed."""

import resource
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from resumes.errors import Conflict, InvalidArgument, OutcomeUnknown, StoreUnavailable
from resumes.store import Store, accounts, open_store, plans, stored_resumes
from resumes.store.creation import create
from resumes.store.plans import PlanChange
from resumes.store.schema import documents, metadata, resumes
from resumes.store.transfer import copies, marks
from resumes.store.transfer.copies import BATCH_CHARACTERS, BATCH_ROWS, Batch, Progress, Stage
from resumes.store.transfer.marks import Move
from resumes.store.transfer.rows import READERS, TABLES, encode
from tests.support import postgres
from tests.support.engines import Engine
from tests.support.inbox.builders import a_full_disk
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    count_all,
    count_rows,
    fill_store,
    free_maximum,
    held_by,
    ids_of,
    rename,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engines

HERE, THERE = "sqlite:////here.db", "sqlite:////there.db"


def a_move(name: str = "0123", *, source: str = HERE, target: str = THERE) -> Move:
    return Move(source, target, name, "a" * 16)


def change(store: Store, statement: str) -> None:
    """Write what a store takes also while it is moved."""
    store.write(lambda connection: connection.execute(text(statement)), ignores_closed=True)


def fill(source: Store, target: Store, told: Callable[[str, int], None] = lambda *_: None) -> None:
    with source.read() as connection:
        copies.fill(connection, target, told)


# Copies


def test_a_copy_there_and_back_holds_the_same(source: Store, store: Store, tmp_path: Path) -> None:
    before, newest = held_by(source), ids_of(source, "ana")[-1]
    assert all(digest.rows for digest in before)
    last: dict[Stage, Progress] = {}

    there = copies.copy(source, store, watcher=lambda one: last.update({one.stage: one}))
    with open_store(f"sqlite:///{tmp_path / 'back.db'}") as back:
        again = copies.copy(store, back)

        assert there == again == before == held_by(back)
        assert count_all(back) == count_all(source)
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


@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40),
        min_size=1,
        max_size=5,
    )
)
def test_any_text_comes_through_there_and_back(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    folder, other = tmp_path_factory.mktemp("ends"), tmp_path_factory.mktemp("between")
    with (
        open_store(f"sqlite:///{folder / 'first.db'}") as first,
        open_store(f"sqlite:///{folder / 'last.db'}") as last,
        engine.a_store(other) as url,
        open_store(url) as between,
    ):
        fill_store(first, resumes=len(names), names=tuple(f"A {name}" for name in names))
        assert copies.copy(first, between) == copies.copy(between, last) == held_by(first)


KILLED_COPY = """
    import os, signal, sys
    from resumes.store import open_store
    from resumes.store.transfer import copies

    told = []

    def watch(progress):
        told.append(progress.what)
        if told.count("documents") == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_store(sys.argv[1]) as source, open_store(sys.argv[2]) as target:
        copies.copy(source, target, watcher=watch)
"""
"""Copies until the first documents are there: before them it is told how many were."""


def test_a_copy_that_was_killed_goes_on_where_it_was(
    store: Store, url: str, tmp_path: Path
) -> None:
    source_url = f"sqlite:///{tmp_path / 'large.db'}"
    with open_store(source_url) as source:
        fill_store(source)
        ana = accounts.get_account(source, "ana")
        create(source, ana.id, [a_resume()] * (BATCH_ROWS + 500))

        words = [sys.executable, "-c", textwrap.dedent(KILLED_COPY), source_url, url]
        assert subprocess.run(words, timeout=60, check=False).returncode == -signal.SIGKILL
        there = count_rows(store, "documents")
        assert 0 < there < count_rows(source, "documents")
        for one, why in ((source, "being moved"), (store, "still being filled")):
            with pytest.raises(StoreUnavailable, match=why):
                accounts.create_account(one, "late")

        told: list[Progress] = []
        copies.copy(source, store, watcher=told.append)

        assert held_by(store) == held_by(source)
        assert count_all(store) == count_all(source)
        goes_on = next(one.done for one in told if one.what == "documents")
        assert goes_on >= there, "what was there was copied again"


def test_s13_the_source_of_a_copy_stays_closed(source: Store, store: Store) -> None:
    copies.copy(source, store)
    with pytest.raises(StoreUnavailable, match="being moved to"):
        accounts.create_account(source, "late")
    marks.reopen(source)
    accounts.create_account(source, "late")


def test_s13_the_source_of_a_copy_that_failed_takes_writes(source: Store, store: Store) -> None:
    def fail(progress: Progress) -> None:
        if progress.stage is Stage.PROVING:
            raise OSError("the terminal is gone")

    with pytest.raises(OSError, match="the terminal is gone"):
        copies.copy(source, store, watcher=fail)
    accounts.create_account(source, "late")

    # What the other holds is not of use, and the next copy knows it.
    assert copies.copy(source, store) == held_by(source)
    assert [one.name for one in accounts.list_accounts(store)] == ["ana", "bob", "late"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OutcomeUnknown])
def test_s13_a_copy_that_ended_or_may_have_ended_gives_nothing_back(
    source: Store, store: Store, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    finish = copies.finish

    def finish_and_fail(target: Store) -> None:
        if error is KeyboardInterrupt:
            finish(target)
        # The other as of a COMMIT that still waits for a standby when nobody waits for it.
        raise error

    monkeypatch.setattr(copies, "finish", finish_and_fail)
    with pytest.raises(error):
        copies.copy(source, store)
    if error is OutcomeUnknown:
        finish(store)

    accounts.create_account(store, "late")
    with pytest.raises(StoreUnavailable, match="being moved to"):
        accounts.create_account(source, "late")


@pytest.mark.slow
def test_s13_a_source_is_given_back_though_its_target_is_lost(
    source: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "DEADLINE_S", 1.0)
    monkeypatch.setattr(copies, "RETRY_TIMEOUT_S", 0.0)
    with (
        postgres.running("18") as server,
        open_store(server.url(server.make_database())) as target,
        pytest.raises(StoreUnavailable),
    ):
        copies.copy(source, target, watcher=lambda _: server.stop())
    accounts.create_account(source, "late")


def test_a_target_that_is_the_source_or_holds_something_is_refused_and_both_stay_as_they_were(
    source: Store, store: Store, url: str
) -> None:
    with open_store(url) as same, pytest.raises(InvalidArgument, match="to itself"):
        copies.copy(store, same)
    accounts.create_account(store, "mine")
    before = held_by(store)
    with pytest.raises(Conflict, match='holds account "mine" already'):
        copies.copy(source, store)
    assert held_by(store) == before
    for one in (source, store):
        accounts.create_account(one, "late")


def test_room_is_asked_for_what_is_missing_where_that_can_be_known(
    source: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100_000, 100_000))
    place, half_done = tmp_path / "new.db", tmp_path / "half.db"
    with pytest.raises(StoreUnavailable, match=r"A file may have 0\.1 MB here .* are needed"):
        copies.check_target(source, f"sqlite:///{place}")
    assert not place.exists()
    half_done.write_bytes(bytes(10**7))
    for url in (f"sqlite:///{half_done}", "postgresql://resumes@db.example/resumes"):
        copies.check_target(source, url)


# Filling


def test_rows_are_told_and_batches_that_are_there_are_not_added_again(
    source: Store, store: Store
) -> None:
    told: dict[str, int] = {}
    copies.begin(store, a_move())
    with source.read() as connection:
        batch = Batch("plans", list(READERS["plans"].iter_rows(connection)))
    for _ in range(2):
        copies.add_rows(store, batch)
    assert count_rows(store, "plans") == len(batch.rows)
    fill(source, store, lambda table, rows: told.update({table: told.get(table, 0) + rows}))
    assert told == {digest.name: digest.rows for digest in held_by(source)}
    if store.path is None:  # which plans by what it knows of a table
        with store.read() as connection:
            known = text("SELECT reltuples FROM pg_class WHERE relname = 'documents'")
            assert connection.execute(known).scalar_one() == count_rows(source, "documents")


def test_what_another_copy_from_there_has_left_is_removed(source: Store, store: Store) -> None:
    copies.begin(store, a_move())
    fill(source, store)
    copies.begin(store, a_move("4567"))
    assert all(digest.rows == 0 for digest in held_by(store))


def test_a_store_that_is_being_filled_takes_nothing_else_and_goes_nowhere(store: Store) -> None:
    copies.begin(store, a_move())
    with pytest.raises(Conflict, match=r"filled from sqlite:////here\.db"):
        copies.begin(store, a_move(source="sqlite:////elsewhere.db"))
    with pytest.raises(StoreUnavailable, match="still being filled"):
        accounts.create_account(store, "ana")
    with pytest.raises(Conflict, match="still being filled"):
        marks.plan_move(store, THERE)
    with pytest.raises(Conflict, match="not whole"):
        marks.reopen(store)
    copies.finish(store)
    plans.set_plan_limits(store, PlanChange("pro", 7))


def test_a_store_that_cannot_grow_is_named_with_the_reason(
    source: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "RETRY_TIMEOUT_S", 0.0)
    with open_store(f"sqlite:///{tmp_path / 'small.db'}") as small:
        copies.begin(small, a_move())
        with (
            a_full_disk((tmp_path / "small.db-wal").stat().st_size),
            pytest.raises(StoreUnavailable, match=r"^sqlite:.*/small\.db was not filled to"),
        ):
            fill(source, small)


def test_batches_are_bounded_by_rows_and_by_characters() -> None:
    narrow = [("a", str(number)) for number in range(BATCH_ROWS + 1)]
    assert [len(batch) for batch in copies.batches(resumes, narrow)] == [BATCH_ROWS, 1]
    wide = [("a", str(number), "x" * (BATCH_CHARACTERS // 2)) for number in range(5)]
    assert [len(batch) for batch in copies.batches(documents, wide)] == [2, 2, 1]


def test_every_table_is_moved_but_what_is_made_from_others_or_of_one_store_in_a_fit_order() -> None:
    left_out = {"importers", "search_entries", "search_progress", "store_facts"}
    assert set(metadata.tables) - set(READERS) == left_out
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


def test_a_copy_that_differs_in_any_value_names_the_table_and_is_not_used(
    source: Store, store: Store
) -> None:
    def spoil(progress: Progress) -> None:
        if progress.stage is Stage.PROVING:
            change(store, "UPDATE documents SET document = replace(document, 'B', 'b')")

    with pytest.raises(Conflict, match='differs in table "documents"'):
        copies.copy(source, store, watcher=spoil)
    with pytest.raises(StoreUnavailable, match="still being filled"):
        accounts.create_account(store, "late")


# Marks


@pytest.mark.parametrize("mark", ["moving_to", "filled_from"])
def test_s13_a_marked_store_takes_no_write_of_any_process_and_undoes_what_began(
    store: Store, url: str, mark: str
) -> None:
    accounts.create_account(store, "ana")
    if mark == "moving_to":
        marks.depart(store, a_move())
        words = r"moved to sqlite:////there\.db"
    else:
        change(store, f"INSERT INTO store_facts VALUES ('filled_from', '{HERE}')")
        words = r"still being filled from sqlite:////here\.db"

    with open_store(url) as of_another_process:
        for one in (store, of_another_process):
            with pytest.raises(StoreUnavailable, match=words):
                accounts.create_account(one, "bob")
            with pytest.raises(StoreUnavailable, match=words):
                one.write(rename("x"))
            assert free_maximum(one) == 5
            assert [account.name for account in accounts.list_accounts(one)] == ["ana"]


def test_a_store_goes_to_one_place_by_one_copy_that_gives_back_only_what_it_took(
    store: Store,
) -> None:
    first = marks.plan_move(store, THERE)
    assert first != marks.plan_move(store, THERE)
    marks.depart(store, first)
    assert marks.plan_move(store, THERE) == first  # a copy that goes on has the name that it had
    for call, why in (
        (lambda: marks.plan_move(store, "sqlite:////elsewhere.db"), r"moved to .*there\.db"),
        (lambda: marks.depart(store, a_move("4567", target="sqlite:////else.db")), "."),
        (lambda: marks.depart(store, a_move("4567", source=first.source)), "Somebody else"),
    ):
        with pytest.raises(Conflict, match=why):
            call()
    marks.give_back(store, "4567")
    marks.check_departed(store, first)
    marks.give_back(store, first.name)
    with pytest.raises(Conflict, match="reopened while it was copied"):
        marks.check_departed(store, first)
    assert marks.plan_move(store, THERE) != first


def test_s13_a_write_that_began_before_is_over_when_the_store_has_departed(store: Store) -> None:
    began, go_on = threading.Event(), threading.Event()
    refused: list[StoreUnavailable] = []

    def create_slowly(connection: Connection) -> None:
        connection.execute(text("INSERT INTO plans (name, api_listing) VALUES ('slow', false)"))
        began.set()
        assert go_on.wait(60)

    def write() -> None:
        try:
            store.write(create_slowly)
        except StoreUnavailable as error:
            refused.append(error)

    writer = threading.Thread(target=write)
    leaver = threading.Thread(target=marks.depart, args=(store, a_move()))
    writer.start()
    assert began.wait(60)
    leaver.start()
    go_on.set()
    for thread in (writer, leaver):
        thread.join(60)
        assert not thread.is_alive()
    # Either it came in time, or it was refused: none comes later.
    assert (plans.find_plan(store, "slow") is None) is bool(refused)


def test_s13_who_has_looked_at_the_marks_and_not_yet_committed_is_waited_for(
    store: Store, url: str
) -> None:
    if store.path is not None:
        pytest.skip("writers to a file exclude one another")

    def is_marked() -> bool:
        with store.read() as connection:
            return bool(marks.read_marks(connection).moving_to)

    leaver = threading.Thread(target=marks.depart, args=(store, a_move()))
    with psycopg.connect(url) as writer:
        writer.execute("INSERT INTO plans (name, api_listing) VALUES ('slow', false)")
        leaver.start()
        wait_until(is_marked)
        leaver.join(0.5)
        assert leaver.is_alive(), "departed with a writer under way"
    leaver.join(60)
    assert not leaver.is_alive()
