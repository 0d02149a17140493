"""Statements defined from the tables, run through the driver where speed counts.

SQLAlchemy compiles each statement once for a dialect; running it then costs what the driver
costs, without the result and type machinery. Values go in and out as the driver has them, so
this is for statements over text, integers and bytes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Executable
from sqlalchemy.engine.default import DefaultDialect


class Prepared:
    """A statement whose parameters are `bindparam`s, given by name when it runs."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {}

    def _for(self, connection: Connection) -> tuple[str, tuple[str, ...], dict[str, Any]]:
        name = connection.dialect.name
        if name not in self._compiled:
            dialect = connection.dialect
            assert isinstance(dialect, DefaultDialect)
            compiled: Any = self._statement.compile(dialect=dialect)  # type: ignore[attr-defined]  # Executable does not promise it
            # Values that are part of the statement, such as an offset that a dialect adds.
            constants = {key: value for key, value in compiled.params.items() if value is not None}
            self._compiled[name] = (str(compiled), tuple(compiled.positiontup), constants)
        return self._compiled[name]

    def run(self, connection: Connection, /, **values: Any) -> Any:
        """The driver's cursor after running the statement once."""
        sql, names, constants = self._for(connection)
        if constants:
            values = constants | values
        return driver(connection).execute(sql, [values[name] for name in names])

    def run_many(self, connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
        """The statement is run once for each row of values; nothing is run for none."""
        sql, names, _ = self._for(connection)
        driver(connection).executemany(sql, [[row[name] for name in names] for row in rows])


def driver(connection: Connection) -> Any:
    """The driver's own connection below SQLAlchemy's."""
    return connection.connection.driver_connection


def blob(content: bytes) -> bytearray:
    """The bytes as drivers take them at once: pysqlite looks for an adapter of each `bytes`."""
    return bytearray(content)
