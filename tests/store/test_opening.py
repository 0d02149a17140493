"""A store: its address, how it is opened, probed and closed, its tables, and how statements are prepared."""

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from sqlalchemy import (
    Connection,
    bindparam,
    insert,
    select,
    text,
)

from resumes.errors import InvalidArgument, StoreError, StoreUnavailable
from resumes.store import Store, accounts, api_keys, open_store, plans, schema
from resumes.store.addresses import (
    PostgresAddress,
    SqliteAddress,
    find_without_secrets,
    parse_address,
)
from resumes.store.statements import Prepared, at_most
from resumes.store.write_queue import not_text
from tests.support.inbox.builders import a_full_disk
from tests.support.store.builders import hold_writer, path_of

pytestmark = pytest.mark.engines


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:////srv/resumes.db", "/srv/resumes.db"),
        ("sqlite+pysqlite:////srv/resumes.db", "/srv/resumes.db"),
        ("sqlite:////srv/ü b?c.db", "/srv/ü b?c.db"),
    ],
)
def test_a_file_is_named_by_its_path_and_shown_as_it_is(url: str, path: str) -> None:
    assert parse_address(url) == SqliteAddress(Path(path))
    assert parse_address("sqlite:///r.db") == SqliteAddress(Path.cwd() / "r.db")
    assert find_without_secrets(url) == url


def test_a_file_is_where_links_lead(tmp_path: Path) -> None:
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "r.db").symlink_to(tmp_path / "disk" / "resumes.db")
    found = parse_address(f"sqlite:///{tmp_path}/folder/r.db")
    assert found == SqliteAddress(tmp_path / "disk" / "resumes.db")
    (tmp_path / "a.db").symlink_to("b.db")
    (tmp_path / "b.db").symlink_to("a.db")
    in_a_circle = parse_address(f"sqlite:///{tmp_path}/a.db")
    assert isinstance(in_a_circle, SqliteAddress)
    assert not in_a_circle.path.exists()


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_the_way_to_a_server_is_not_the_addresss_to_say(scheme: str) -> None:
    assert parse_address(f"{scheme}://ana@host/db") == PostgresAddress("postgresql://ana@host/db")


@pytest.mark.parametrize(
    ("url", "label", "shown"),
    [
        ("postgresql://h/db", "h/db", "h/db"),
        ("postgres://h:1/db", "h:1/db", "h:1/db"),
        ("postgresql+psycopg://u@h/db", "h/db", "u@h/db"),
        ("postgresql://u:secret@h:5432/db", "h:5432/db", "u@h:5432/db"),
        ("postgresql://u:se?cret@h/db", "h/db", "u@h/db"),
        ("postgresql://u:se#cret@h/db", "h/db", "u@h/db"),
        (
            "postgresql://u:s%40%2F@a:1,b:2/db?sslmode=require",
            "a:1,b:2/db",
            "u@a:1,b:2/db?sslmode=require",
        ),
        ("postgresql://:secret@h/db", "h/db", "h/db"),
        ("postgresql://h/db?user=u&password=secret", "h/db", "h/db?user=u"),
        (
            "postgresql://u@/db?host=a&host=b&password=secret&sslmode=require&pass%77ord=secret",
            "/db?host=a&host=b",
            "u@/db?host=a&host=b&sslmode=require",
        ),
        ("postgresql://h?dbname=db&sslpassword=secret", "h?dbname=db", "h?dbname=db"),
        (
            "postgresql:///db?h%6Fst=/run/a&password=secret&hostaddr=::1&port=5433",
            "/db?h%6Fst=/run/a&hostaddr=::1&port=5433",
            "/db?h%6Fst=/run/a&hostaddr=::1&port=5433",
        ),
    ],
)
def test_no_secret_of_a_server_s_address_is_shown(url: str, label: str, shown: str) -> None:
    address = parse_address(url)

    assert isinstance(address, PostgresAddress)
    assert address.url.partition("://")[2] == url.partition("://")[2]
    assert address.label == f"postgresql://{label}"
    assert find_without_secrets(url) == f"postgresql://{shown}"
    assert address.url not in repr(address)
    assert find_without_secrets(f"postgresql://{shown}") == f"postgresql://{shown}"


@pytest.mark.parametrize(
    "url",
    [
        "", "resumes.db", "sqlite://", "sqlite:///", "sqlite:////srv/\0.db",
        "postgresql://u:sec@ret@h/db", "postgresql://u:sec/ret@h/db",
        "postgresql://u:sec/r?et@h/db", "postgresql://u:sec/r?e=t@h/db",
        "postgresql://u:sec%ret@h/db", "postgresql://u:sec%00ret@h/db",
        "postgresql://u:secret@h", "postgresql://u:secret@h/", "mysql://u:secret@h/db",
        "postgresql:/u:secret@h/db", "host=h user=u password=secret", "password=secret://",
    ],
)  # fmt: skip
def test_anything_else_is_refused_without_repeating_a_password(url: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        parse_address(url)
    assert not any(part in refusal.value.message for part in ("sec", "ret@", "secret"))
    told = ("NUL", "postgresql://USER@HOST/NAME", "write %40 for @")
    assert any(part in refusal.value.message for part in told)
    if not url.startswith("sqlite"):
        assert find_without_secrets(url) is None


def test_a_new_store_has_the_three_plans_and_keeps_what_is_written(url: str) -> None:
    with open_store(url) as store:
        found = [(one.name, one.max_resumes, one.api_listing) for one in plans.list_plans(store)]
        assert found == [("free", 5, False), ("pro", 50, False), ("business", 1000, True)]
        accounts.create_account(store, "ana")
        assert store.measure().data_bytes > 0
    with open_store(url) as store:
        assert [account.name for account in accounts.list_accounts(store)] == ["ana"]


OPEN_TOGETHER = """
    import sys
    from resumes.store import open_store, accounts
    sys.stdin.readline()
    with open_store(sys.argv[1]) as store:
        accounts.create_account(store, sys.argv[2])
"""


@pytest.mark.slow
def test_processes_that_open_a_new_store_at_once_all_come_up(place: str) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(OPEN_TOGETHER), place, f"account-{n}"],
            stdin=subprocess.PIPE,
        )
        for n in range(4)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.close()
    assert [child.wait(60) for child in children] == [0] * 4
    with open_store(place) as store:
        assert len(accounts.list_accounts(store)) == 4


def test_a_word_that_is_not_utf_8_is_refused_wherever_it_is_looked_up(store: Store) -> None:
    for call in (
        lambda: accounts.get_account(store, "a\udcff"),
        lambda: api_keys.revoke_key(store, "\udcff"),
    ):
        with pytest.raises(InvalidArgument, match=r"Not UTF-8 text: '.*udcff"):
            call()
    long = UnicodeEncodeError("utf-8", "\udcff" * 200, 0, 1, "surrogates not allowed")
    assert len(not_text(long).message) < 600


# Probing


def ping_write(store: Store, *, deadline_s: float = 2.0) -> None:
    asyncio.run(store.ping_write(deadline_s=deadline_s))


def written_bytes(store: Store) -> int:
    """How far the log has come in which everything is written first."""
    if store.path is not None:
        return store.path.with_name(f"{store.path.name}-wal").stat().st_size
    with store.read() as connection:
        end = connection.execute(text("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"))
        return int(end.scalar_one())


def test_a_store_that_works_passes_and_holds_what_it_held(store: Store, url: str) -> None:
    accounts.create_account(store, "ana")
    before_bytes = written_bytes(store)

    store.ping()
    ping_write(store)

    assert written_bytes(store) > before_bytes  # the disk took part
    with open_store(url, upgrade=False) as another:
        for one in (store, another):
            assert [account.name for account in accounts.list_accounts(one)] == ["ana"]


def test_a_store_that_is_busy_or_closed_fails(store: Store) -> None:
    go_on, holder = hold_writer(store)
    with pytest.raises(StoreUnavailable):
        ping_write(store, deadline_s=0.05)
    store.ping()
    go_on.set()
    holder.join()
    ping_write(store, deadline_s=30)
    store.close()
    with pytest.raises(StoreUnavailable):
        ping_write(store)


@pytest.mark.sqlite("its disk")
def test_a_disk_that_takes_no_more_fails_writing_and_not_reading(store: Store) -> None:
    log = path_of(store).with_name(path_of(store).name + "-wal")
    with a_full_disk(log.stat().st_size), pytest.raises(StoreError):
        ping_write(store)
    store.ping()
    ping_write(store)


@pytest.mark.sqlite("its file")
def test_a_file_that_was_removed_or_replaced_fails_both_for_good(store: Store) -> None:
    path = path_of(store)
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(StoreUnavailable):
        ping_write(store)
    path.write_bytes(content)
    with pytest.raises(StoreUnavailable):
        store.ping()
    with pytest.raises(StoreUnavailable):
        ping_write(store)


# Tables

DIRECTORIES = {
    "plans",
    "accounts",
    "deleted_accounts",
    "key_directory",
    "importers",
    "store_facts",
}


def test_s5_tables_are_keyed_by_account_first_and_nothing_cascades_from_accounts() -> None:
    for name, table in schema.metadata.tables.items():
        if name not in DIRECTORIES:
            assert next(iter(table.primary_key.columns)).name == "account_id", name
        assert {key.ondelete for key in table.foreign_keys} <= {None}


LANGUAGES = """
    SELECT t.relname || '.' || a.attname FROM pg_attribute a
    JOIN pg_class t ON t.oid = a.attrelid
    JOIN pg_collation c ON c.oid = a.attcollation
    WHERE t.relkind = 'r' AND t.relnamespace = 'public'::regnamespace
    AND a.attnum > 0 AND c.collname <> 'C' AND t.relname <> 'alembic_version'
"""


def test_text_is_compared_by_its_bytes_whatever_the_language_of_the_server(store: Store) -> None:
    names = ["a_2", "A1", "é", "z", "Z"]

    def add(connection: Connection) -> None:
        for name in names:
            connection.execute(insert(schema.plans).values(name=name, api_listing=False))

    store.write(add)
    with store.read() as connection:
        by_name = select(schema.plans.c.name).order_by(schema.plans.c.name)
        told = connection.execute(by_name).scalars().all()
        assert told == sorted([*names, "business", "free", "pro"])
        # A server for tests may have no other language than the bytes'.
        if store.path is None:
            assert connection.execute(text(LANGUAGES)).scalars().all() == []
            between = select(schema.plans).where(schema.plans.c.name.between("a", "b"))
            assert "COLLATE" not in str(between.compile(connection))


# Statements


def test_a_prepared_statement_takes_its_values_by_name_and_at_most_so_many_rows(
    store: Store,
) -> None:
    statement = (
        select(schema.plans.c.name)
        .where(schema.plans.c.api_listing == bindparam("listing"))
        .order_by(schema.plans.c.name)
        .limit(at_most("most"))
    )
    with store.read() as connection:
        run = Prepared(statement).run
        assert run(connection, listing=True, most=2).fetchall() == [("business",)]
        assert run(connection, listing=False, most=1).fetchall() == [("free",)]
        # No bare parameter, of which PostgreSQL expects a tenth of all rows.
        assert "+" in str(statement.compile(dialect=connection.dialect)).partition("LIMIT")[2]
        with pytest.raises(KeyError):
            run(connection, most=2)
