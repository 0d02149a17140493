"""Pieces of the search index in PostgreSQL."""

from collections.abc import Callable

from sqlalchemy import text

from resumes.store import Store, creating, search, search_filler
from resumes.store.accounts import AccountInfo
from resumes.store.postgresql import pieces
from resumes.store.search_pieces import Wanted
from tests.resumes.builders import a_resume

MakeAccount = Callable[..., AccountInfo]


def test_what_is_found_comes_in_order_however_much_it_is(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account(plan="business")
    count = pieces.AT_ONCE + 150
    creating.create(store, account.id, [a_resume(f"Ada {number}") for number in range(count)])
    search_filler.fill(store)
    wanted = Wanted(account.id, 1, {"ada"}, 1, count)
    with store.read() as connection:
        found = [row[1] for row in pieces.begin(connection, wanted)]
    assert len(found) == count
    assert found == sorted(found)


def test_accounts_have_nothing_in_common_in_the_index(
    store: Store, an_account: MakeAccount
) -> None:
    for name in ("ana", "bo"):
        creating.create(store, an_account(name).id, [a_resume("Ada Example")])
    search_filler.fill(store)
    with store.read() as connection:
        rows = connection.execute(text("SELECT pieces FROM search_pieces")).scalars().all()
    first, second = map(set, rows)
    assert first
    assert not first & second


def test_what_is_gone_is_not_found(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    creating.create(store, account.id, [a_resume("Ada Example")])
    search_filler.fill(store)
    (entry,) = search.find_page(store, account.id, "ada").page.entries
    from resumes.store import listing

    listing.delete_resume(store, account.id, entry.id)
    assert search.find_page(store, account.id, "ada").page.entries == []
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM search_pieces")).scalar() == 0
