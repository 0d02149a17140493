"""A store whose file is removed, replaced or linked to under a server: nothing is answered as stored
there."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from resumes.store import accounts
from tests.support import programs
from tests.support.api import load
from tests.support.api.scenes import Scene, is_unavailable, page_of
from tests.support.inbox.mounts import a_disk


def remove(path: Path) -> None:
    for file in sorted(path.parent.glob("resumes.db*")):  # itself first: that is what is told
        file.unlink()


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("new.db"))
    path.with_name("new.db").rename(path)


WAYS: dict[Callable[[Path], None], str] = {
    remove: "removed or renamed",
    replace: "replaced by another file",
}


@pytest.mark.parametrize("lose", [remove, pytest.param(replace, marks=pytest.mark.slow)])
def test_a_server_whose_store_went_stores_nothing_more_and_says_so(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    database = scene.home / "resumes.db"
    create = load.a_request(scene.key, "POST", body=load.a_body("resume"))
    with scene.served() as server:
        assert load.call(server.url, create).status == 201
        lose(database)
        names = {file.name for file in scene.home.iterdir()}
        answers = [load.call(server.url, create) for _ in range(10)]
        assert all(is_unavailable(answer) for answer in answers)
        assert is_unavailable(load.call(server.url, load.a_request(scene.key, path=page_of(""))))
        ready = load.call(server.url, load.a_request(scene.key, path="/readyz"))
        assert (ready.status, ready.json["checks"]["read"]) == (503, "failed")
        assert ready.json["checks"]["write"] == "failed"
        assert {file.name for file in scene.home.iterdir()} == names
        log = server.log
    assert log.read_text().count(f"ERROR resumes.store: {database} was {WAYS[lose]}") == 1
    assert "Traceback" not in log.read_text()


def test_a_server_whose_store_has_another_name_stores_nothing_until_it_is_gone(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    database, other = scene.home / "resumes.db", scene.home / "snapshot.db"
    create = load.a_request(scene.key, "POST", body=load.a_body("resume"))
    with scene.served() as server:
        assert load.call(server.url, create).status == 201
        os.link(database, other)
        assert all(is_unavailable(load.call(server.url, create)) for _ in range(5))
        page = load.call(server.url, load.a_request(scene.key, path=page_of("")))
        assert (page.status, len(page.json["resumes"])) == (200, 1)
        other.unlink()
        assert load.call(server.url, create).status == 201
        log = server.log
    said = log.read_text()
    assert (
        said.count(f"ERROR resumes.store: The database {database} has another name, {other}") == 1
    )
    assert said.count(f"The files of the store {database} no longer have a second name") == 1


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


LINKS = {
    "a hard link": ["ln", "{home}/resumes.db", "{other}/resumes.db"],
    "a snapshot": ["cp", "-al", "{home}/.", "{other}"],
}
COMMANDS = [("serve", "--port", "0"), ("watch", "--once"), ("list",), ("db", "check")]


@pytest.mark.slow
@pytest.mark.parametrize("link", LINKS)
def test_a_store_that_has_another_name_is_opened_under_neither(tmp_path: Path, link: str) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    line = [word.format(home=scene.home, other=other) for word in LINKS[link]]
    subprocess.run(line, check=True, timeout=30)
    for home in (scene.home, other):
        for command in COMMANDS:
            done = programs.run(home, *command)
            assert done.returncode == 3
            assert done.stderr.startswith(f"Error: The database {home}/resumes.db has another name")
            assert "Stop those that use the other name and remove it" in done.stderr
            assert len(done.stderr.splitlines()) == 1
        (finding,) = [
            line
            for line in programs.run(home, "doctor").stdout.splitlines()
            if "another name" in line
        ]
        assert finding.startswith("fail  store")
    (other / "resumes.db").unlink()
    assert programs.run(scene.home, "db", "check").returncode == 0


@pytest.mark.slow
def test_a_store_that_is_mounted_as_a_single_file_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with a_disk(tmp_path / "disk", 1 << 20) as disk:  # for its mount namespace
        inside = tmp_path / "disk" / "resumes.db"
        disk.seen(inside).touch()
        bind = ["mount", "--bind", str(scene.home / "resumes.db"), str(inside)]
        subprocess.run([*disk.enter, *bind], check=True, timeout=30)
        backup = tmp_path / "backup.db"
        programs.succeed(scene.home, "db", "backup", str(backup))
        there = sorted(one.name for one in disk.seen(inside.parent).iterdir())
        for line in (("serve", "--port", "0"), ("list",), ("db", "restore", str(backup))):
            command = [*disk.enter, *programs.command(inside.parent, *line)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 3
            assert f"The database {inside} is a mount point" in done.stderr
            assert "Mount the folder that contains the file" in done.stderr
            assert len(done.stderr.splitlines()) == 1
        assert sorted(one.name for one in disk.seen(inside.parent).iterdir()) == there
        command = [*disk.enter, *programs.command(inside.parent, "doctor")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert f"fail  store     The database {inside} is a mount point" in done.stdout
