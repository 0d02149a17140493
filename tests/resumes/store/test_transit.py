from collections.abc import Sequence

import pytest
from sqlalchemy import Connection, text

from resumes.errors import StoreUnavailable
from resumes.store import Store, accounts
from resumes.store.moving.marking import set_marks
from resumes.store.transit import allowed_in_transit

pytestmark = pytest.mark.engines


@allowed_in_transit
def mark(connection: Connection, requests: Sequence[dict[str, str]]) -> list[None]:
    for facts in requests:
        set_marks(connection, **facts)
    return [None] * len(requests)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"moving_to": "sqlite:////there.db"}, "being moved to sqlite:////there.db"),
        ({"filled_from": "sqlite:////here.db"}, "still being filled from sqlite:////here.db"),
    ],
)
def test_a_marked_store_refuses_writes_and_says_why(
    store: Store, facts: dict[str, str], words: str
) -> None:
    store.write(mark, facts)
    with pytest.raises(StoreUnavailable, match=words):
        accounts.create_account(store, "ana")
    assert accounts.list_accounts(store) == []

    store.write(mark, dict.fromkeys(facts, ""))
    accounts.create_account(store, "ana")


def test_what_a_refused_write_did_is_undone(store: Store) -> None:
    store.write(mark, {"moving_to": "sqlite:////there.db"})
    with pytest.raises(StoreUnavailable):
        store.write(empty_plans, "")
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM plans")).scalar_one() == 3


def empty_plans(connection: Connection, requests: Sequence[str]) -> list[None]:
    connection.execute(text("DELETE FROM plans"))
    return [None] * len(requests)
