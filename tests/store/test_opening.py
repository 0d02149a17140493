"""A store: its address, how it is opened, probed and closed, its tables, and its statements."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlmodel import Session

from resumes.errors import InvalidArgument, StoreError, StoreUnavailable
from resumes.store import (
    Store,
    accounts,
    api_keys,
    creation,
    import_history,
    labels,
    open_store,
    plans,
    schema,
    stored_resumes,
    versions,
)
from resumes.store.accounts import AccountInfo
from resumes.store.addresses import (
    PostgresAddress,
    SqliteAddress,
    find_without_secrets,
    parse_address,
)
from resumes.store.idempotency import prune_async
from resumes.store.import_history import count_files
from resumes.store.import_ledger import FileOutcome
from resumes.store.statements import driver
from resumes.store.stored_resumes import Sort
from resumes.store.write_queue import not_text
from tests.store.conftest import SteppingClock
from tests.support.inbox.builders import a_full_disk
from tests.support.resumes import a_resume
from tests.support.store.builders import a_file, hold_writer, path_of
from tests.support.tenants import TENANT_TABLES

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


def test_a_store_that_works_passes_and_one_that_is_busy_or_closed_fails(store: Store) -> None:
    accounts.create_account(store, "ana")
    before_bytes = written_bytes(store)
    store.ping()
    ping_write(store)
    assert written_bytes(store) > before_bytes  # the disk took part
    assert [account.name for account in accounts.list_accounts(store)] == ["ana"]

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


# Tables

DIRECTORIES = {
    "plans",
    "accounts",
    "deleted_accounts",
    "forgotten",
    "key_directory",
    "importers",
    "store_facts",
}


def test_s5_tables_are_keyed_by_account_first_and_nothing_cascades_from_accounts() -> None:
    for name, table in schema.metadata.tables.items():
        if name not in DIRECTORIES:
            assert next(iter(table.primary_key.columns)).name == "account_id", name
        assert {key.ondelete for key in table.foreign_keys} <= {None}
    assert set(schema.metadata.tables) - TENANT_TABLES == DIRECTORIES


LANGUAGES = """
    SELECT t.relname || '.' || a.attname FROM pg_attribute a
    JOIN pg_class t ON t.oid = a.attrelid
    JOIN pg_collation c ON c.oid = a.attcollation
    WHERE t.relkind = 'r' AND t.relnamespace = 'public'::regnamespace
    AND a.attnum > 0 AND c.collname <> 'C' AND t.relname <> 'alembic_version'
"""


def test_text_is_compared_by_its_bytes_whatever_the_language_of_the_server(store: Store) -> None:
    names = ["a_2", "A1", "é", "z", "Z"]

    def add(session: Session) -> None:
        session.add_all(schema.Plan(name=name) for name in names)

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


# Query plans of what is asked often: by an index, and through no more than it needs

NOT_DONE = "COVERING INDEX ix_imported_files_not_done"
FAILED = FileOutcome.FAILED

CALLS: dict[str, tuple[Callable[[Store, str, str], Any], str]] = {
    "a page of resumes": (
        lambda store, ana, _: stored_resumes.list_page(store, ana, cursor="0" * 24),
        "resumes USING PRIMARY KEY (account_id=? AND id>?)",
    ),
    "the newest resumes": (
        lambda store, ana, _: stored_resumes.list_page(
            store, ana, cursor="f" * 24, is_newest_first=True
        ),
        "resumes USING PRIMARY KEY (account_id=? AND id<?)",
    ),
    "a page of a label": (
        lambda store, ana, _: stored_resumes.list_page(store, ana, cursor="0" * 24, label="a"),
        "resumes USING INDEX ix_resumes_label (account_id=? AND label=? AND id>?)",
    ),
    "the newest resumes of a label": (
        lambda store, ana, _: stored_resumes.list_page(
            store, ana, cursor="f" * 24, label="a", is_newest_first=True
        ),
        "resumes USING INDEX ix_resumes_label (account_id=? AND label=? AND id<?)",
    ),
    "a label by name": (
        lambda store, ana, _: stored_resumes.list_sorted(store, ana, Sort.NAME, label="a"),
        "resumes USING INDEX ix_resumes_label (account_id=? AND label=?)",
    ),
    "the labels": (
        lambda store, ana, _: labels.list_labels(store, ana),
        "COVERING INDEX ix_resumes_label (account_id=? AND label>?)",
    ),
    "each person's newest": (
        lambda store, ana, _: stored_resumes.list_page(store, ana, cursor="0" * 24, is_latest=True),
        "later USING COVERING INDEX ix_resumes_person (account_id=? AND (person,id)>(?,?))",
    ),
    "how many versions there are": (
        lambda store, ana, _: versions.count_versions(store, ana, ["0" * 24]),
        "other USING COVERING INDEX ix_resumes_person (account_id=? AND person>? AND person<?)",
    ),
    "the newest files": (
        lambda store, ana, _: import_history.list_files(store, account_id=ana),
        "PRIMARY KEY (account_id=? AND claim_id>? AND claim_id<?)",
    ),
    "files that failed": (
        lambda store, *_: import_history.list_files(store, outcome=FAILED),
        NOT_DONE,
    ),
    "files of a reason": (
        lambda store, *_: import_history.list_files(store, reason="too_large"),
        NOT_DONE,
    ),
    "a file": (
        lambda store, ana, _: import_history.get_file(store, "1" * 24, account_id=ana),
        "PRIMARY KEY (account_id=? AND claim_id=?)",
    ),
    "what an account holds": (
        lambda store, ana, _: accounts.get_summary(store, ana),
        "COVERING INDEX ix_imported_files_not_done (account_id=?)",
    ),
    "how many are not done": (lambda store, *_: count_files(store, not_done_only=True), NOT_DONE),
    "a key": (
        lambda store, _, secret: api_keys.authenticate(store, secret),
        "key_directory USING PRIMARY KEY (key_hash=?)",
    ),
    "keys that are too old": (
        lambda store, *_: asyncio.run(prune_async(store)),
        "ix_idempotency_created_at (created_at<?)",
    ),
}


@pytest.mark.sqlite("how it goes about a statement")
@pytest.mark.parametrize("what", CALLS)
def test_no_more_is_read_than_is_asked_for(store: Store, clock: SteppingClock, what: str) -> None:
    ana: AccountInfo = accounts.create_account(store, "ana", plan="business")
    secret = api_keys.create_key(store, "ana").secret
    creation.create(store, ana.id, [a_resume(idempotency="k")])
    a_file(store, ana, "1" * 24)
    clock.advance(timedelta(days=2).total_seconds())
    call, way = CALLS[what]
    statements: list[str] = []
    with store.read() as connection:
        raw = driver(connection)
        raw.set_trace_callback(statements.append)
        call(store, ana.id, secret)
        raw.set_trace_callback(None)
        steps = [
            row[-1]
            for sql in statements
            if sql.startswith(("SELECT", "WITH"))
            for row in raw.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
        ]
    assert any(way in step for step in steps), steps
    large = ("resumes", "documents", "imported_files", "idempotency", "key_directory")
    assert not [
        step
        for step in steps
        if step.startswith("SCAN") and "COVERING" not in step and step.split()[1] in large
    ]
    assert not any("TEMP B-TREE" in step and "GROUP BY" not in step for step in steps)
