"""What a store needs of the engine below it: each engine has it."""

import pytest

from resumes.store import Store, accounts
from resumes.store.database import Database, not_text

pytestmark = pytest.mark.engines


def test_a_store_passes_on_what_its_engine_is(store: Store) -> None:
    database: Database = store.database
    assert (store.url, store.path, store.lane) == (database.url, database.path, database.lane)


def test_it_is_larger_than_nothing(store: Store) -> None:
    accounts.create_account(store, "ana")
    assert store.database.measure().data_bytes > 0


def test_what_is_no_text_is_shown_and_cut() -> None:
    error = UnicodeEncodeError("utf-8", "\udcff" * 200, 0, 1, "surrogates not allowed")
    assert not_text(error).message.startswith("Not UTF-8 text: '\\udcff")
    assert len(not_text(error).message) < 600
