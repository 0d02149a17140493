"""The first rows of a list, from the file alone: as the open store answers, or none."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from resumes.store import Store, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.sqlite.driver import dbapi
from resumes.store.sqlite.first_rows import FirstRows, read_first_rows
from tests.support.store.builders import MakeAccount, add_resumes, damage, path_of, run_python

pytestmark = pytest.mark.sqlite("they are read from its file")

READ = """
    import sys
    from pathlib import Path
    from resumes.store.sqlite.first_rows import read_first_rows
    print(len(read_first_rows(Path(sys.argv[1]), None, 100).rows), "sqlalchemy" in sys.modules)
"""


def test_they_are_those_of_the_named_account_or_of_the_first_that_holds_some(
    store: Store, an_account: MakeAccount
) -> None:
    _, bo, cy = an_account("ana"), an_account("bo"), an_account("cy")
    for account in (bo, cy):
        add_resumes(store, account, 4)
    for name, account in ((None, bo), ("bo", bo), ("cy", cy)):
        page = stored_resumes.list_page(store, account.id, limit=3)
        assert read_first_rows(path_of(store), name, 3) == FirstRows(account.name, page.entries)


def test_without_resumes_without_the_account_or_once_it_is_closed_there_are_none(
    store: Store, ana: AccountInfo
) -> None:
    assert read_first_rows(path_of(store), None, 3) is None
    add_resumes(store, ana, 1)
    assert read_first_rows(path_of(store), "bo", 3) is None
    assert read_first_rows(path_of(store), "ana", 3) is not None
    damage(store, "UPDATE accounts SET closed_at = created_at")
    assert read_first_rows(path_of(store), "ana", 3) is None


def test_from_a_file_that_is_none_no_store_or_damaged_there_are_none(
    store: Store, ana: AccountInfo, tmp_path: Path
) -> None:
    (tmp_path / "text.db").write_text("no store " * 1_000)
    (tmp_path / "folder.db").mkdir()
    os.mkfifo(tmp_path / "pipe.db")
    for name in ("missing.db", "text.db", "folder.db", "pipe.db", "?mode=memory"):
        assert read_first_rows(tmp_path / name, None, 3) is None
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.parametrize("title", ["CAST(x'ff' AS TEXT)", "x'00'", "x''"])
def test_what_is_no_text_is_not_shown(store: Store, ana: AccountInfo, title: str) -> None:
    add_resumes(store, ana, 1)
    damage(store, f"UPDATE resumes SET title = {title}")
    assert read_first_rows(path_of(store), None, 3) is None


@pytest.mark.parametrize(
    "damaged",
    [
        lambda path: os.mkfifo(f"{path}-journal"),
        lambda path: os.link(path, f"{path}.link"),
        lambda path: replaced(path, "PRAGMA application_id=1"),
        lambda path: replaced(
            path,
            "ALTER TABLE accounts RENAME TO others",
            "CREATE VIEW accounts AS WITH RECURSIVE endless(id) AS (SELECT 1 UNION ALL SELECT 1 FROM"
            " endless) SELECT id, 'ana' AS name, NULL AS closed_at FROM endless",
        ),
    ],
    ids=["a pipe", "a second name", "another program's", "endless"],
)
def test_a_file_that_is_not_to_be_opened_is_left(
    store: Store, ana: AccountInfo, damaged: Callable[[Path], None]
) -> None:
    add_resumes(store, ana, 1)
    path = path_of(store)
    assert read_first_rows(path, "ana", 3) is not None
    damaged(path)
    assert read_first_rows(path, "ana", 3) is None


def replaced(path: Path, *statements: str) -> None:
    with contextlib.closing(dbapi.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_name_that_is_no_text_is_nobody(store: Store, ana: AccountInfo) -> None:
    add_resumes(store, ana, 1)
    assert read_first_rows(path_of(store), "\udcff", 3) is None


def test_they_need_nothing_that_takes_long_to_import(store: Store, ana: AccountInfo) -> None:
    add_resumes(store, ana, 2)
    run = run_python(READ, str(path_of(store)))
    assert run.stdout == "2 False\n", run.stderr
