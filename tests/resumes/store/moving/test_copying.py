import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from resumes.errors import Conflict, InvalidArgument, OutcomeUnknown, StoreUnavailable
from resumes.store import Store, accounts, listing, open_store
from resumes.store.creating import create
from resumes.store.engine import each
from resumes.store.moving import copying, filling, marking
from resumes.store.moving.transferring import Progress, Stage
from resumes.store.transit import allowed_in_transit
from tests import postgres
from tests.engines import Engine
from tests.resumes.builders import a_resume
from tests.resumes.store.moving.builders import count_rows, fill_store, held_by, ids_of

pytestmark = pytest.mark.engines


def test_a_copy_there_and_back_holds_the_same(source: Store, store: Store, tmp_path: Path) -> None:
    before = held_by(source)
    assert all(digest.rows for digest in before)

    there = copying.copy(source, store)
    with open_store(f"sqlite:///{tmp_path / 'back.db'}") as back:
        again = copying.copy(store, back)

        assert there == again == before == held_by(back)
        accounts.create_account(back, "new")
        assert ids_of(back, "ana") == ids_of(source, "ana")


@settings(
    max_examples=3,
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
        assert copying.copy(first, between) == copying.copy(between, last) == held_by(first)


def test_s13_the_source_of_a_copy_stays_closed(source: Store, store: Store) -> None:
    copying.copy(source, store)
    with pytest.raises(StoreUnavailable, match="being moved to"):
        accounts.create_account(source, "late")
    marking.reopen(source)
    accounts.create_account(source, "late")


def test_s13_the_source_of_a_copy_that_failed_takes_writes(source: Store, store: Store) -> None:
    def fail(progress: Progress) -> None:
        if progress.stage is Stage.PROVING:
            raise OSError("the terminal is gone")

    with pytest.raises(OSError, match="the terminal is gone"):
        copying.copy(source, store, watcher=fail)
    accounts.create_account(source, "late")

    # What the other holds is not of use, and the next copy knows it.
    assert copying.copy(source, store) == held_by(source)
    assert [one.name for one in accounts.list_accounts(store)] == ["ana", "bob", "late"]


def test_s13_a_copy_that_ended_is_not_undone_by_what_comes_after(
    source: Store, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finish_and_be_interrupted(target: Store) -> None:
        finish(target)
        raise KeyboardInterrupt

    finish = filling.finish
    monkeypatch.setattr(filling, "finish", finish_and_be_interrupted)
    with pytest.raises(KeyboardInterrupt):
        copying.copy(source, store)

    accounts.create_account(store, "late")
    with pytest.raises(StoreUnavailable, match="being moved to"):
        accounts.create_account(source, "late")


def test_s13_a_copy_of_which_nobody_knows_whether_it_ended_gives_nothing_back(
    source: Store, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = filling.finish

    def finish_later(target: Store) -> None:
        # As a COMMIT that still waits for a standby when it is no longer waited for.
        raise OutcomeUnknown

    monkeypatch.setattr(filling, "finish", finish_later)
    with pytest.raises(OutcomeUnknown):
        copying.copy(source, store)
    finish(store)

    accounts.create_account(store, "late")
    with pytest.raises(StoreUnavailable, match="being moved to"):
        accounts.create_account(source, "late")


def test_s13_a_source_is_given_back_though_its_target_is_lost(
    source: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "DEADLINE_S", 1.0)
    monkeypatch.setattr(filling, "PATIENCE_S", 0.0)
    with (
        postgres.running("18") as server,
        open_store(server.url(server.make_database())) as target,
        pytest.raises(StoreUnavailable),
    ):
        copying.copy(source, target, watcher=lambda _: server.stop())
    accounts.create_account(source, "late")


def test_a_store_with_content_is_refused_and_both_are_as_they_were(
    source: Store, store: Store
) -> None:
    accounts.create_account(store, "mine")
    with pytest.raises(Conflict, match='holds account "mine" already'):
        copying.copy(source, store)
    accounts.create_account(source, "late")
    accounts.create_account(store, "late")


def test_a_target_without_room_is_refused_before_it_is_made(
    source: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100_000, 100_000))
    place = tmp_path / "new.db"
    with pytest.raises(StoreUnavailable, match=r"A file may have 0\.1 MB here .* are needed"):
        copying.check_target(source, f"sqlite:///{place}")
    assert not place.exists()


def test_room_is_asked_only_for_what_is_missing(
    source: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100_000, 100_000))
    half_done = tmp_path / "half.db"
    half_done.write_bytes(bytes(10**7))
    copying.check_target(source, f"sqlite:///{half_done}")


def test_no_room_is_asked_for_that_cannot_be_known(
    source: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100_000, 100_000))
    copying.check_target(source, "postgresql://resumes@db.example/resumes")


def test_a_store_is_not_copied_to_itself(store: Store, url: str) -> None:
    with open_store(url) as same, pytest.raises(InvalidArgument, match="to itself"):
        copying.copy(store, same)


def test_a_copy_that_differs_names_the_table_and_is_not_used(source: Store, store: Store) -> None:
    def spoil(progress: Progress) -> None:
        if progress.stage is Stage.PROVING:
            store.write(_spoil, None)

    with pytest.raises(Conflict, match='differs in table "resumes"'):
        copying.copy(source, store, watcher=spoil)
    with pytest.raises(StoreUnavailable, match="still being filled"):
        accounts.create_account(store, "late")


@allowed_in_transit
@each
def _spoil(connection: Connection, _: None) -> None:
    connection.execute(text("UPDATE resumes SET title = 'another'"))


def test_the_target_fills_its_search_index_anew(source: Store, store: Store) -> None:
    copying.copy(source, store)
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM search_entries")).scalar_one() == 0


def test_ids_and_cursors_go_on_where_they_were(source: Store, store: Store) -> None:
    newest = ids_of(source, "ana")[-1]
    copying.copy(source, store)
    account = accounts.get_account(store, "ana")
    create(store, account.id, [a_resume("Later")])
    (entry,) = listing.list_page(store, account.id, cursor=newest).entries
    assert entry.id > newest


KILLED_COPY = """
    import os, signal, sys
    from resumes.store import open_store
    from resumes.store.moving import copying

    told = []

    def watch(progress):
        told.append(progress.what)
        if told.count("documents") == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_store(sys.argv[1]) as source, open_store(sys.argv[2]) as target:
        copying.copy(source, target, watcher=watch)
"""
"""Copies until the first documents are there: before them it is told how many were."""


def test_a_copy_that_was_killed_goes_on_where_it_was(
    store: Store, url: str, tmp_path: Path
) -> None:
    source_url = f"sqlite:///{tmp_path / 'large.db'}"
    with open_store(source_url) as source:
        fill_store(source)
        ana = accounts.get_account(source, "ana")
        create(source, ana.id, [a_resume()] * (filling.BATCH_ROWS + 500))
        total = count_rows(source, "documents")

        words = [sys.executable, "-c", textwrap.dedent(KILLED_COPY), source_url, url]
        assert subprocess.run(words, timeout=60, check=False).returncode == -signal.SIGKILL
        there = count_rows(store, "documents")
        assert 0 < there < total
        for one, why in ((source, "being moved"), (store, "still being filled")):
            with pytest.raises(StoreUnavailable, match=why):
                accounts.create_account(one, "late")

        first: list[Progress] = []
        copying.copy(source, store, watcher=first.append)

        assert held_by(store) == held_by(source)
        goes_on = next(one.done for one in first if one.what == "documents")
        assert goes_on >= there, "what was there was copied again"
