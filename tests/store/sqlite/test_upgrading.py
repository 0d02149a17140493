import shutil
import textwrap
from pathlib import Path

import pytest
from sqlalchemy import MetaData, text
from sqlalchemy.schema import CreateTable

from resumes.clock import system_clock
from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.store import (
    accounts,
    creation,
    import_ledger,
    import_requests,
    migrations,
    open_store,
    schema,
    search,
)
from resumes.store.import_ledger import FileOutcome
from resumes.store.import_requests import Action
from resumes.store.locks import FileLock
from resumes.store.sqlite import bootstrap
from resumes.store.sqlite.bootstrap import open_file
from resumes.store.sqlite.store import sqlite_engine
from tests.support.resumes import a_claim, a_resume
from tests.support.store import older_stores
from tests.support.store.builders import index_all, made_ids, path_of

pytestmark = pytest.mark.sqlite("migrations of a file, and what it is copied to before")

LAST = migrations.revisions()[-1]
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
        op.execute("INSERT INTO search_pieces (search_pieces) VALUES ('delete-all')")
"""


def a_folder_with(tmp_path: Path, revision: str) -> Path:
    folder = tmp_path / "migrations"
    shutil.copytree(migrations.FOLDER, folder)
    code = textwrap.dedent(revision).replace("NEXT", NEXT).replace("LAST", LAST)
    (folder / "versions" / f"{NEXT}_next.py").write_text(code)
    return folder


def a_filled_store(url: str) -> Path:
    with open_store(url) as store:
        account = accounts.create_account(store, "ana", plan="business")
        creation.create(store, account.id, [a_resume() for _ in range(10)])
        return path_of(store)


def upgrade(path: Path, folder: Path) -> None:
    bootstrap.upgrade_file(sqlite_engine(path, transactions=True), path, folder=folder)


def count(path: Path, table: str) -> int:
    engine = sqlite_engine(path, transactions=False)
    with engine.connect() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def test_s5_rebuilding_the_accounts_table_takes_no_resumes_along(url: str, tmp_path: Path) -> None:
    path = a_filled_store(url)
    folder = a_folder_with(tmp_path, REBUILD_ACCOUNTS)
    upgrade(path, folder)
    assert [count(path, table) for table in ("accounts", "resumes", "documents")] == [1, 10, 10]
    with sqlite_engine(path, transactions=False).connect() as connection:
        assert migrations.state(connection, str(path), folder=folder) == "current"
        assert connection.execute(text("SELECT note FROM accounts")).all() == [(None,)]


def test_s5_a_migration_that_would_lose_rows_is_undone(url: str, tmp_path: Path) -> None:
    path = a_filled_store(url)
    folder = a_folder_with(tmp_path, LOSE_ROWS)
    with pytest.raises(StoreIncompatible, match="lost rows of documents"):
        upgrade(path, folder)
    assert count(path, "documents") == 10
    with open_store(url) as store:
        assert accounts.get_account(store, "ana").resume_count == 10


def test_s5_an_older_store_is_backed_up_before_it_is_migrated(url: str, tmp_path: Path) -> None:
    path = a_filled_store(url)
    upgrade(path, a_folder_with(tmp_path, REBUILD_ACCOUNTS))
    backup = path.with_name(f"resumes.db.before-{NEXT}")
    assert backup.stat().st_mode & 0o777 == 0o600
    assert count(backup, "resumes") == 10


def test_a_store_of_0001_is_upgraded_with_every_row_that_it_has(place: str, tmp_path: Path) -> None:
    path = tmp_path / "resumes.db"
    older_stores.a_store_of_0001(path, tmp_path)
    with open_store(place) as store:
        files = import_ledger.list_files(store)
        assert [(file.claim_id, file.outcome) for file in files] == [
            (older_stores.HELD, FileOutcome.HELD),
            (older_stores.FAILED, FileOutcome.FAILED),
            (older_stores.DONE, FileOutcome.DONE),
        ]
        assert {(file.root, file.items) for file in files} == {(None, None)}
        assert import_ledger.find_source(store, files[1]) == b"{"
        assert (
            import_ledger.find_stored(store, older_stores.ACCOUNT, b"d" * 32) == older_stores.RESUME
        )
        assert accounts.list_wrong(store) == []
    assert [count(path, table) for table in ("resumes", "documents", "imported_items")] == [1] * 3
    assert count(path.with_name(f"resumes.db.before-{LAST}"), "imported_files") == 3


def test_what_later_versions_brought_works_on_the_rows_of_0001(place: str, tmp_path: Path) -> None:
    older_stores.a_store_of_0001(tmp_path / "resumes.db", tmp_path)
    with open_store(place) as store:
        (failed,) = import_ledger.list_files(store, reason="invalid_json")
        import_requests.request_files(store, [failed], Action.RETRY)
        assert import_requests.request_all_files(store, Action.RELEASE) == 1
        asked = import_requests.list_requests(store, root="/srv/inbox")
        assert [(one.claim_id, one.root) for one in asked] == [
            (older_stores.FAILED, None),
            (older_stores.HELD, None),
        ]
        claim = a_claim(older_stores.FAILED)
        made = made_ids(creation.create(store, older_stores.ACCOUNT, [a_resume()], claim=claim))
        assert import_ledger.list_files(store, outcome=FileOutcome.FAILED) == []
        for _ in range(2):  # before the index is filled, and after
            page, unindexed = search.find_page(store, older_stores.ACCOUNT, "ada exam")
            assert ([entry.id for entry in page.entries], unindexed) == (made, 0)
            index_all(store)


def test_what_is_made_from_other_rows_may_be_made_anew(url: str, tmp_path: Path) -> None:
    with open_store(url) as store:
        path = path_of(store)
        account = accounts.create_account(store, "ana", plan="business")
        creation.create(store, account.id, [a_resume()])
        index_all(store)
    folder = a_folder_with(tmp_path, MAKE_INDEX_ANEW)
    upgrade(path, folder)
    with sqlite_engine(path, transactions=False).connect() as connection:
        assert migrations.state(connection, str(path), folder=folder) == "current"


def test_a_newer_store_is_refused_by_name(url: str) -> None:
    path = a_filled_store(url)
    with sqlite_engine(path, transactions=True).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0917'"))
    with pytest.raises(StoreIncompatible, match=r"newer version \(schema 0917"):
        open_store(url)
    assert count(path, "resumes") == 10


def test_s4_an_older_store_is_not_migrated_while_others_use_it_and_they_are_named(
    place: str, tmp_path: Path
) -> None:
    path = tmp_path / "resumes.db"
    older_stores.a_store_of_0001(path, tmp_path)
    with pytest.raises(
        StoreIncompatible, match=r"older than this program\. Run `resumes db upgrade"
    ):
        open_store(place, upgrade=False)
    other = FileLock(path.with_name("resumes.db.lock"))
    assert other.acquire(shared=True, timeout_s=0)
    with pytest.raises(StoreUnavailable, match="must be upgraded, and is in use by process"):
        open_file(path, clock=system_clock, upgrade=True, timeout_s=0.05)
    other.close()
    open_file(path, clock=system_clock, upgrade=True, timeout_s=0.05).close()


def test_the_migrations_make_the_tables_of_the_schema(url: str, tmp_path: Path) -> None:
    with open_store(url) as store:
        path = path_of(store)
    migrated = MetaData()
    # FTS5 makes tables of its own inside of the one that the schema names in no model.
    migrated.reflect(
        sqlite_engine(path, transactions=False),
        only=lambda name, _: not name.startswith("search_pieces") and name != "alembic_version",
    )
    declared = tmp_path / "declared.db"
    declared.touch()
    engine = sqlite_engine(declared, transactions=False)
    schema.metadata.create_all(engine)
    expected = MetaData()
    expected.reflect(engine)

    def described(metadata: MetaData) -> dict[str, object]:
        return {
            table.name: (
                str(CreateTable(table).compile(engine)),
                sorted(str(index.columns) for index in table.indexes),
                table.dialect_options["sqlite"]["with_rowid"],
            )
            for table in metadata.tables.values()
        }

    assert described(migrated) == described(expected)
    assert clustered(path) == clustered(declared)
    assert indexes(path) == indexes(declared)


def indexes(path: Path) -> dict[str, str]:
    """Each index as it was made, its condition too."""
    with sqlite_engine(path, transactions=False).connect() as connection:
        rows = connection.execute(
            text("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
        )
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
