"""The drill: a backup under load, a store that is lost, and what comes back."""

import json
import shutil
import threading
from pathlib import Path

import pytest

from tests.resumes.builders import a_document
from tests.stores import make_account
from tests.system.programs import call, serving, succeed, wait_until, walk

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


def test_what_was_imported_since_a_backup_comes_back_to_those_whose_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    dropped = {"ana": ["Ana 1"], "bo": ["Bo 1", "Bo 2"]}
    for account in dropped:
        make_account(home, account)
    backup = json.loads(succeed(home, "--json", "db", "backup", str(tmp_path / "b.db")))["path"]
    for account, names in dropped.items():
        folder = home / "inbox" / account
        folder.mkdir(parents=True, exist_ok=True)
        for number, name in enumerate(names):
            (folder / f"{number}.json").write_bytes(a_document(name))
    succeed(home, "watch", "--once")
    succeed(home, "db", "restore", backup)

    for folder in (home / "inbox" / "_done").glob("*/*"):
        succeed(home, "import", str(folder), "--account", folder.name)

    for account, names in dropped.items():
        stored = json.loads(succeed(home, "--json", "list", "--account", account))["resumes"]
        assert sorted(one["title"] for one in stored) == [f"{name} Resume" for name in names]
