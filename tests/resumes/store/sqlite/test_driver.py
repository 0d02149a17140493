import logging
import os
import sys
from pathlib import Path

import pytest

from resumes.store import accounts, open_store
from resumes.store.sqlite import driver
from tests.resumes.store.sqlite.processes import run_python

pytestmark = pytest.mark.sqlite("its library")

LIBRARIES = """
    import sys
    import resumes.store
    from resumes.store import open_store, accounts, keys, listing, migrations
    with open_store(sys.argv[1]) as store:
        accounts.create_account(store, "ana")
    print(*sorted(m for m in sys.modules if m.split(".")[-1] == "_sqlite3"))
"""


def test_s1_a_process_that_made_and_used_a_store_loaded_one_sqlite_library(url: str) -> None:
    run = run_python(LIBRARIES, url)
    assert len(run.stdout.split()) == 1, run.stdout + run.stderr


def test_s1_closing_one_store_leaves_the_locks_of_another_on_the_same_file(url: str) -> None:
    with open_store(url) as first:
        with open_store(url) as second:
            accounts.create_account(second, "ana")
        accounts.create_account(first, "bo")
        # Another process sees both, and may write: nothing was overwritten behind its back.
        run = run_python(
            """
            import sys
            from resumes.store import open_store, accounts
            with open_store(sys.argv[1]) as store:
                accounts.create_account(store, "cy")
                print(*[a.name for a in accounts.list_accounts(store)])
            """,
            url,
        )
        assert run.stdout.split() == ["ana", "bo", "cy"], run.stderr
        assert [account.name for account in accounts.list_accounts(first)] == ["ana", "bo", "cy"]


def test_the_library_has_the_wal_reset_fix() -> None:
    assert driver.dbapi.sqlite_version_info >= driver.WAL_RESET_FIXED


def test_without_pysqlite3_the_systems_library_is_used_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "pysqlite3.dbapi2", None)
    with caplog.at_level(logging.WARNING):
        module = driver._choose()
    assert module.__name__ == "sqlite3.dbapi2"
    if module.sqlite_version_info < driver.WAL_RESET_FIXED:
        assert "Install pysqlite3" in caplog.text


def test_nothing_else_in_the_source_names_a_sqlite_module() -> None:
    root = Path(__file__).parents[4] / "src"
    named = [
        path.relative_to(root)
        for path in root.rglob("*.py")
        if any(
            line.strip().startswith((f"import {module}", f"from {module}"))
            for line in path.read_text().splitlines()
            for module in ("sqlite3", "pysqlite3")
        )
    ]
    assert named == []
    assert os.fspath(root).endswith("src")
