from collections.abc import Sequence

import pytest
from sqlalchemy import Connection, insert, select, text

from resumes.store import Store, schema

pytestmark = pytest.mark.engines

DIRECTORIES = {
    "plans",
    "accounts",
    "deleted_accounts",
    "key_directory",
    "importers",
    "store_facts",
}


def test_every_table_but_the_directories_is_keyed_by_account_first() -> None:
    for name, table in schema.metadata.tables.items():
        if name not in DIRECTORIES:
            assert next(iter(table.primary_key.columns)).name == "account_id", name


def test_s5_nothing_cascades_from_accounts() -> None:
    for table in schema.metadata.tables.values():
        for key in table.foreign_keys:
            assert key.ondelete is None


LANGUAGES = """
    SELECT t.relname || '.' || a.attname FROM pg_attribute a
    JOIN pg_class t ON t.oid = a.attrelid
    JOIN pg_collation c ON c.oid = a.attcollation
    WHERE t.relkind = 'r' AND t.relnamespace = 'public'::regnamespace
    AND a.attnum > 0 AND c.collname <> 'C' AND t.relname <> 'alembic_version'
"""


def test_text_is_compared_by_its_bytes_whatever_the_language_of_the_server(store: Store) -> None:
    def add(connection: Connection, requests: Sequence[list[str]]) -> list[None]:
        for name in requests[0]:
            connection.execute(insert(schema.plans).values(name=name, api_listing=False))
        return [None]

    names = ["a_2", "A1", "é", "z", "Z"]
    store.write(add, names)
    with store.read() as connection:
        by_name = select(schema.plans.c.name).order_by(schema.plans.c.name)
        told = connection.execute(by_name).scalars().all()
        assert told == sorted([*names, "business", "free", "pro"])
        # A server for tests may have no other language than the bytes'.
        if store.path is None:
            assert connection.execute(text(LANGUAGES)).scalars().all() == []
