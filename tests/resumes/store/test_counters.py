from collections.abc import Callable

import pytest
from sqlalchemy import text

from resumes.store import Store, counters, creating
from resumes.store.accounts import AccountInfo
from resumes.store.counters import ResumeCounter
from tests.resumes.builders import a_resume

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def lie(store: Store, account: AccountInfo) -> None:
    """The account's counter says that it holds nine resumes."""
    statement = text("UPDATE account_usage SET resume_count = 9 WHERE account_id = :id")
    store.write(
        lambda connection, requests: [
            connection.execute(statement, {"id": account.id}).rowcount for _ in requests
        ],
        None,
    )


def test_a_counter_that_is_wrong_is_found(store: Store, an_account: MakeAccount) -> None:
    account = an_account("ana")
    an_account("bob")
    creating.create(store, account.id, [a_resume()])
    assert counters.list_wrong(store) == []
    lie(store, account)
    assert counters.list_wrong(store) == [ResumeCounter("ana", 9, 1)]


def test_wrong_counters_are_in_the_order_of_names(store: Store, an_account: MakeAccount) -> None:
    names = ["dan", "ana", "eve", "cy", "bo"]
    for account in [an_account(name) for name in names]:
        lie(store, account)
    assert [one.account for one in counters.list_wrong(store)] == sorted(names)


def test_the_counter_of_one_account_is_held_against_its_own_resumes(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bob = an_account("ana"), an_account("bob")
    creating.create(store, ana.id, [a_resume(), a_resume()])
    lie(store, bob)
    with store.read() as connection:
        assert counters.find_counter(connection, ana.id) == ResumeCounter("ana", 2, 2)
        assert counters.find_counter(connection, bob.id) == ResumeCounter("bob", 9, 0)
        assert counters.find_counter(connection, "f" * 16) is None
