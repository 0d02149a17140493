import pytest

from resumes.store import Store, search_index
from resumes.store.postgresql import pieces as postgresql_pieces
from resumes.store.search_pieces import Pieces
from resumes.store.sqlite import pieces as sqlite_pieces

pytestmark = pytest.mark.engines


def test_each_engine_keeps_pieces_in_its_own_way(store: Store) -> None:
    with store.read() as connection:
        pieces: Pieces = search_index.pieces_of(connection)
    assert pieces is (sqlite_pieces if store.path else postgresql_pieces)
