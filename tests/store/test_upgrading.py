"""A store of version 1.0.0 becomes one of this version, on each engine."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Engine, MetaData, inspect, text
from sqlalchemy.schema import CreateTable

from resumes.errors import StoreUnavailable
from resumes.store import accounts, api_keys, open_store
from resumes.store.addresses import PostgresAddress, parse_address
from resumes.store.import_history import list_files
from resumes.store.postgresql.connection import postgres_engine
from resumes.store.schema import metadata
from resumes.store.search import SearchResult, find_page
from resumes.store.sqlite.store import sqlite_engine
from resumes.store.store import reopen_store
from resumes.store.stored_resumes import Page, get_resume
from resumes.store.transfer import backups
from resumes.store.transfer.account_import import import_account
from tests.support.engines import Engine as Place
from tests.support.store.builders import (
    exported,
    find_flaws,
    ids_of,
    import_resumes,
    index_all,
    listed_ids,
    run_python,
)
from tests.support.stores import make_first_store

pytestmark = pytest.mark.engines

FIRST: Final = ("0001",)
"""The revisions that version 1.0.0 knows."""

KEY: Final = "enh_live_LTMHm8NNGW9V3d32JZ9JLShbjSndSZJySLHp85H36HlekZuwpViGKGMhh838UP7A"
"""A key of ana, made by version 1.0.0."""

DROPPED: Final = ("requests_per_minute", "requests_per_hour", "requests_per_day")


@pytest.fixture
def first(engine: Place, tmp_path: Path) -> Iterator[str]:
    """A store as version 1.0.0 left it."""
    folder = tmp_path / "first"
    folder.mkdir()
    with engine.a_place(folder) as url:
        make_first_store(url)
        yield url


def engine_of(url: str) -> Engine:
    address = parse_address(url)
    if isinstance(address, PostgresAddress):
        return postgres_engine(address, timeout_s=30)
    return sqlite_engine(address.path, transactions=False)


Contents = dict[str, list[dict[str, Any]]]


def contents_of(url: str) -> Contents:
    """The rows of each table that an upgrade keeps, of whatever version the store is."""
    kept = [name for name in metadata.tables if not name.startswith(("search_", "store_facts"))]
    with engine_of(url).connect() as connection:
        return {
            name: [
                dict(row) for row in connection.execute(text(f"SELECT * FROM {name}")).mappings()
            ]
            for name in sorted({*kept} & {*inspect(connection).get_table_names()})
        }


def assert_has_all(url: str, before: Contents) -> None:
    """The store has the rows that it had, and no others, in all columns that there still are."""
    after = contents_of(url)
    for name, old_rows in before.items():
        columns = [column for column in old_rows[0] if column not in DROPPED]
        old, new = (
            sorted(repr([_plain(row[column]) for column in columns]) for row in rows)
            for rows in (old_rows, after[name])
        )
        assert new == old, name


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


CATALOG = """
    SELECT table_name, row_number() OVER (PARTITION BY table_name ORDER BY ordinal_position),
        column_name || ' ' || data_type || ' ' || is_nullable || ' '
        || coalesce(collation_name, '') || ' ' || coalesce(column_default, '')
        FROM information_schema.columns WHERE table_schema = 'public'
    UNION SELECT tablename, 0, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION SELECT conrelid::regclass::text, 0, conname || ' ' || pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION SELECT relname, 0, reloptions::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION SELECT proname, 0, pg_get_functiondef(oid)
        FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION SELECT attrelid::regclass::text, attnum, attstattarget::text FROM pg_attribute
        WHERE attstattarget IS NOT NULL AND attrelid::regclass::text LIKE 'ix_search%'
"""

MADE_BY_HAND = """
    SELECT name, sql FROM sqlite_schema
    WHERE (type = 'index' AND sql IS NOT NULL) OR sql LIKE 'CREATE VIRTUAL%'
"""
WITHOUT_ROWID = """
    SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND wr = 1
"""


def tables_of(url: str) -> object:
    """All that the store's tables are: columns in order, keys, indexes, options, functions."""
    engine = engine_of(url)
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            return {tuple(row) for row in connection.execute(text(CATALOG))}
        # FTS5 makes tables of its own inside of the one that the schema names in no model.
        virtual = ("search_tokens", "search_words")
        found = MetaData()
        found.reflect(
            connection, only=lambda name, _: name not in virtual and name[:14] != "search_tokens_"
        )
        tables = {name: str(CreateTable(one).compile(engine)) for name, one in found.tables.items()}
        by_hand = {
            row.name: " ".join(row.sql.split()) for row in connection.execute(text(MADE_BY_HAND))
        }
        return tables, by_hand, set(connection.execute(text(WITHOUT_ROWID)).scalars())


def facts_of(url: str) -> dict[str, str]:
    with engine_of(url).connect() as connection:
        rows = connection.execute(text("SELECT name, value FROM store_facts"))
        return {name: value for name, value in rows if name != "store_id"}


def test_an_upgraded_store_has_the_tables_and_facts_of_a_new_one(url: str, first: str) -> None:
    for each in (url, first):
        open_store(each).close()
    assert tables_of(first) == tables_of(url)
    assert facts_of(first) == facts_of(url)


def test_an_upgraded_store_has_all_that_it_had_and_is_used_as_one_of_this_version(
    first: str, tmp_path: Path
) -> None:
    before = contents_of(first)
    assert all(before.values())
    with open_store(first) as store:
        assert_has_all(first, before)
        assert find_flaws(store) == []
        ana = accounts.get_account(store, "ana")
        old = listed_ids(store, ana)
        assert len(old) == ana.resume_count == 2
        assert get_resume(store, ana.id, old[0]).document
        assert Counter(file.outcome for file in list_files(store)) == {"done": 2, "failed": 2}
        assert api_keys.authenticate(store, KEY).account_id == ana.id
        assert find_page(store, ana.id, "-nobody") == SearchResult(Page([], None), 2)
        file = exported(store, tmp_path / "ana.db")

        new = import_resumes(store, ana, 1)
        import_account(store, file, name="copy")
        index_all(store)

        found = find_page(store, ana.id, "-nobody").page.entries
        assert [entry.id for entry in found] == old + new == listed_ids(store, ana)
        assert ids_of(store, "copy") == old
        assert find_flaws(store) == []


def test_s25_version_1_0_refuses_an_upgraded_store(first: str) -> None:
    open_store(first).close()
    # It opens a store with a revision that it knows, or that a program has to know that it knows.
    with engine_of(first).connect() as connection:
        version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    assert not {version, facts_of(first)["oldest_program"]} & {*FIRST}
    # If it runs, it reads this at the end of each write, and says that the store is being moved there.
    assert facts_of(first)["moving_to"] == "a newer version of this program"


def test_a_store_that_version_1_0_moved_stays_closed_until_it_is_reopened(first: str) -> None:
    with engine_of(first).connect() as connection:
        for name, value in {"moving_to": "sqlite:////srv/new.db", "copy_id": "1"}.items():
            connection.execute(text("DELETE FROM store_facts WHERE name = :name"), {"name": name})
            connection.execute(
                text("INSERT INTO store_facts VALUES (:name, :value)"),
                {"name": name, "value": value},
            )
    with open_store(first) as store:
        with pytest.raises(
            StoreUnavailable, match=r"is being moved to sqlite:////srv/new\.db, or has"
        ):
            accounts.create_account(store, "new")
        # A copy by version 1.0.0 that is still running and fails makes nothing writable.
        assert facts_of(first)["copy_id"] == ""
        assert reopen_store(store) == "sqlite:////srv/new.db"
        accounts.create_account(store, "new")
    assert facts_of(first)["moving_to"]


def test_a_backup_of_version_1_0_is_restored(place: str, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    make_first_store(f"sqlite:///{backup}")
    before, content = contents_of(f"sqlite:///{backup}"), backup.read_bytes()

    assert backups.restore(backup, place).resumes == 4

    assert backup.read_bytes() == content
    # New ids begin above the clock, and the importers and their requests are those of the old store.
    for name in ("account_usage", "importers", "import_requests"):
        del before[name]
    assert_has_all(place, before)
    with open_store(place, upgrade=False) as store:
        assert find_flaws(store) == []
        assert api_keys.authenticate(store, KEY).account_id == accounts.get_account(store, "ana").id


KILLED_UPGRADES = """
    import os, sys
    import alembic.command, sqlalchemy
    from resumes.store import open_store
    from tests.store.test_upgrading import check_older

    def upgrade_up_to(step):
        steps = iter(range(step))
        def count(*_):
            if next(steps, None) is None:
                os.kill(os.getpid(), 9)
        def watch(event, _):
            if event in ("os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir"):
                count()
        sys.addaudithook(watch)
        for name in ("before_cursor_execute", "commit"):
            sqlalchemy.event.listen(sqlalchemy.Engine, name, count)
        open_store(sys.argv[1]).close()

    step = 0
    while True:
        process = os.fork()
        if not process:
            upgrade_up_to(step)
            os._exit(0)
        _, status = os.waitpid(process, 0)
        if not status:
            break
        assert status == 9, status
        print(step, check_older(sys.argv[1]), flush=True)
        step += 1
"""


def check_older(url: str) -> str:
    """Check what a killed upgrade has left: the store as it was, or as it should be, and no half of a backup."""
    with engine_of(url).connect() as connection:
        version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        tables = inspect(connection).get_table_names()
    assert ("search_words" in tables) == (version != "0001")
    address = parse_address(url)
    if not isinstance(address, PostgresAddress):
        for backup in address.path.parent.glob("*.before-*"):
            assert len(contents_of(f"sqlite:///{backup}")["resumes"]) == 4
    return str(version)


@pytest.mark.slow
def test_an_upgrade_that_is_killed_at_any_step_is_done_by_the_next(
    first: str, url: str, tmp_path: Path
) -> None:
    before = contents_of(first)

    killed = run_python(KILLED_UPGRADES, first)

    assert killed.returncode == 0, killed.stderr
    steps = killed.stdout.splitlines()
    assert len(steps) > 40
    with open_store(first, upgrade=False) as store:
        assert_has_all(first, before)
        assert find_flaws(store) == []
    assert tables_of(first) == tables_of(url)
    assert facts_of(first) == facts_of(url)
    assert not [path for path in tmp_path.rglob("*.scratch/*") if path.stat().st_size]
