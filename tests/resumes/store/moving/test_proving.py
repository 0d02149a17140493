import pytest
from sqlalchemy import Connection, text

from resumes.errors import Conflict
from resumes.store import Store
from resumes.store.engine import each
from resumes.store.moving.proving import TableDigest, check_same, encode
from tests.resumes.store.moving.builders import fill_store, held_by

pytestmark = pytest.mark.engines


def test_rows_that_differ_are_encoded_otherwise() -> None:
    rows = [
        ("a", "b"), ("ab", ""), ("", "ab"), ("a", None), (None, "a"), ("a", 1), ("a", "1"),
        ("a", b"1"), ("a", b""), ("a", "-"), ("a", 11), ("a\0", "b"),
    ]  # fmt: skip
    assert len({encode(row) for row in rows}) == len(rows)


def test_booleans_are_the_numbers_that_engines_without_them_have() -> None:
    assert encode((True, False)) == encode((1, 0))
    assert encode((memoryview(b"x"),)) == encode((b"x",))


def test_a_table_is_proved_by_every_value_of_it(store: Store) -> None:
    fill_store(store)
    before = {digest.name: digest for digest in held_by(store)}

    store.write(_change, "UPDATE documents SET document = replace(document, 'Builds', 'builds')")
    after = {digest.name: digest for digest in held_by(store)}

    assert [name for name in before if before[name] != after[name]] == ["documents"]
    assert before["documents"].rows == after["documents"].rows


@each
def _change(connection: Connection, statement: str) -> None:
    connection.execute(text(statement))


def test_the_first_table_that_differs_is_named() -> None:
    ours = [TableDigest("plans", 3, "a" * 64), TableDigest("resumes", 2, "b" * 64)]
    check_same(ours, list(ours), "sqlite:////there.db")
    theirs = [ours[0], TableDigest("resumes", 1, "c" * 64)]
    with pytest.raises(Conflict, match=r'differs in table "resumes": 2 rows .* and 1 with'):
        check_same(ours, theirs, "sqlite:////there.db")
