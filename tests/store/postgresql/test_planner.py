"""The plans that come of statements before the planner has statistics of an account."""

import itertools
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import bindparam, text
from sqlalchemy.dialects import postgresql

from resumes.store import (
    Store,
    accounts,
    creation,
    integrity,
    labels,
    open_store,
    search,
    stored_resumes,
)
from resumes.store.accounts import AccountInfo
from resumes.store.sqlite.store import sqlite_engine
from resumes.store.statements import VALUES, Prepared
from resumes.store.stored_resumes import page_of
from resumes.store.versions import _OF_PERSONS, select_counts, select_newest
from tests.support.postgres import Server
from tests.support.store.builders import a_person, count_rows, exported, index_all
from tests.support.waiting import wait_until

GROWN = 600
"""Resumes of an account that the statistics do not know."""

TABLES = ("resumes", "documents", "search_entries")
READ = text(
    "SELECT sum(idx_tup_fetch + seq_tup_read) FROM pg_stat_user_tables WHERE relname = ANY(:of)"
)


def _rows_read(store: Store) -> int:
    """How many rows of resumes were read so far, by this thread and by whoever says so at once."""
    with store.read() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
        return int(connection.execute(READ, {"of": list(TABLES)}).scalar_one())


def _processes(store: Store) -> int:
    """How many processes of the server serve this database."""
    ((count,),) = store.fetch(
        text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
    )
    return int(count)


@pytest.fixture(
    scope="module", params=["one of 300", pytest.param("sixty of 1", marks=pytest.mark.slow)]
)
def grown(server: Server, request: pytest.FixtureRequest) -> Iterator[tuple[Store, AccountInfo]]:
    """A store with an account that grew after the statistics of the others were made."""
    name = server.make_database()
    sizes = [300] if request.param == "one of 300" else [1] * 60
    with open_store(server.url(name)) as store:
        for number, size in enumerate(sizes):
            other = accounts.create_account(store, f"other-{number}", plan="business")
            creation.create(store, other.id, [a_person(f"Other {one}") for one in range(size)])
        index_all(store)
        for table in TABLES:
            server.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)", name)
        server.execute("ANALYZE", name)
        account = accounts.create_account(store, "ana", plan="business")
        new = [a_person(f"Common {one}")._replace(label="all") for one in range(GROWN)]
        creation.create(store, account.id, new)
        yield store, accounts.get_account(store, "ana")
    server.drop_database(name)


def _search(store: Store, account: AccountInfo) -> None:
    found = search.find_page(store, account.id, "common", timeout_s=60)
    assert len(found.page.entries) == 100


def _export(store: Store, account: AccountInfo) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = exported(store, Path(folder) / "ana.db", account.name)
        with sqlite_engine(file, transactions=False).connect() as connection:
            counted = connection.exec_driver_sql("SELECT count(*) FROM documents")
            assert counted.scalar_one() == GROWN


def _label(store: Store, account: AccountInfo) -> None:
    ids = [entry.id for entry in search.iter_entries(store, account.id)]
    assert labels.set_label(store, account.id, ids[:50], "some") == 50
    assert labels.list_labels(store, account.id) == [("all", GROWN - 50), ("some", 50)]
    of_label = [entry.id for entry in search.iter_entries(store, account.id, label="some")]
    found = search.iter_entries(store, account.id, "common", label="some")
    assert ids[:50] == of_label == [entry.id for entry in found]


def _delete(store: Store, account: AccountInfo) -> None:
    ids = [entry.id for entry in search.iter_entries(store, account.id, label="some")]
    assert stored_resumes.delete_resumes(store, account.id, ids) == 50


def _check(store: Store, account: AccountInfo) -> None:
    assert list(integrity.iter_damage(store)) == []
    checked = [one for one in integrity.iter_accounts(store) if one.account == account.name]
    assert [(one.resumes, one.flaws) for one in checked] == [(GROWN, [])]


@pytest.mark.parametrize(
    ("is_indexed", "act"),
    [
        pytest.param(False, lambda store, account: index_all(store), id="indexing"),
        pytest.param(True, _search, id="searching"),
        pytest.param(True, _label, id="labeling"),
        pytest.param(True, _export, id="exporting"),
        pytest.param(True, _check, id="checking"),
        pytest.param(True, _delete, id="deleting"),
    ],
)
def test_s24_no_row_of_an_account_that_statistics_lack_is_found_by_walking_the_account(
    grown: tuple[Store, AccountInfo], is_indexed: bool, act: Callable[[Store, AccountInfo], None]
) -> None:
    store, account = grown
    if is_indexed:
        processes = _processes(store)
        with open_store(store.url) as other:
            index_all(other)
        # A process may say only at its end what it has read.
        wait_until(lambda: _processes(store) == processes)
    before = _rows_read(store)
    act(store, account)
    read = _rows_read(store) - before
    assert read < 25 * count_rows(store, "resumes")


RESUMES = """
    INSERT INTO resumes (account_id, id, filename, created_at, updated_at, label, person,
        is_person_indexed)
    SELECT 'a', lpad(number::text, 24, '0'), 'f', 'c', 'u', nullif(number / 100, 49),
        decode(md5((number / 3)::text), 'hex'), nullif(number < 4900, false)
    FROM generate_series(1, 5000) AS number
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_latest", [False, True], ids=["", "newest of each person"])
@pytest.mark.parametrize("has_label", [False, True], ids=["all", "of a label"])
@pytest.mark.parametrize("is_newest_first", [False, True], ids=["oldest first", "newest first"])
@pytest.mark.parametrize("is_known", [False, True], ids=["just grown", "known to the statistics"])
@pytest.mark.parametrize("in_arrays", [False, True], ids=["alone", "with others"])
def test_a_page_walks_its_index_also_by_a_plan_that_a_message_uses_again(
    url: str,
    is_known: bool,
    is_newest_first: bool,
    has_label: bool,
    is_latest: bool,
    in_arrays: bool,
) -> None:
    page = page_of(is_newest_first=is_newest_first, has_label=has_label, is_latest=is_latest)
    plan = _plan(url, page, is_known=is_known, in_arrays=in_arrays)
    index = b"ix_resumes_label" if has_label else b"resumes_pkey"
    assert re.search(b"Index (Only )?Scan (Backward )?using " + index, plan)
    if is_latest:
        assert b"Scan using ix_resumes_person" in plan
        assert plan.count(b"hashed SubPlan") == 3
    assert b"Sort Key: id" not in plan
    assert b"Seq Scan" not in plan


@pytest.mark.parametrize("is_known", [False, True], ids=["just grown", "known to the statistics"])
@pytest.mark.parametrize("in_arrays", [False, True], ids=["alone", "with others"])
@pytest.mark.parametrize(
    "statement",
    [
        _OF_PERSONS,
        Prepared(select_newest(bindparam("account_id"), VALUES)),
        Prepared(select_counts(bindparam("account_id"), VALUES)),
    ],
    ids=["of persons", "newest", "counts"],
)
def test_versions_are_found_by_their_person_also_by_a_plan_that_a_message_uses_again(
    url: str, is_known: bool, statement: Prepared, in_arrays: bool
) -> None:
    plan = _plan(url, statement, is_known=is_known, in_arrays=in_arrays)
    assert b"using ix_resumes_person" in plan
    assert b"Sort Key: id" not in plan
    assert b"Seq Scan" not in plan


def _plan(url: str, statement: Prepared, *, is_known: bool, in_arrays: bool) -> bytes:
    """The plan that PostgreSQL makes of the statement for any values."""
    with open_store(url), psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER TABLE resumes SET (autovacuum_enabled = off)")
        connection.execute("INSERT INTO accounts VALUES ('a', 'a', 'free', '2027-01-15', NULL)")
        connection.execute(RESUMES)
        if is_known:
            connection.execute("ANALYZE resumes")
        dialect = postgresql.dialect(paramstyle="format")  # type: ignore[no-untyped-call]  # SQLAlchemy's own
        sql, names, *_ = statement._for(dialect)
        if in_arrays:
            sql, _ = statement.in_arrays(dialect, {name: [""] for name in names})
        number = itertools.count(1)
        numbered = re.sub("%[sb]", lambda _: f"${next(number)}", sql)
        result = connection.pgconn.exec_(f"EXPLAIN (GENERIC_PLAN) {numbered}".encode())
        return b"\n".join(result.get_value(row, 0) or b"" for row in range(result.ntuples))
