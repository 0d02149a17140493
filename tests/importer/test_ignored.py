import os
from pathlib import Path

import pytest

from importer.ignored import ENDINGS, Why, find_why


def test_the_endings_are_those_that_a_name_may_have() -> None:
    assert ENDINGS == ".json, .ndjson, .jsonl, .gz, .zip"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a.json", None),
        ("a.JSON.GZ", None),
        ("a.pdf", Why.ENDING),
        (".a.json", Why.HIDDEN),
        ("a.json.part", Why.HIDDEN),
    ],
)
def test_a_file_is_left_for_its_name(tmp_path: Path, name: str, why: Why | None) -> None:
    (tmp_path / name).touch()
    assert find_why(str(tmp_path / name)) == why


def test_what_is_no_file_is_left_for_that(tmp_path: Path) -> None:
    (tmp_path / "a.json").touch()
    (tmp_path / "link.json").symlink_to("a.json")
    (tmp_path / "lost.json").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.json")
    names = ("link.json", "lost.json", "pipe.json")
    assert [find_why(str(tmp_path / name)) for name in names] == [Why.LINK, Why.LINK, Why.NO_FILE]


def test_each_reason_has_its_sentence() -> None:
    assert len({why.sentence for why in Why}) == len(Why)
