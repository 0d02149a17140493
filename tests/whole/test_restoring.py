"""The drill: a backup under load, a store that is lost, and what comes back."""

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from resumes.store import accounts, open_store
from resumes.store.transfer import backups
from tests.support.programs import call, run, serving, succeed, wait_until, walk
from tests.support.resumes import a_document
from tests.support.stores import make_account

pytestmark = pytest.mark.slow


def post(url: str, key: str, number: int) -> str:
    status, answer = call(
        f"{url}/api/v1/resumes", key, method="POST", body=a_document(f"Person {number}")
    )
    assert status == 201, answer
    return str(answer["id"])


def test_what_was_acknowledged_before_a_backup_survives_the_loss_of_the_store(
    tmp_path: Path,
) -> None:
    home, backups = tmp_path / "home", tmp_path / "backups"
    backups.mkdir()
    key = make_account(home, "ana")
    succeed(home, "plans", "set", "business", "--max-resumes", "unlimited")
    acknowledged: list[str] = []
    over = threading.Event()

    with serving(home) as url:

        def write() -> None:
            while not over.is_set():
                acknowledged.append(post(url, key, len(acknowledged)))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            wait_until(lambda: len(acknowledged) >= 30)
            before = list(acknowledged)
            backup = json.loads(succeed(home, "--json", "db", "backup", str(backups)))["path"]
            seen = len(acknowledged)
            wait_until(lambda: len(acknowledged) >= seen + 5)
        finally:
            over.set()
            writer.join(60)
    newest = max(acknowledged)

    shutil.rmtree(home)
    succeed(home, "db", "restore", backup)

    with serving(home) as url:
        there = walk(url, key, limit=100)
        assert set(before) <= set(there) <= set(acknowledged)
        assert there == sorted(there)
        assert post(url, key, 0) > newest


def test_a_restore_that_was_killed_before_the_exchange_leaves_a_store_that_says_what_to_do(
    tmp_path: Path,
) -> None:
    """It had given the old file its second name already. So may the backup have one."""
    home, backup = tmp_path / "home", tmp_path / "b.db"
    succeed(home, "accounts", "create", "ana")
    succeed(home, "db", "backup", str(backup))
    os.link(backup, tmp_path / "yesterday.db")
    succeed(home, "accounts", "create", "bo")
    kept = home / "resumes.db.before-restore-2026-01-31T09-00-00.000Z"
    os.link(home / "resumes.db", kept)
    refused = run(home, "accounts", "list")
    assert refused.returncode == 3
    assert f"has another name, {kept}: " in refused.stderr

    again = run(home, "db", "restore", str(backup))

    assert again.returncode == 0
    assert "could not be read" not in again.stderr
    assert "bo" not in succeed(home, "accounts", "list")
    assert "ana" in succeed(home, "accounts", "list")
    succeed(tmp_path / "drill", "db", "restore", str(tmp_path / "yesterday.db"))
    assert "ana" in succeed(tmp_path / "drill", "accounts", "list")


def test_a_log_that_may_be_older_than_a_file_with_two_names_is_not_applied_by_restoring(
    tmp_path: Path,
) -> None:
    """A snapshot by `cp -al` of a store in use has its log of that moment. Whoever restores a backup
    over the snapshot must not have that log written into the file, which the store goes on with."""
    home, snapshot, backup = tmp_path / "home", tmp_path / "snapshot", tmp_path / "b.db"
    home.mkdir()
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        accounts.create_account(store, "ana")
        backups.back_up(store, backup)
        log = (home / "resumes.db-wal").read_bytes()
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        for number in range(40):
            accounts.create_account(store, f"a{number}")
    snapshot.mkdir()
    os.link(home / "resumes.db", snapshot / "resumes.db")
    (snapshot / "resumes.db-wal").write_bytes(log)

    done = run(snapshot, "db", "restore", str(backup))

    assert done.returncode == 0
    assert "could not be read" in done.stderr
    for kept in snapshot.glob("*.before-restore-*"):
        kept.unlink()
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        assert len(accounts.list_accounts(store)) == 41
