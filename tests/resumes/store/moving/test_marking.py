import threading
import time
from collections.abc import Sequence

import psycopg
import pytest
from sqlalchemy import Connection, text

from resumes.errors import Conflict, StoreUnavailable
from resumes.store import Store, accounts, open_store
from resumes.store.moving import marking
from resumes.store.moving.marking import Move
from resumes.store.transit import allowed_in_transit

pytestmark = pytest.mark.engines

MOVE = Move("sqlite:////here.db", "sqlite:////there.db", "0123", "a" * 16)


def test_s13_a_store_on_its_way_takes_no_write_of_any_process(store: Store, url: str) -> None:
    accounts.create_account(store, "ana")
    marking.depart(store, MOVE)

    with open_store(url) as of_another_process:
        for one in (store, of_another_process):
            with pytest.raises(StoreUnavailable, match=r"moved to sqlite:////there\.db"):
                accounts.create_account(one, "bob")
            assert [account.name for account in accounts.list_accounts(one)] == ["ana"]


def test_a_store_that_is_reopened_takes_writes(store: Store) -> None:
    marking.depart(store, MOVE)
    assert marking.reopen(store) == MOVE.target
    accounts.create_account(store, "ana")
    assert marking.reopen(store) is None


def test_a_copy_that_goes_on_has_the_name_that_it_had(store: Store) -> None:
    first = marking.plan_move(store, MOVE.target)
    assert first != marking.plan_move(store, MOVE.target)
    marking.depart(store, first)
    assert marking.plan_move(store, MOVE.target) == first
    marking.reopen(store)
    assert marking.plan_move(store, MOVE.target) != first


def test_a_store_goes_to_one_place(store: Store) -> None:
    marking.depart(store, MOVE)
    with pytest.raises(Conflict, match=r"is being moved to sqlite:////there\.db"):
        marking.plan_move(store, "sqlite:////elsewhere.db")
    with pytest.raises(Conflict):
        marking.depart(store, MOVE._replace(target="sqlite:////elsewhere.db", name="4567"))
    with pytest.raises(Conflict, match="Somebody else"):
        marking.depart(store, MOVE._replace(name="4567"))


def test_a_copy_gives_back_only_what_it_took(store: Store) -> None:
    marking.depart(store, MOVE)
    marking.give_back(store, "4567")
    marking.check_departed(store, MOVE)
    marking.give_back(store, MOVE.name)
    with pytest.raises(Conflict, match="reopened while it was copied"):
        marking.check_departed(store, MOVE)


def test_s13_a_write_that_began_before_is_over_when_the_store_has_departed(store: Store) -> None:
    began, go_on = threading.Event(), threading.Event()

    def create_slowly(connection: Connection, requests: Sequence[str]) -> list[None]:
        connection.execute(text("INSERT INTO plans (name, api_listing) VALUES ('slow', false)"))
        began.set()
        assert go_on.wait(60)
        return [None] * len(requests)

    refused: list[StoreUnavailable] = []

    def write() -> None:
        try:
            store.write(create_slowly, "")
        except StoreUnavailable as error:
            refused.append(error)

    writer = threading.Thread(target=write)
    leaver = threading.Thread(target=marking.depart, args=(store, MOVE))
    writer.start()
    assert began.wait(60)
    leaver.start()
    go_on.set()
    for thread in (writer, leaver):
        thread.join(60)
        assert not thread.is_alive()

    # Either it came in time, or it was refused: none comes later.
    with store.read() as connection:
        slow = connection.execute(text("SELECT 1 FROM plans WHERE name = 'slow'")).all()
    assert bool(slow) is not bool(refused)


def test_s13_who_has_looked_at_the_marks_and_not_yet_committed_is_waited_for(
    store: Store, url: str
) -> None:
    if store.path is not None:
        pytest.skip("writers to a file exclude one another")
    leaver = threading.Thread(target=marking.depart, args=(store, MOVE))
    with psycopg.connect(url) as writer:
        writer.execute("INSERT INTO plans (name, api_listing) VALUES ('slow', false)")
        leaver.start()
        ends_at = time.monotonic() + 20
        with store.read() as connection:
            while not marking.read_marks(connection).moving_to:
                assert time.monotonic() < ends_at
        leaver.join(0.5)
        assert leaver.is_alive(), "departed with a writer under way"
    leaver.join(60)
    assert not leaver.is_alive()


def test_a_store_that_is_being_filled_neither_departs_nor_reopens(store: Store) -> None:
    store.write(_fill_from, "")
    with pytest.raises(Conflict, match="still being filled"):
        marking.plan_move(store, MOVE.target)
    with pytest.raises(Conflict, match="not whole"):
        marking.reopen(store)


@allowed_in_transit
def _fill_from(connection: Connection, requests: Sequence[str]) -> list[None]:
    marking.set_marks(connection, filled_from="sqlite:////here.db", move="89ab")
    return [None] * len(requests)
