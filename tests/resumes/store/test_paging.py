from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select

from resumes.store import Store
from resumes.store.accounts import AccountInfo
from resumes.store.paging import first_page, next_page
from resumes.store.schema import imported_items as items
from resumes.store.statements import Prepared

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]

KEYS = (items.c.claim_id, items.c.item)
FIRST = Prepared(first_page(select(*KEYS), *KEYS))
NEXT = Prepared(next_page(select(*KEYS), *KEYS))


def add_items(store: Store, account: AccountInfo, keys: Sequence[tuple[str, int]]) -> None:
    def add(connection: Connection, requests: Sequence[Any]) -> Sequence[Any]:
        for claim_id, item in keys:
            values = {"claim_id": claim_id, "item": item, "outcome": "done", "resume_id": ""}
            connection.execute(insert(items).values(account_id=account.id, **values))
        return requests

    store.write(add, None)


def test_pages_follow_one_another_in_the_order_of_all_parts_of_their_keys(
    store: Store, an_account: MakeAccount
) -> None:
    keys = [(claim_id, item) for claim_id in ("a", "b") for item in (1, 2, 3)]
    add_items(store, an_account(), keys[::-1])
    with store.read() as connection:
        page = [tuple(row) for row in FIRST.run(connection, rows=2).fetchall()]
        seen = page
        while page:
            claim_id, item = page[-1]
            after = {"after_claim_id": claim_id, "after_item": item}
            page = [tuple(row) for row in NEXT.run(connection, rows=2, **after).fetchall()]
            assert len(page) <= 2
            seen = seen + page
    assert seen == keys
