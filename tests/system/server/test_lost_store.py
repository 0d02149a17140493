"""A store whose file is removed or replaced under a server: nothing is answered as stored there."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.server import load
from tests.system.server.scenes import Scene, is_unavailable, page_of


def remove(path: Path) -> None:
    for file in sorted(path.parent.glob("resumes.db*")):  # itself first: that is what is told
        file.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("gone.db"))


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("new.db"))
    path.with_name("new.db").rename(path)


WAYS: dict[Callable[[Path], None], str] = {
    remove: "removed or renamed",
    rename: "removed or renamed",
    replace: "replaced by another file",
}


@pytest.mark.parametrize("lose", WAYS)
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
