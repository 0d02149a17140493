import shutil
import signal
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from resumes.clock import system_clock
from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.store import accounts, creation, migrations, open_store
from resumes.store.locks import FileLock
from resumes.store.sqlite.files import open_file
from resumes.store.sqlite.store import sqlite_engine
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    index_all,
    names_in,
    path_of,
    refused_for_want_of_room,
    run_python,
)
from tests.support.stores import make_first_store

pytestmark = pytest.mark.sqlite("migrations of a file, and what it is copied to before")

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


KILLED = """
    import os, sys
    from resumes.store import open_store
    from resumes.store.sqlite import files

    vacuum_into, files.PROGRESS_STEPS = files.vacuum_into, 10
    files.vacuum_into = lambda store, copy, _: vacuum_into(
        store, copy, lambda _: os.kill(os.getpid(), 9)
    )
    open_store(sys.argv[1])
"""


def test_s5_no_half_of_a_backup_has_its_name_when_an_upgrade_is_killed(tmp_path: Path) -> None:
    url, name = f"sqlite:///{tmp_path / 'resumes.db'}", f"resumes.db.before-{LAST}"
    make_first_store(url)

    assert run_python(KILLED, url).returncode == -signal.SIGKILL
    assert len([*tmp_path.glob(".resumes-*.scratch/resumes.db")]) == 1
    assert name not in names_in(tmp_path)

    open_store(url).close()
    assert count(tmp_path / name, "resumes") == 4
    assert not [*tmp_path.glob(".resumes-*.scratch")]


def test_a_store_is_not_upgraded_without_room_for_its_backup(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'resumes.db'}"
    make_first_store(url)
    with refused_for_want_of_room():
        open_store(url)
    with sqlite_engine(tmp_path / "resumes.db", transactions=False).connect() as connection:
        assert migrations.find_state(connection, url) == "older"
    assert not [*tmp_path.glob("*.before-*"), *tmp_path.glob(".resumes-*.scratch")]
    open_store(url).close()


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
