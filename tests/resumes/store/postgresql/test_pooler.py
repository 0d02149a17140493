"""Behind PgBouncer, which gives each transaction another session (pitfalls S18)."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from resumes.store import (
    Store,
    accounts,
    counters,
    creating,
    keys,
    listing,
    open_store,
    search,
    search_filler,
)
from resumes.store.creating import Created
from tests.resumes.builders import a_resume
from tests.resumes.store.postgresql.pooler import PGBOUNCER, pooled

__all__ = ["pooled"]  # a fixture


pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


def test_s18_everything_works_when_each_transaction_has_another_session(pooled: str) -> None:
    with open_store(pooled) as store, ThreadPoolExecutor(8) as pool:
        account = accounts.create_account(store, "ana", plan="business")
        key = keys.create_key(store, "ana")

        def create_and_read(number: int) -> str:
            (outcome,) = creating.create(store, account.id, [a_resume(f"Ada {number}")])
            assert isinstance(outcome, Created)
            assert keys.authenticate(store, key.secret)[0].account_id == account.id
            assert listing.get_resume(store, account.id, outcome.id)
            listing.list_page(store, account.id, limit=100)
            return outcome.id

        created = sorted(pool.map(create_and_read, range(100)))
        search_filler.fill(store)
        assert len(search.find_page(store, account.id, "ada").page.entries) == 100
        assert walk(store, account.id) == created
        assert counters.list_wrong(store) == []


def walk(store: Store, account_id: str) -> list[str]:
    ids: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = listing.list_page(store, account_id, cursor=cursor, limit=30)
        ids += [entry.id for entry in page.entries]
        cursor = page.cursor
    return ids
