"""Making a store in PostgreSQL, and bringing it up to date, with others who want the same."""

import shutil
import subprocess
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import psycopg
import pytest
from sqlalchemy import text
from sqlmodel import Session

from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.store import accounts, creation, migrations, open_store
from resumes.store.addresses import PostgresAddress
from resumes.store.postgresql import store as postgresql_store
from resumes.store.postgresql.store import transaction_on
from resumes.store.store import close_store, set_facts
from resumes.store.transfer import copies
from tests.support.postgres import WAITS, Server, count_sessions, programs
from tests.support.resumes import a_resume
from tests.support.store.builders import fill_store
from tests.support.waiting import wait_until

LAST = migrations.list_revisions()[-1]
NEXT = f"{int(LAST) + 1:04}"

ADD_COLUMN = """
    import sqlalchemy as sa
    from alembic import op
    revision = "NEXT"
    down_revision = "LAST"
    SAYS
    def upgrade():
        op.add_column("accounts", sa.Column("note", sa.Text))
"""


Upgrade = Callable[..., None]
"""Upgrade the store at an address by a program with one more revision, which `says` so of itself."""


@pytest.fixture
def upgrade(tmp_path: Path) -> Upgrade:
    folder = tmp_path / "migrations"
    shutil.copytree(migrations.FOLDER, folder)

    def upgrade_by_next(url: str, says: str = "") -> None:
        code = textwrap.dedent(ADD_COLUMN)
        for word, by in (("NEXT", NEXT), ("LAST", LAST), ("SAYS", says)):
            code = code.replace(word, by)
        (folder / "versions" / f"{NEXT}_next.py").write_text(code)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(migrations, "FOLDER", folder)
            open_store(url).close()

    return upgrade_by_next


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


def test_one_of_those_who_open_an_empty_database_makes_the_store_and_the_others_wait(
    url: str,
) -> None:
    with psycopg.connect(url) as other, ThreadPoolExecutor(3) as pool:
        other.execute("CREATE TABLE plans ()")  # as somebody else may, who is given up
        opened = [pool.submit(open_store, url) for _ in range(3)]
        wait_until(lambda: count_sessions(url, WAITS) == 3)
        other.rollback()
        for call in opened:
            with call.result(timeout=30) as store:
                assert accounts.list_accounts(store) == []


def test_an_older_store_is_upgraded_with_what_it_holds_or_stays_as_it_was(
    url: str, upgrade: Upgrade
) -> None:
    with open_store(url) as store:
        account = accounts.create_account(store, "ana")
        creation.create(store, account.id, [a_resume()])
    with pytest.raises(ImportError):
        upgrade(url, says="import resumes.does_not_exist")
    with open_store(url, upgrade=False) as store:
        assert [one.name for one in accounts.list_accounts(store)] == ["ana"]
    upgrade(url)
    assert rows(url, "SELECT name, note FROM accounts") == [("ana", None)]
    assert rows(url, "SELECT count(*) FROM documents") == [(1,)]
    with pytest.raises(StoreIncompatible, match=rf"newer version \(schema {NEXT}.* {LAST}\)"):
        open_store(url)


REFUSE_ALTER = """
    CREATE SEQUENCE tries;
    CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM nextval('tries'); RAISE 'no' USING ERRCODE = '%s'; END $$;
    CREATE EVENT TRIGGER refuses ON ddl_command_end WHEN TAG IN ('ALTER TABLE')
        EXECUTE FUNCTION refuse();
"""


@pytest.mark.parametrize("state", ["23505", "XX000"])
def test_an_error_that_a_migration_would_raise_again_is_told_at_once(
    url: str, upgrade: Upgrade, state: str
) -> None:
    open_store(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((REFUSE_ALTER % state).encode())
        with pytest.raises(StoreUnavailable, match=state):
            upgrade(url)
        assert connection.execute("SELECT last_value FROM tries").fetchone() == (1,)


def test_s25_a_running_program_writes_no_more_once_a_newer_one_has_upgraded_the_store(
    url: str, upgrade: Upgrade
) -> None:
    with open_store(url) as running:
        account = accounts.create_account(running, "ana")
        upgrade(url)
        for write in (
            lambda: creation.create(running, account.id, [a_resume()]),
            lambda: accounts.create_account(running, "bob"),
            lambda: close_store(running, "sqlite:////elsewhere.db", "1"),
        ):
            with pytest.raises(
                StoreUnavailable, match=rf"newer version \(schema {NEXT}.* {LAST}\)"
            ):
                write()
    assert rows(
        url, "SELECT name, resume_count FROM accounts JOIN account_usage ON account_id = id"
    ) == [("ana", 0)]
    assert rows(url, "SELECT value FROM store_facts WHERE name = 'closed_for'") == [("",)]


def test_s25_an_upgrade_waits_for_a_write_that_has_begun(url: str, upgrade: Upgrade) -> None:
    has_written, may_commit = Event(), Event()

    def slowly(session: Session) -> None:
        set_facts(session, probe="written")
        has_written.set()
        may_commit.wait(30)

    with open_store(url) as running, ThreadPoolExecutor(2) as pool:
        written = pool.submit(running.write, slowly)
        assert has_written.wait(30)
        upgraded = pool.submit(upgrade, url)
        wait_until(lambda: count_sessions(url, WAITS) == 1)
        may_commit.set()
        written.result(30)
        upgraded.result(30)
    assert rows(url, "SELECT value FROM store_facts WHERE name = 'probe'") == [("written",)]


def test_an_upgrade_waits_for_others_only_so_long_and_changes_nothing_then(
    url: str, upgrade: Upgrade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_store, "TABLES_TIMEOUT", "SET LOCAL lock_timeout = '50ms'")
    open_store(url).close()
    with psycopg.connect(url) as other:
        other.execute("SELECT count(*) FROM resumes")
        with pytest.raises(StoreUnavailable, match=r"must be upgraded, but is in use\. Stop every"):
            upgrade(url)
    open_store(url, upgrade=False).close()
    upgrade(url)


def test_nodes_of_two_versions_use_a_store_together_when_the_newer_one_allows_it(
    url: str, upgrade: Upgrade
) -> None:
    with open_store(url) as running:
        upgrade(url, says=f'oldest_program = "{LAST}"')
        account = accounts.create_account(running, "ana")
        creation.create(running, account.id, [a_resume()])
        with open_store(url) as started_later:
            assert accounts.get_account(started_later, "ana").resume_count == 1
    assert rows(url, "SELECT version_num FROM alembic_version") == [(NEXT,)]


def test_an_empty_database_or_that_of_another_program_is_refused_and_left_alone(url: str) -> None:
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    with pytest.raises(StoreIncompatible, match=r"is empty\. Run `resumes db upgrade`"):
        open_store(url, upgrade=False)
    assert rows(url, tables) == []
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE accounts (id integer)")
    with pytest.raises(StoreIncompatible, match=r"belongs to another program.*table accounts"):
        open_store(url)
    assert rows(url, tables) == [("accounts",)]


DEFAULTS = {"default_transaction_read_only": "on", "default_transaction_isolation": "serializable"}


@pytest.mark.slow
@pytest.mark.parametrize("setting", DEFAULTS)
def test_a_database_with_defaults_of_its_own_is_made_filled_and_copied(
    server: Server, tmp_path: Path, setting: str
) -> None:
    first, second = server.make_database(), server.make_database()
    with open_store(server.url(first)) as store:
        fill_store(store)
    for name in (first, second):
        server.execute(f"ALTER DATABASE {name} SET {setting} = '{DEFAULTS[setting]}'")
    with open_store(server.url(first)) as store:
        digests = copies.copy(store, server.url(second))
    with open_store(server.url(second)) as store:
        assert copies.copy(store, f"sqlite:///{tmp_path / 'copy.db'}") == digests
    for name in (first, second):
        server.drop_database(name)


@pytest.mark.parametrize(
    "setting", ["statement_timeout", "transaction_timeout", "idle_in_transaction_session_timeout"]
)
def test_what_takes_long_has_no_limits_of_the_database(
    server: Server, url: str, setting: str
) -> None:
    if not server.execute(f"SELECT 1 FROM pg_settings WHERE name = '{setting}'"):
        pytest.skip(f"PostgreSQL {server.version} has no {setting}")
    server.execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET {setting} = '1min'")
    with open_store(url) as store:
        for transaction in (store.snapshot(), transaction_on(PostgresAddress(url))):
            with transaction as connection:
                assert connection.execute(text(f"SHOW {setting}")).scalar() in ("0", "1h")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_lacks_characters_is_refused_and_left_alone(
    server: Server, encoding: str
) -> None:
    name = f"encoded_{encoding.lower()}"
    server.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    url = server.url(name)
    for may_upgrade in (True, False):
        with pytest.raises(StoreIncompatible, match=f"encoding {encoding}.*--encoding UTF8"):
            open_store(url, upgrade=may_upgrade)
    assert rows(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]


def test_s18_the_rows_that_every_create_rewrites_have_room_for_it(url: str) -> None:
    open_store(url).close()
    options = rows(url, "SELECT reloptions FROM pg_class WHERE relname = 'account_usage'")
    assert options == [(["fillfactor=50"],)]


@pytest.mark.parametrize(
    "options", [[], ["--schema-only"], ["--exclude-table-data=alembic_version"]]
)
def test_a_store_that_was_loaded_from_a_dump_of_an_empty_one_is_current_if_it_has_its_rows(
    server: Server, url: str, options: list[str]
) -> None:
    open_store(url).close()
    there, folder = server.url(server.make_database()), programs(server.version)
    dump = subprocess.run([folder / "pg_dump", *options, url], check=True, capture_output=True)
    subprocess.run(
        [folder / "psql", "--quiet", there], input=dump.stdout, check=True, capture_output=True
    )
    if options:
        with pytest.raises(StoreIncompatible, match="has tables, but no schema version"):
            open_store(there)
        return
    with open_store(there, upgrade=False) as store:
        accounts.create_account(store, "ana")
