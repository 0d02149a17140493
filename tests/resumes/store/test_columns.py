"""Columns that are alike on every engine."""

from sqlalchemy import Column, MetaData, Table, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from resumes.store.columns import Text

POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]
TABLE = Table("things", MetaData(), Column("name", Text, primary_key=True))


def test_postgresql_compares_text_by_its_bytes() -> None:
    made = str(CreateTable(TABLE).compile(dialect=POSTGRESQL))
    assert 'name TEXT COLLATE "C" NOT NULL' in made


def test_sqlite_does_so_by_itself() -> None:
    assert "name TEXT NOT NULL" in str(CreateTable(TABLE).compile(dialect=sqlite.dialect()))


def test_a_value_takes_the_columns_collation() -> None:
    statement = select(TABLE).where(TABLE.c.name.between("a", "b"))
    assert "COLLATE" not in str(statement.compile(dialect=POSTGRESQL))
