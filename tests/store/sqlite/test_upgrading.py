import contextlib
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import MetaData, text
from sqlalchemy.schema import CreateTable

from resumes.clock import system_clock
from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.store import accounts, creation, migrations, open_store
from resumes.store.locks import FileLock
from resumes.store.search import SearchResult, find_page
from resumes.store.sqlite.driver import dbapi
from resumes.store.sqlite.files import open_file
from resumes.store.sqlite.place import APPLICATION_ID
from resumes.store.sqlite.store import sqlite_engine
from resumes.store.stored_resumes import Page
from resumes.store.transfer import backups
from resumes.store.transfer.account_import import import_account
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    count_all,
    exported,
    find_flaws,
    ids_of,
    import_resumes,
    index_all,
    listed_ids,
    path_of,
)

pytestmark = pytest.mark.sqlite("migrations of a file, and what it is copied to before")

FIRST_VERSION = Path(__file__).parents[2] / "data/store-0001.sql"
"""A store of version 1.0.0, which all later programs have to upgrade: two accounts, ana and bob."""

LAST = migrations.list_revisions()[-1]
NEXT = f"{int(LAST) + 1:04}"

REBUILD_ACCOUNTS = """
    import sqlalchemy as sa
    from alembic import op
    revision = "NEXT"
    down_revision = "LAST"
    def upgrade():
        with op.batch_alter_table("accounts", recreate="always") as accounts:
            accounts.add_column(sa.Column("note", sa.Text))
"""
LOSE_ROWS = """
    from alembic import op
    revision = "NEXT"
    down_revision = "LAST"
    def upgrade():
        op.execute("DELETE FROM documents")
"""
MAKE_INDEX_ANEW = """
    from alembic import op
    revision = "NEXT"
    down_revision = "LAST"
    def upgrade():
        op.execute("INSERT INTO search_tokens (search_tokens) VALUES ('delete-all')")
"""


ReleaseNext = Callable[[str], None]
"""From now on the program has one more revision, of this code."""


@pytest.fixture
def release_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReleaseNext:
    folder = tmp_path / "migrations"
    shutil.copytree(migrations.FOLDER, folder)

    def release(revision: str) -> None:
        code = textwrap.dedent(revision).replace("NEXT", NEXT).replace("LAST", LAST)
        (folder / "versions" / f"{NEXT}_next.py").write_text(code)
        monkeypatch.setattr(migrations, "FOLDER", folder)

    return release


def a_filled_store(url: str) -> Path:
    with open_store(url) as store:
        account = accounts.create_account(store, "ana", plan="business")
        creation.create(store, account.id, [a_resume() for _ in range(10)])
        index_all(store)
        return path_of(store)


def count(path: Path, table: str) -> int:
    engine = sqlite_engine(path, transactions=False)
    with engine.connect() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def test_s5_an_older_store_is_backed_up_before_it_is_migrated(
    url: str, release_next: ReleaseNext
) -> None:
    path = a_filled_store(url)
    release_next(REBUILD_ACCOUNTS)
    open_store(url).close()
    # Rebuilding the accounts' table has taken no resumes along.
    assert [count(path, table) for table in ("accounts", "resumes", "documents")] == [1, 10, 10]
    with sqlite_engine(path, transactions=False).connect() as connection:
        assert migrations.find_state(connection, str(path)) == "current"
        assert connection.execute(text("SELECT note FROM accounts")).all() == [(None,)]
    backup = path.with_name(f"resumes.db.before-{NEXT}")
    assert backup.stat().st_mode & 0o777 == 0o600
    assert count(backup, "resumes") == 10


def test_s5_a_migration_that_would_lose_rows_is_undone_but_what_is_made_of_others_may_go(
    url: str, release_next: ReleaseNext
) -> None:
    path = a_filled_store(url)
    release_next(LOSE_ROWS)
    with pytest.raises(StoreIncompatible, match="lost rows of documents"):
        open_store(url)
    assert count(path, "documents") == count(path, "resumes") == 10
    with sqlite_engine(path, transactions=False).connect() as connection:
        assert migrations.find_state(connection, str(path)) == "older"
    release_next(MAKE_INDEX_ANEW)
    open_store(url).close()
    with sqlite_engine(path, transactions=False).connect() as connection:
        assert migrations.find_state(connection, str(path)) == "current"


def test_a_backup_of_an_older_version_is_upgraded_as_it_is_restored(
    url: str, tmp_path: Path, release_next: ReleaseNext
) -> None:
    a_filled_store(url)
    with open_store(url) as store:
        backup = backups.back_up(store, tmp_path / "backup.db").path
    before = backup.read_bytes()
    release_next(REBUILD_ACCOUNTS)

    restored = backups.restore(backup, f"sqlite:///{tmp_path / 'new.db'}")

    assert restored.resumes == 10
    assert backup.read_bytes() == before
    with open_store(f"sqlite:///{tmp_path / 'new.db'}", upgrade=False) as store:
        assert len(ids_of(store, "ana")) == 10


def test_s4_an_older_store_is_not_migrated_while_others_use_it_and_they_are_named(
    url: str, release_next: ReleaseNext
) -> None:
    path = a_filled_store(url)
    release_next(REBUILD_ACCOUNTS)
    with pytest.raises(
        StoreIncompatible, match=r"older than this program\. Run `resumes db upgrade"
    ):
        open_store(url, upgrade=False)
    other = FileLock(path.with_name("resumes.db.lock"))
    assert other.acquire(shared=True, timeout_s=0)
    with pytest.raises(StoreUnavailable, match=r"must be upgraded, but is in use \(process"):
        open_file(path, clock=system_clock, upgrade=True, timeout_s=0.05)
    other.close()
    open_file(path, clock=system_clock, upgrade=True, timeout_s=0.05).close()


@pytest.fixture
def first_url(tmp_path: Path) -> str:
    """A store as version 1.0.0 left it."""
    path = tmp_path / "0001.db"
    with contextlib.closing(dbapi.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.executescript(FIRST_VERSION.read_text())
    return f"sqlite:///{path}"


def test_a_store_of_the_first_version_is_used_as_one_of_this(
    first_url: str, tmp_path: Path
) -> None:
    with open_store(first_url) as store:
        assert find_flaws(store) == []
        assert 0 not in count_all(store).values()
        ana = accounts.get_account(store, "ana")
        first = listed_ids(store, ana)
        assert len(first) == 2
        assert find_page(store, ana.id, "-nobody") == SearchResult(Page([], None), 2)
        file = exported(store, tmp_path / "ana.db")

        new = import_resumes(store, ana, 1)
        import_account(store, file, name="copy")
        index_all(store)

        assert [
            entry.id for entry in find_page(store, ana.id, "-nobody").page.entries
        ] == first + new
        assert listed_ids(store, ana) == first + new
        assert ids_of(store, "copy") == first
        assert find_flaws(store) == []


def test_the_migrations_make_the_tables_of_a_new_store(url: str, first_url: str) -> None:
    with open_store(url) as store:
        new = path_of(store)
    with open_store(first_url) as store:
        migrated = path_of(store)

    virtual = ("search_tokens", "search_words")

    def described(path: Path) -> dict[str, object]:
        engine = sqlite_engine(path, transactions=False)
        metadata = MetaData()
        # FTS5 makes tables of its own inside of the one that the schema names in no model.
        metadata.reflect(
            engine, only=lambda name, _: name not in virtual and name[:14] != "search_tokens_"
        )
        return {
            table.name: (
                str(CreateTable(table).compile(engine)),
                sorted(str(index.columns) for index in table.indexes),
                table.dialect_options["sqlite"]["with_rowid"],
            )
            for table in metadata.tables.values()
        }

    assert described(migrated) == described(new)
    assert clustered(migrated) == clustered(new)
    assert made_by_hand(migrated) == made_by_hand(new)


def made_by_hand(path: Path) -> dict[str, str]:
    """Each index and virtual table as it was made, its condition too."""
    statement = """
        SELECT name, sql FROM sqlite_schema
        WHERE (type = 'index' AND sql IS NOT NULL) OR sql LIKE 'CREATE VIRTUAL%'
    """
    with sqlite_engine(path, transactions=False).connect() as connection:
        rows = connection.execute(text(statement))
        return {row.name: " ".join(row.sql.split()) for row in rows}


def clustered(path: Path) -> set[str]:
    with sqlite_engine(path, transactions=False).connect() as connection:
        rows = connection.execute(
            text(
                "SELECT name FROM pragma_table_list"
                " WHERE schema = 'main' AND type = 'table' AND wr = 1"
            )
        )
        return set(rows.scalars())
