"""What a dry run leaves is named with the reason, up to a number."""

import json

import pytest

from cli.left_files import MOST, LeftFiles
from cli.progress import Meter
from cli.session import Session
from importer.ignored import Ignored, Why


def tell(count: int, *, as_json: bool = False) -> None:
    left = LeftFiles(Session(as_json=as_json), Meter())
    for number in range(count):
        left.tell(Ignored(f"ana/{number}.pdf\x1b", Why.ENDING))
    left.close()


def test_the_first_are_named_and_the_others_counted(capsys: pytest.CaptureFixture[str]) -> None:
    tell(MOST + 1_000)

    told = capsys.readouterr()
    lines = told.err.splitlines()
    assert told.out == ""
    assert lines[0] == (
        "ignored    ana/0.pdf\\x1b: Its name ends in none of .json, .ndjson, .jsonl, .gz, .zip"
    )
    assert lines[MOST:] == ["ignored    and 1,000 more"]


def test_few_are_named_alone(capsys: pytest.CaptureFixture[str]) -> None:
    tell(MOST)

    assert capsys.readouterr().err.count("\n") == MOST


def test_as_data_all_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    tell(MOST + 1, as_json=True)

    told = capsys.readouterr()
    lines = [json.loads(line) for line in told.out.splitlines()]
    assert told.err == ""
    assert len(lines) == MOST + 1
    assert (lines[0]["outcome"], lines[0]["reason"]) == ("ignored", "ending")
