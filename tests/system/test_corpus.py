"""Resumes that nobody here wrote, through the watched folder and out through the API."""

import tarfile
from pathlib import Path

import pytest

from tests.system import programs

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "analyzer-fake.tar.gz"


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not part of the project")
def test_337_files_are_imported_and_every_walk_of_the_list_gives_the_same_ids(
    tmp_path: Path,
) -> None:
    programs.succeed(tmp_path, "accounts", "create", "ana", "--plan", "business")
    key = programs.succeed(tmp_path, "keys", "create", "ana").strip()
    inbox = tmp_path / "inbox" / "ana"
    inbox.mkdir(parents=True, exist_ok=True)
    with tarfile.open(CORPUS) as archive:
        for member in filter(tarfile.TarInfo.isfile, archive):
            content = archive.extractfile(member)
            assert content is not None
            (inbox / Path(member.name).name).write_bytes(content.read())
    assert len(programs.files_in(inbox)) == 337
    programs.succeed(tmp_path, "watch", "--once")
    assert len(programs.files_in(tmp_path / "inbox" / "_done")) == 337
    with programs.serving(tmp_path) as url:
        walks = [programs.walk(url, key, limit=limit) for limit in (1, 7, 100)]
    assert walks[0] == walks[1] == walks[2] == sorted(set(walks[0]))
    assert len(walks[0]) == 337
