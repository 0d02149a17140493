import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from resumes.errors import Conflict, StoreUnavailable
from resumes.store import Store, accounts, open_store, plans
from resumes.store.moving import filling
from resumes.store.moving.filling import BATCH_CHARACTERS, BATCH_ROWS, Batch
from resumes.store.moving.marking import Move
from resumes.store.moving.tables import READERS
from resumes.store.plans import PlanChange
from resumes.store.schema import documents, resumes
from tests.resumes.store.moving.builders import count_rows, held_by

pytestmark = pytest.mark.engines

HERE = Move("sqlite:////here.db", "sqlite:////there.db", "0123", "a" * 16)


def told_nothing(table: str, rows: int) -> None:
    pass


def fill(source: Store, target: Store, told: Callable[[str, int], None] = told_nothing) -> None:
    with source.read() as connection:
        filling.fill(connection, target, told)


def test_a_filled_store_holds_what_the_other_holds(source: Store, store: Store) -> None:
    filling.begin(store, HERE)
    fill(source, store)
    filling.finish(store)
    assert held_by(store) == held_by(source)


def test_the_rows_of_each_table_are_told(source: Store, store: Store) -> None:
    told: dict[str, int] = {}
    filling.begin(store, HERE)
    fill(source, store, lambda table, rows: told.update({table: told.get(table, 0) + rows}))
    assert told == {digest.name: digest.rows for digest in held_by(source)}


def test_a_filling_that_stopped_goes_on_where_it_was(
    source: Store, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "BATCH_ROWS", 3)
    filling.begin(store, HERE)

    def stop(table: str, rows: int) -> None:
        if table == "documents" and rows:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(source, store, stop)
    assert count_rows(store, "documents") == 3

    added: list[str] = []
    filling.begin(store, HERE)
    fill(source, store, lambda table, rows: added.extend([table] * rows))
    assert held_by(store) == held_by(source)
    assert added.count("documents") == count_rows(source, "documents")


def test_what_another_copy_from_there_has_left_is_removed(source: Store, store: Store) -> None:
    filling.begin(store, HERE)
    fill(source, store)
    filling.begin(store, HERE._replace(name="4567"))
    assert all(digest.rows == 0 for digest in held_by(store))


def test_a_batch_that_is_there_is_not_added_again(source: Store, store: Store) -> None:
    filling.begin(store, HERE)
    with source.read() as connection:
        batch = Batch("plans", list(READERS["plans"].iter_rows(connection)))
    store.write(filling.add_rows, batch)
    store.write(filling.add_rows, batch)
    assert count_rows(store, "plans") == len(batch.rows)


def test_a_store_that_cannot_grow_is_named_with_the_reason(
    source: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "PATIENCE_S", 0.0)
    with open_store(f"sqlite:///{tmp_path / 'small.db'}") as small:
        filling.begin(small, HERE)
        size_bytes = (tmp_path / "small.db-wal").stat().st_size
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
        try:
            with pytest.raises(StoreUnavailable, match=r"^sqlite:.*/small\.db was not filled to"):
                fill(source, small)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_postgresql_knows_how_its_tables_are_filled(source: Store, store: Store) -> None:
    if store.path is not None:
        pytest.skip("SQLite plans these reads by their keys alone")
    filling.begin(store, HERE)
    fill(source, store)
    with store.read() as connection:
        known = connection.execute(
            text("SELECT reltuples FROM pg_class WHERE relname = 'documents'")
        ).scalar_one()
    assert known == count_rows(source, "documents")


def test_a_store_with_an_account_is_refused_by_name(store: Store) -> None:
    accounts.create_account(store, "ana")
    before = held_by(store)
    with pytest.raises(Conflict, match='holds account "ana" already'):
        filling.begin(store, HERE)
    assert held_by(store) == before
    plans.set_plan_limits(store, PlanChange("pro", 7))  # it still takes writes


def test_a_store_that_is_filled_from_elsewhere_is_refused_by_name(store: Store) -> None:
    filling.begin(store, HERE)
    with pytest.raises(Conflict, match=r"filled from sqlite:////here\.db"):
        filling.begin(store, HERE._replace(source="sqlite:////elsewhere.db"))


def test_a_store_that_is_being_filled_takes_no_other_writes(store: Store) -> None:
    filling.begin(store, HERE)
    with pytest.raises(StoreUnavailable, match="still being filled"):
        accounts.create_account(store, "ana")
    filling.finish(store)
    plans.set_plan_limits(store, PlanChange("pro", 7))


def test_batches_are_bounded_by_rows_and_by_characters() -> None:
    narrow = [("a", str(number)) for number in range(BATCH_ROWS + 1)]
    assert [len(batch) for batch in filling.batches(resumes, narrow)] == [BATCH_ROWS, 1]
    wide = [("a", str(number), "x" * (BATCH_CHARACTERS // 2)) for number in range(5)]
    assert [len(batch) for batch in filling.batches(documents, wide)] == [2, 2, 1]
