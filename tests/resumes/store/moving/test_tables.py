import pytest
from sqlalchemy import text

from resumes.store import Store
from resumes.store.moving import tables
from resumes.store.moving.tables import READERS, TABLES
from resumes.store.schema import metadata
from tests.resumes.store.moving.builders import fill_store

pytestmark = pytest.mark.engines


def test_every_table_is_moved_but_what_is_made_from_others_or_of_one_store() -> None:
    assert set(metadata.tables) - set(READERS) == {
        "importers",
        "search_entries",
        "search_progress",
        "store_facts",
    }


def test_no_table_comes_before_one_that_its_rows_refer_to() -> None:
    there: set[str] = set()
    for table in TABLES:
        assert {key.column.table.name for key in table.foreign_keys} <= there
        there.add(table.name)


@pytest.mark.parametrize("table", list(READERS))
def test_rows_come_in_the_order_of_their_keys_whole_and_once(
    store: Store, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_store(store)
    monkeypatch.setattr(tables, "PAGE_ROWS", 3)  # many pages
    reader = READERS[table]
    with store.read() as connection:
        rows = list(reader.iter_rows(connection))
        count = connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()
        keys = [reader.key_of(row) for row in rows]

        assert len(rows) == count == reader.count(connection) > 0
        assert keys == sorted(set(keys))
        assert reader.find_last_key(connection) == keys[-1]
        assert list(reader.iter_rows(connection, after=keys[0])) == rows[1:]


def test_a_table_without_rows_has_no_last_key(store: Store) -> None:
    with store.read() as connection:
        assert READERS["resumes"].find_last_key(connection) is None
        assert list(READERS["resumes"].iter_rows(connection)) == []
