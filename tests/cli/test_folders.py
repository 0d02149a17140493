"""Folders that commands read: which files are taken, and what is said of the others."""

import os
from collections import Counter
from pathlib import Path

import pytest

from cli.failures import Failed
from cli.folders import describe, find_sources
from importer.ignored import Why


def test_folders_give_the_files_to_import_in_order(tmp_path: Path) -> None:
    for name in ("b.json", "a.JSON", "notes.txt", ".hidden.json", "sub/c.json", "_done/d.json"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}", encoding="ascii")
    (tmp_path / "link.json").symlink_to(tmp_path / "b.json")
    os.mkfifo(tmp_path / "pipe.json")

    found = find_sources([str(tmp_path), "-", "x.txt"])

    paths = [source.path for source in found.sources]
    names = [os.path.relpath(path, tmp_path) for path in paths[:3]]
    assert names == ["a.JSON", "b.json", "sub/c.json"]
    assert paths[3:] == ["-", "x.txt"]
    assert found.ignored == {Why.ENDING: 1, Why.HIDDEN: 1, Why.LINK: 1, Why.NO_FILE: 1}


def test_files_of_several_resumes_are_found_in_folders_too(tmp_path: Path) -> None:
    for name in ("a.ndjson", "b.jsonl", "c.json.gz", "d.GZ", "e.zip", "f.tar", "g.json.tmp"):
        (tmp_path / name).touch()

    found = find_sources([str(tmp_path)])

    names = [Path(source.path).name for source in found.sources]
    assert names == ["a.ndjson", "b.jsonl", "c.json.gz", "d.GZ", "e.zip"]
    assert found.ignored == {Why.ENDING: 1, Why.HIDDEN: 1}


def test_what_is_passed_over_is_said_with_the_reasons() -> None:
    assert describe(Counter()) == ""
    assert describe(Counter({Why.LINK: 1})) == "1 file was passed over: 1 is a link."
    assert describe(Counter({Why.HIDDEN: 2, Why.ENDING: 1_000})) == (
        "1,002 files were passed over: 1,000 end in none of .json, .ndjson, .jsonl, .gz, .zip; "
        "2 have hidden or temporary names."
    )


def test_without_any_file_there_is_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "cv.pdf").touch()
    paths = [str(tmp_path)] * 4

    with pytest.raises(Failed, match=r"Nothing to read in .*and 1 more\. 4 files were passed over"):
        find_sources(paths).check()
    find_sources(["-"]).check()
