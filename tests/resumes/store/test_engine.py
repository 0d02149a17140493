import subprocess
import sys
import textwrap

import pytest
from sqlalchemy import text

from resumes.errors import InvalidArgument
from resumes.store import Store, accounts, keys, open_store

pytestmark = pytest.mark.engines


def test_a_new_store_has_the_three_plans(store: Store) -> None:
    with store.read() as connection:
        rows = connection.execute(text("SELECT name, max_resumes, api_listing FROM plans")).all()
    assert sorted(map(tuple, rows)) == [("business", 1000, 1), ("free", 5, 0), ("pro", 50, 0)]


def test_what_is_written_is_there_after_opening_again(url: str) -> None:
    with open_store(url) as store:
        accounts.create_account(store, "ana")
    with open_store(url) as store:
        assert [account.name for account in accounts.list_accounts(store)] == ["ana"]


OPEN_TOGETHER = """
    import sys
    from resumes.store import open_store, accounts
    sys.stdin.readline()
    with open_store(sys.argv[1]) as store:
        accounts.create_account(store, sys.argv[2])
"""


def test_processes_that_open_a_new_store_at_once_all_come_up(place: str) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(OPEN_TOGETHER), place, f"account-{n}"],
            stdin=subprocess.PIPE,
        )
        for n in range(3)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.close()
    assert [child.wait(60) for child in children] == [0] * 3
    with open_store(place) as store:
        assert len(accounts.list_accounts(store)) == 3


def test_a_word_that_is_not_utf_8_is_refused_wherever_it_is_looked_up(store: Store) -> None:
    for call in (
        lambda: accounts.get_account(store, "a\udcff"),
        lambda: keys.revoke_key(store, "\udcff"),
    ):
        with pytest.raises(InvalidArgument, match="Not UTF-8 text"):
            call()
