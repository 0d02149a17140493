"""Statements defined with SQLAlchemy's tables, run directly through the driver for speed.

SQLAlchemy compiles each statement once for a dialect. Running it then costs only what the driver
costs, without SQLAlchemy's results and types: values are the driver's. So this is for statements
with text, integers and bytes.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Dialect,
    Executable,
    Integer,
    Select,
    Table,
    and_,
    bindparam,
    func,
    insert,
    select,
    tuple_,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType

from resumes.store.identifiers import MAX_ID
from resumes.store.schema import BinaryText


class _Compiled(NamedTuple):
    """A statement for one dialect: the names of its parameters in order, and the values of those that are
    constants, such as an offset that a dialect adds."""

    sql: str
    names: tuple[str, ...]
    constants: dict[str, Any]
    types: dict[str, str]
    """The types of parameters by name, if SQLAlchemy knows them; for a server alone."""


class Prepared:
    """A statement whose parameters are `bindparam`s, given by name when it runs. If engines need
    different ones, a function returns that of a dialect."""

    def __init__(self, statement: Executable | Callable[[Dialect], Executable]) -> None:
        self._statement: Any = statement
        self._compiled: dict[str, _Compiled] = {}
        self._in_arrays: tuple[str, list[str], list[Any]] | None = None

    def bound(self, dialect: Dialect, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
        """Return the SQL, and the values of its parameters in order."""
        sql, names, constants, _ = self._for(dialect)
        if constants:
            values = {**constants, **values}
        return sql, [values[name] for name in names]

    def _for(self, dialect: Dialect) -> _Compiled:
        name = dialect.name
        if name not in self._compiled:
            statement = self._statement
            if not isinstance(statement, Executable):
                statement = statement(dialect)
            compiled: Any = statement.compile(dialect=dialect)
            constants = {key: value for key, value in compiled.params.items() if value is not None}
            types = {
                key: dialect.type_compiler_instance.process(param.type)
                for key, param in compiled.binds.items()
                if name != "sqlite" and not isinstance(param.type, NullType)
            }
            self._compiled[name] = _Compiled(
                str(compiled), tuple(compiled.positiontup), constants, types
            )
        return self._compiled[name]

    def in_arrays(
        self, dialect: Dialect, columns: Mapping[str, Sequence[Any]]
    ) -> tuple[str, list[Any]]:
        """Return one statement of PostgreSQL for many rows of values, and its parameters: for each of this
        statement's an array, given by name.

        It is planned once. A row that it finds begins with the number, from 0, of the values for which it
        was found.
        """
        if self._in_arrays is None:
            self._in_arrays = _write_in_arrays(self._for(dialect), columns)
        sql, names, constants = self._in_arrays
        return sql, [*(list(columns[name]) for name in names), *constants]

    def run(self, connection: Connection, /, **values: Any) -> Any:
        """Run the statement; return the cursor to fetch its rows from."""
        raw = driver(connection)
        run = raw.execute if connection.dialect.name == "sqlite" else raw.run
        return run(*self.bound(connection.dialect, values))

    def run_each(
        self, connection: Connection, rows: Iterable[Mapping[str, Any]]
    ) -> Sequence[Sequence[Any]]:
        """Run the statement for each row of values; return the rows that each finds.

        All are one statement for a server.
        """
        given = [*rows]
        if connection.dialect.name == "sqlite" or len(given) <= 1:
            # Fetched at once, since the driver prepares a statement again while it is in use.
            return [self.run(connection, **row).fetchall() for row in given]
        return by_number(
            driver(connection).run(*self.in_arrays(connection.dialect, columns_of(given))),
            len(given),
        )

    def run_many(self, connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run the statement for each row of values, if any."""
        names = self._for(connection.dialect).names
        self.run_rows(connection, [[row[name] for name in names] for row in rows])

    def run_rows(self, connection: Connection, rows: Sequence[Sequence[Any]]) -> None:
        """Run the statement as `run_many` does, with rows as tuples in the order of its parameters, which
        cost less than mappings.

        A server is sent the rows of an insert as arrays, together with the next statement.
        """
        sql, names, *_ = self._for(connection.dialect)
        if connection.dialect.name == "sqlite" or not sql.startswith("INSERT"):
            run_many(connection, sql, rows)
            return
        for some, size_bytes in _iter_messages(rows):
            columns = dict(zip(names, zip(*some, strict=True), strict=True))
            statement = self.in_arrays(connection.dialect, columns)
            driver(connection).run_later(*statement, size_bytes=size_bytes)


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of rows, at least one, by name."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def by_number(found: Iterable[Sequence[Any]], count: int) -> list[list[Sequence[Any]]]:
    """Return the rows that a statement in arrays found for each of `count` rows of values."""
    rows: list[list[Sequence[Any]]] = [[] for _ in range(count)]
    for row in found:
        rows[row[0]].append(row[1:])
    return rows


MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""The size of the rows that one message has, unless the first one is larger."""


def _iter_messages(
    rows: Sequence[Sequence[Any]],
) -> Iterator[tuple[Sequence[Sequence[Any]], int]]:
    """Yield the rows, as many together as one message has, and their size in bytes."""
    start = size_bytes = 0
    for at, row in enumerate(rows):
        row_bytes = sum(len(value) for value in row if isinstance(value, bytes | str))
        if at > start and size_bytes + row_bytes > MESSAGE_BYTES:
            yield rows[start:at], size_bytes
            start, size_bytes = at, 0
        size_bytes += row_bytes
    if rows:
        yield rows[start:], size_bytes


_PARAMETER: Final = re.compile("%%|%s")
_INSERT: Final = re.compile(r"(INSERT .+?) VALUES \((.+?)\)( ON CONFLICT .+)?", re.DOTALL)


def _write_in_arrays(
    compiled: _Compiled, columns: Mapping[str, Sequence[Any]]
) -> tuple[str, list[str], list[Any]]:
    """Return what `Prepared.in_arrays` needs: the SQL, the names of the arrays, and constants after them."""
    sql, names, constants, types = compiled
    given = [name for name in dict.fromkeys(names) if name not in constants]
    in_order = iter(names)

    def refer(found: re.Match[str]) -> str:
        if found[0] == "%%" or (name := next(in_order)) in constants:
            return found[0]
        return f"b.c{given.index(name)}"

    sql = _PARAMETER.sub(refer, sql)
    arrays = ", ".join(f"%b::{_type_of(name, types, columns)}[]" for name in given)
    aliases = ", ".join(f"c{number}" for number in range(len(given)))
    source = f"unnest({arrays}) AS b ({aliases})"
    if match := _INSERT.fullmatch(sql):
        insert, values, conflict = match.groups(default="")
        sql = f"{insert} SELECT {values} FROM {source}{conflict}"
    elif sql.startswith("UPDATE"):
        sql = sql.replace(" WHERE ", f" FROM {source} WHERE ", 1)
    else:
        source = f"unnest({arrays}) WITH ORDINALITY AS b ({aliases}, number)"
        # OFFSET prevents a join, for which an account might be scanned (pitfalls S24).
        sql = (
            f"SELECT b.number::int - 1, q.* FROM {source}"
            f" CROSS JOIN LATERAL (SELECT * FROM ({sql}) AS s OFFSET 0) AS q"
        )
    return sql, given, [constants[name] for name in names if name in constants]


def _type_of(name: str, types: Mapping[str, str], columns: Mapping[str, Sequence[Any]]) -> str:
    if types.get(name) == "BOOLEAN":
        return "INTEGER[]::BOOLEAN"  # rows of SQLite have numbers
    return types.get(name) or ("BYTEA" if isinstance(columns[name][0], bytes) else "TEXT")


@cache
def insert_into(table: Table) -> Prepared:
    """Return the insert of whole rows."""
    return Prepared(insert(table))


def run_many(connection: Connection, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement in the engine's own SQL for each row of values, if any."""
    if len(rows) == 1:
        raw = driver(connection)
        (raw.execute if connection.dialect.name == "sqlite" else raw.run)(sql, rows[0])
    elif rows:
        driver(connection).cursor().executemany(sql, rows)


WIDTH: Final = 64
"""How many values a prepared statement looks up at once."""

_NAMES: Final = tuple(f"v{number}" for number in range(WIDTH))
VALUES: Final[list[BindParameter[Any]]] = [bindparam(name) for name in _NAMES]


def chunks(values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the values, 64 at a time, as parameters; the last one is repeated to fill up."""
    rest = iter(values)
    while chunk := list(islice(rest, WIDTH)):
        chunk += [chunk[-1]] * (WIDTH - len(chunk))
        yield dict(zip(_NAMES, chunk, strict=True))


def limit_param(name: str) -> ColumnElement[int]:
    """Return the parameter of this name as the LIMIT of a statement.

    It is a sum, since SQLite prepares a statement again whenever a bare LIMIT parameter is bound.
    """
    limit: ColumnElement[int] = bindparam(name, type_=Integer) + 0
    return limit


def params_equal(*columns: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that each column equals the parameter of its name."""
    return and_(*(column == bindparam(column.name) for column in columns))


def pk_equals(table: Table, *key: Any) -> ColumnElement[bool]:
    """Return the condition for the row with this primary key; without `key`, parameters are the key."""
    if not key:
        return params_equal(*table.primary_key)
    return and_(*(column == part for column, part in zip(table.primary_key, key, strict=True)))


def looked_up(
    column: ColumnElement[Any],
    table: Table,
    account_id: ColumnElement[str],
    row_id: ColumnElement[str],
) -> ColumnElement[Any]:
    """Return the column of the table's row with this key, or NULL if there is none: a join of one row.

    For each row of a real join PostgreSQL may scan a whole account, since it assumes one row for an
    account that its statistics lack (pitfalls S24). A subquery is a lookup by the whole key.
    """
    is_same = (table.c.account_id == account_id) & (table.c.id == row_id)
    return select(column).where(is_same).scalar_subquery()


def upsert(table: Table, dialect: Dialect) -> Any:
    """Return the dialect's own insert, which has ON CONFLICT."""
    # Only the dialect in use is loaded: PostgreSQL's takes long to import.
    return import_module(f"sqlalchemy.dialects.{dialect.name}").insert(table)


def replace_on_conflict(statement: Any, table: Table, keeps: Collection[str] = ()) -> Any:
    """Return the upsert with a clause that replaces a row with the same primary key.

    Columns that it does not give become NULL. One in `keeps` keeps its value if the new one is NULL.
    """
    keys = [column.name for column in table.primary_key]
    new = statement.excluded
    replaced = {
        col.name: func.coalesce(new[col.name], col) if col.name in keeps else new[col.name]
        for col in table.columns
        if col.name not in keys
    }
    return statement.on_conflict_do_update(index_elements=keys, set_=replaced)


def by_engine(**templates: str) -> type[FunctionElement[str]]:
    """Return an SQL function that each engine compiles from its template, whose braces stand for the
    arguments."""

    class Function(FunctionElement[str]):
        type = BinaryText()
        inherit_cache = True

    for engine, template in templates.items():

        @compiles(Function, engine)
        def write(
            element: Any, compiler: SQLCompiler, template: str = template, **options: Any
        ) -> str:
            if "{}" not in template:  # unused arguments must not become parameters
                return template
            return template.format(compiler.process(element.clauses, **options))

    return Function


text_of = by_engine(sqlite="CAST({} AS TEXT)", postgresql="convert_from({}, 'UTF8')")
"""UTF-8 bytes as text, so that the caller need not decode them."""

rows_as_json = by_engine(
    sqlite="json_group_array(json_array({}))",
    postgresql="COALESCE(json_agg(json_build_array({})), '[]')::text",
)
"""All rows as one JSON text, an array of arrays, which is cheaper than a Python object per value."""

rare = by_engine(sqlite="unlikely({})", postgresql="({})")
"""A condition that few rows meet, so that SQLite prefers an index that begins with it to the key."""


def driver(connection: Connection) -> Any:
    """Return the driver's own connection below SQLAlchemy's."""
    return connection.connection.driver_connection


def in_order(
    statement: Select[Any], key: ColumnElement[str], cursor: Any, *, is_newest_first: bool = False
) -> Select[Any]:
    """Return the statement for the resumes that a list shows after the cursor, empty for the beginning.

    Every list and search has one of these two orders of the ids (`key`); only lists by name are sorted
    in Python. The cursor may be a parameter, whose value is that of `bound_of`.
    """
    if is_newest_first:
        bound = bound_of(cursor, is_newest_first=True) if isinstance(cursor, str) else cursor
        return statement.where(key < bound).order_by(key.desc())
    return statement.where(key > cursor).order_by(key)


def bound_of(cursor: str, *, is_newest_first: bool) -> str:
    """Return the cursor, or a bound before the first resume of the list if it is empty."""
    return cursor or (MAX_ID if is_newest_first else "")


def iter_in_pages(
    run: Callable[..., Iterable[Sequence[Any]]],
    statement: Select[Any],
    keys: Sequence[ColumnElement[Any]],
    *,
    page_rows: int,
) -> Iterator[Any]:
    """Yield a statement's rows in the order of these columns, which it selects.

    Each page of `page_rows` rows is a separate statement, which `run` runs, as `Store.fetch` does.
    """
    names = statement.selected_columns.keys()
    key_at = {f"after_{key.name}": names.index(key.name) for key in keys}
    after = (bindparam(name, type_=key.type) for name, key in zip(key_at, keys, strict=True))
    page = statement.order_by(*keys).limit(limit_param("rows"))
    following = page.where(tuple_(*keys) > tuple_(*after))
    values: dict[str, Any] = {"rows": page_rows}
    while True:
        read = 0
        for row in run(page, **values):
            read += 1
            yield row
        if read < page_rows:
            return
        page = following
        values |= {name: row[at] for name, at in key_at.items()}
