"""Statements that are defined with SQLAlchemy's tables, but run directly by the driver for speed.

SQLAlchemy compiles each statement once per dialect. The driver then runs it without SQLAlchemy's
results and types, so values are the driver's values. This is suitable for text, integers and bytes.
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
    """A statement for one dialect: its SQL, the names of its parameters in order, and the values of
    constant parameters, such as an offset that a dialect adds."""

    sql: str
    names: tuple[str, ...]
    constants: dict[str, Any]
    types: dict[str, str]
    """The types of parameters by name, as far as SQLAlchemy knows them. Empty on SQLite."""


class Prepared:
    """A statement whose parameters are `bindparam`s, which get values by name when it runs.

    If engines need different statements, a function returns the statement for a dialect.
    """

    def __init__(self, statement: Executable | Callable[[Dialect], Executable]) -> None:
        self._statement: Any = statement
        self._compiled: dict[str, _Compiled] = {}
        self._in_arrays: tuple[str, list[str], list[Any]] | None = None

    def bound(self, dialect: Dialect, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
        """Return the SQL and the values of its parameters, in order."""
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
        """Return one PostgreSQL statement for many rows of values, and its parameters.

        `columns` contains an array of values for each parameter of this statement, by name.
        PostgreSQL plans the statement only once. If it is a query, each row that it finds begins
        with the number of the row of values, from 0, for which it was found.
        """
        if self._in_arrays is None:
            self._in_arrays = _write_in_arrays(self._for(dialect), columns)
        sql, names, constants = self._in_arrays
        return sql, [*(list(columns[name]) for name in names), *constants]

    def run(self, connection: Connection, /, **values: Any) -> Any:
        """Run the statement, and return a cursor with its rows."""
        return driver(connection).execute(*self.bound(connection.dialect, values))

    def run_each(
        self, connection: Connection, rows: Iterable[Mapping[str, Any]]
    ) -> Sequence[Sequence[Any]]:
        """Run the statement for each row of values, and return the rows found for each.

        On PostgreSQL, this is a single statement unless the store is sharded.
        """
        given = [*rows]
        is_alone = len(given) <= 1 or is_sharded(connection)
        if connection.dialect.name == "sqlite" or is_alone:
            # Fetch all rows before the next run, or the driver prepares the statement again.
            return [self.run(connection, **row).fetchall() for row in given]
        return by_number(
            driver(connection).execute(*self.in_arrays(connection.dialect, columns_of(given))),
            len(given),
        )

    def run_many(self, connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run the statement for each row of values, if there are any."""
        names = self._for(connection.dialect).names
        self.run_rows(connection, [[row[name] for name in names] for row in rows])

    def run_rows(self, connection: Connection, rows: Sequence[Sequence[Any]]) -> None:
        """Run the statement for each row, a sequence of values in the order of the parameters.

        Sequences cost less than the mappings of `run_many`. On PostgreSQL, the rows of an insert
        are sent as arrays, together with the next statement.
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
    """Return a list of values for each name in the rows. There must be at least one row."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def by_number(found: Iterable[Sequence[Any]], count: int) -> list[list[Sequence[Any]]]:
    """Group the rows that a statement of `in_arrays` found by the number at their beginning."""
    rows: list[list[Sequence[Any]]] = [[] for _ in range(count)]
    for row in found:
        rows[row[0]].append(row[1:])
    return rows


MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""The maximum size of the rows in a message, unless a single row is larger."""


def _iter_messages(rows: Sequence[Sequence[Any]]) -> Iterator[tuple[Sequence[Sequence[Any]], int]]:
    """Yield as many rows as fit into a message, together with their size in bytes."""
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
    """Return the SQL for `in_arrays`, the names of its arrays, and the constants that follow
    them."""
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
        # OFFSET prevents a join, which might scan the account (pitfalls S24).
        sql = (
            f"SELECT b.number::int - 1, q.* FROM {source}"
            f" CROSS JOIN LATERAL (SELECT * FROM ({sql}) AS s OFFSET 0) AS q"
        )
    return sql, given, [constants[name] for name in names if name in constants]


def _type_of(name: str, types: Mapping[str, str], columns: Mapping[str, Sequence[Any]]) -> str:
    if types.get(name) == "BOOLEAN":
        return "INTEGER[]::BOOLEAN"  # the rows that SQLite returns contain integers
    return types.get(name) or ("BYTEA" if isinstance(columns[name][0], bytes) else "TEXT")


@cache
def insert_into(table: Table) -> Prepared:
    """Return the statement that inserts rows with all columns of the table."""
    return Prepared(insert(table))


def run_many(connection: Connection, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement, in the engine's own SQL, for each row of values, if there are any."""
    if len(rows) == 1:
        driver(connection).execute(sql, rows[0])
    elif rows:
        driver(connection).cursor().executemany(sql, rows)


WIDTH: Final = 64
"""The number of values that a prepared statement looks up at once."""

_NAMES: Final = tuple(f"v{number}" for number in range(WIDTH))
VALUES: Final[list[BindParameter[Any]]] = [bindparam(name) for name in _NAMES]


def chunks(values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield 64 values at a time as parameters; repeat the last value if fewer are left."""
    rest = iter(values)
    while chunk := list(islice(rest, WIDTH)):
        chunk += [chunk[-1]] * (WIDTH - len(chunk))
        yield dict(zip(_NAMES, chunk, strict=True))


def limit_param(name: str) -> ColumnElement[int]:
    """Return a parameter with this name for the LIMIT of a statement.

    It is part of a sum: SQLite prepares a statement again when a bare LIMIT parameter is bound.
    """
    limit: ColumnElement[int] = bindparam(name, type_=Integer) + 0
    return limit


def params_equal(*columns: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that each column equals the parameter with the column's name."""
    return and_(*(column == bindparam(column.name) for column in columns))


def pk_equals(table: Table, *key: Any) -> ColumnElement[bool]:
    """Return the condition for the row with this primary key, or with a key in parameters."""
    if not key:
        return params_equal(*table.primary_key)
    return and_(*(column == part for column, part in zip(table.primary_key, key, strict=True)))


def looked_up(
    column: ColumnElement[Any],
    table: Table,
    account_id: ColumnElement[str] | str,
    row_id: ColumnElement[str],
) -> ColumnElement[Any]:
    """Return a subquery for a column of the row with this key, or NULL if there is no such row.

    It replaces a join, because PostgreSQL may scan the account for each row of a join: it assumes
    one row for an account that its statistics lack (pitfalls S24). The subquery looks up the row by
    its full key. If the account is known, pass its ID or a parameter: with a column, Citus asks all
    shards.
    """
    is_same = (table.c.account_id == account_id) & (table.c.id == row_id)
    return select(column).where(is_same).scalar_subquery()


def upsert(table: Table, dialect: Dialect) -> Any:
    """Return the dialect's own insert, which supports ON CONFLICT."""
    # Import only the dialect in use, because importing PostgreSQL's takes long.
    return import_module(f"sqlalchemy.dialects.{dialect.name}").insert(table)


def replace_on_conflict(statement: Any, table: Table, keeps: Collection[str] = ()) -> Any:
    """Return the insert with a clause that replaces a row with the same primary key.

    Columns without a new value become NULL, but a column in `keeps` keeps its value instead.
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
    """Return an SQL function that is compiled from the engine's template, in which `{}` stands for
    the arguments."""

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
"""Converts UTF-8 bytes to text, so that the caller need not decode them."""

rows_as_json = by_engine(
    sqlite="json_group_array(json_array({}))",
    postgresql="COALESCE(json_agg(json_build_array({})), '[]')::text",
)
"""Returns all rows as one JSON text (an array of arrays), which costs less than Python objects."""

rare = by_engine(sqlite="unlikely({})", postgresql="({})")
"""Marks a condition that few rows meet, so that SQLite prefers its index to the primary key."""


def driver(connection: Connection) -> Any:
    """Return the driver's connection that SQLAlchemy's connection uses."""
    return connection.connection.driver_connection


def is_sharded(connection: Connection) -> bool:
    """Return whether the store's rows may be on several servers.

    A statement should then specify the same account for each of its tables.
    """
    return bool(connection.get_execution_options().get("is_sharded"))


def in_order(
    statement: Select[Any], key: ColumnElement[str], cursor: Any, *, is_newest_first: bool = False
) -> Select[Any]:
    """Restrict the statement to the resumes after the cursor, in the order of the list.

    An empty cursor is the beginning of the list. Every list and search is in ascending or
    descending order of the IDs (`key`), except lists by name, which are sorted in Python. The
    cursor may be a parameter, whose value `bound_of` returns.
    """
    if is_newest_first:
        bound = bound_of(cursor, is_newest_first=True) if isinstance(cursor, str) else cursor
        return statement.where(key < bound).order_by(key.desc())
    return statement.where(key > cursor).order_by(key)


def bound_of(cursor: str, *, is_newest_first: bool) -> str:
    """Return the cursor; if it is empty, return a bound before the first resume of the list."""
    return cursor or (MAX_ID if is_newest_first else "")


def iter_in_pages(
    run: Callable[..., Iterable[Sequence[Any]]],
    statement: Select[Any],
    keys: Sequence[ColumnElement[Any]],
    *,
    page_rows: int,
) -> Iterator[Any]:
    """Yield a statement's rows, sorted by the columns `keys`, which the statement must select.

    Each page of `page_rows` rows is a separate statement, which `run` executes like `Store.fetch`.
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
