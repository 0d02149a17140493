"""A store whose file is linked to under a server, or mounted alone: nothing is created there."""

import shutil
import subprocess
from pathlib import Path

import pytest

from resumes.store import accounts
from tests.support import programs
from tests.support.api import load
from tests.support.api.scenes import Scene, is_unavailable
from tests.support.inbox.mounts import a_disk


@pytest.mark.slow
def test_a_snapshot_whose_log_is_still_the_stores_is_not_opened_and_nothing_is_created(
    tmp_path: Path,
) -> None:
    """The snapshot's file is replaced by a copy, and its log is left."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    other = tmp_path / "other"
    create = load.a_request(scene.key, "POST", body=load.a_body("resume"))
    with scene.served() as server:
        assert load.call(server.url, create).status == 201
        subprocess.run(["cp", "-al", str(scene.home), str(other)], check=True, timeout=30)
        assert is_unavailable(load.call(server.url, create))
        shutil.copy(other / "resumes.db", other / "copy.db")
        (other / "copy.db").replace(other / "resumes.db")
        done = programs.run(other, "accounts", "create", "bo")
        assert done.returncode == 3
        assert done.stderr.startswith(f"Error: The log {other}/resumes.db-wal has another name")
        assert is_unavailable(load.call(server.url, create))
        for suffix in ("-wal", "-shm"):
            (other / f"resumes.db{suffix}").unlink()
        assert load.call(server.url, create).status == 201
    with scene.store() as store:
        assert [account.name for account in accounts.list_accounts(store)] == ["ada"]
    assert scene.rows() == 2


@pytest.mark.slow
def test_a_store_that_is_mounted_as_a_single_file_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with a_disk(tmp_path / "disk", 1 << 20) as disk:  # for its mount namespace
        inside = tmp_path / "disk" / "resumes.db"

        def run(*words: str) -> "subprocess.CompletedProcess[str]":
            command = [*disk.enter, *words]
            return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

        disk.seen(inside).touch()
        assert run("mount", "--bind", str(scene.home / "resumes.db"), str(inside)).returncode == 0
        backup = tmp_path / "backup.db"
        programs.succeed(scene.home, "db", "backup", str(backup))
        there = sorted(one.name for one in disk.seen(inside.parent).iterdir())
        for line in (("serve", "--port", "0"), ("list",), ("db", "restore", str(backup))):
            done = run(*programs.command(inside.parent, *line))
            assert done.returncode == 3
            assert f"The database {inside} is a mount point" in done.stderr
            assert "Mount the folder that contains the file" in done.stderr
            assert len(done.stderr.splitlines()) == 1
        assert sorted(one.name for one in disk.seen(inside.parent).iterdir()) == there
        done = run(*programs.command(inside.parent, "doctor"))
        assert f"fail  store     The database {inside} is a mount point" in done.stdout
