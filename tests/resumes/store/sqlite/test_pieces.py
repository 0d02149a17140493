"""Pieces of the search index in an FTS5 table."""

from collections.abc import Callable

import pytest

from resumes.store import Store, creating, listing, search_filler
from resumes.store.accounts import AccountInfo
from resumes.store.search_pieces import Wanted
from resumes.store.sqlite import pieces
from tests.resumes.store.builders import a_person, indexed_pieces

pytestmark = pytest.mark.sqlite("its index")


def test_an_account_is_found_within_its_own_range_of_rows(
    store: Store, an_account: Callable[..., AccountInfo]
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    for account in (ana, bo):
        creating.create(store, account.id, [a_person("Ada"), a_person("Adam")])
        search_filler.fill(store)
    wanted = Wanted(bo.id, 2, {"ada"}, 1, 2)
    with store.read() as connection:
        found = [row[1] for row in pieces.begin(connection, wanted)]
    assert found == [entry.id for entry in listing.list_page(store, bo.id).entries]


def test_pieces_stand_in_the_index_as_digits(
    store: Store, an_account: Callable[..., AccountInfo]
) -> None:
    creating.create(store, an_account().id, [a_person('Ada "OR" *')])
    search_filler.fill(store)
    held = indexed_pieces(store)
    assert held
    assert all(set(piece) <= set("0123456789abcdef") for piece in held)
