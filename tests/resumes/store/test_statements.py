import pytest
from sqlalchemy import BindParameter, Connection, LargeBinary, bindparam, func, insert, select, text

from resumes.store import Store
from resumes.store.schema import plans
from resumes.store.statements import Prepared, at_most, blob

pytestmark = pytest.mark.engines


def test_a_prepared_statement_takes_its_values_by_name(store: Store) -> None:
    statement = Prepared(
        select(plans.c.max_resumes)
        .where(plans.c.name == bindparam("name"), plans.c.api_listing == bindparam("listing"))
        .limit(bindparam("rows"))
    )
    with store.read() as connection:
        found = statement.run(connection, name="business", listing=True, rows=5).fetchall()
    assert found == [(1000,)]


def test_at_most_so_many_rows_are_found_and_their_number_is_no_bare_parameter(
    store: Store,
) -> None:
    statement = select(plans.c.name).order_by(plans.c.name).limit(at_most("most"))
    with store.read() as connection:
        sql = str(statement.compile(dialect=connection.dialect))
        found = Prepared(statement).run(connection, most=2).fetchall()
    assert "+" in sql.partition("LIMIT")[2]
    assert found == [("business",), ("free",)]


def test_a_missing_value_is_an_error_not_a_null(store: Store) -> None:
    statement = Prepared(select(plans.c.name).where(plans.c.name == bindparam("name")))
    with pytest.raises(KeyError), store.read() as connection:
        statement.run(connection)


def test_many_rows_go_in_one_call_and_none_in_none(store: Store) -> None:
    statement = Prepared(insert(plans))

    def add(connection: Connection, requests: object) -> list[None]:
        others = dict.fromkeys(plans.c.keys())
        rows = [others | {"name": f"plan-{n}", "api_listing": False} for n in range(3)]
        statement.run_many(connection, rows)
        statement.run_many(connection, [])
        return [None]

    store.write(add, None)
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM plans")).scalar_one() == 6


@pytest.mark.parametrize("content", [b"", b"\0\xff", "zoë".encode(), b"x" * 100_000])
def test_a_blob_is_kept_as_the_bytes_that_it_is_made_of(store: Store, content: bytes) -> None:
    given: BindParameter[bytes] = bindparam("given", type_=LargeBinary)
    kind, of_bytes = (func.typeof, "blob") if store.path else (func.pg_typeof, "bytea")
    statement = Prepared(select(given, kind(given), func.length(given)))
    with store.read() as connection:
        assert statement.run(connection, given=blob(content)).fetchall() == [
            (content, of_bytes, len(content))
        ]
