"""How far something long is: a status on a terminal, and its words."""

import os
import pty
import select
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TextIO

import pytest

from cli.progress import FEW, describe, describe_copy, metered
from importer.notices import Progress
from resumes.store.transfer import copies
from resumes.store.transfer.copies import Stage
from tests.command.conftest import screen

MANY = Progress(
    done=12_345,
    failed=3,
    duplicate=0,
    held=0,
    waiting=88_000,
    is_complete=True,
)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TextIO, Callable[[], str]]]:
    """A stream to a terminal, and what gives all that was written there."""
    ours, theirs = pty.openpty()
    read = b""

    def read_all() -> str:
        nonlocal read
        while select.select([ours], [], [], 0.1)[0]:
            read += os.read(ours, 65_536)
        return read.decode()

    for name, value in {"TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    with os.fdopen(theirs, "w") as stream:
        yield stream, read_all
    os.close(ours)


def test_the_files_of_a_backlog_are_counted_below_their_first_lines(
    terminal: tuple[TextIO, Callable[[], str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, written = terminal
    monkeypatch.setattr(sys, "stderr", stream)
    with metered(is_wanted=True) as meter:
        meter.put_progress(MANY)
        for number in range(FEW + 30):
            meter.put_file("done", f"{number}.json", None)
        meter.put_file("failed", "bad.json", "Invalid JSON")
        shown = screen(written())
        meter.put_progress(replace(MANY, waiting=0))
        meter.put_file("done", "next.json", None)

    first = [f"done       {number}.json" for number in range(FEW)]
    failed = "failed     bad.json: Invalid JSON"
    assert shown[:-1] == [*first, failed]
    assert shown[-1].startswith("12,345 done, 3 failed; 88,000 waiting ")
    rest = ["done       30 more files", "done       next.json", ""]
    assert screen(written()) == [*first, failed, *rest]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "12,345 done, 3 failed; 88,000 waiting"),
        ({"is_complete": False}, "12,345 done, 3 failed; 88,000+ waiting"),
        ({"failed": 0}, "12,345 done; 88,000 waiting"),
        (
            {"duplicate": 4, "held": 5},
            "12,345 done, 3 failed, 4 duplicate, 5 held; 88,000 waiting",
        ),
    ],
)
def test_it_says_what_became_of_files_and_how_many_wait(fields: dict[str, Any], text: str) -> None:
    assert describe(replace(MANY, **fields)) == text


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (
            copies.CopyProgress(Stage.COPYING, "documents", 120_000, 1_000_000),
            "Copying: 120,000 of 1,000,000 rows",
        ),
        (
            copies.CopyProgress(Stage.PROVING, "documents", 1_000_000, 1_000_000),
            "Comparing: 1,000,000 of 1,000,000 rows",
        ),
        (
            copies.CopyProgress(Stage.BACKING_UP, "store", 120_000_000, 350_400_000),
            "Backing up: 120 of about 350 MB",
        ),
    ],
)
def test_a_copy_says_what_it_does_and_how_far_it_is(
    progress: copies.CopyProgress, text: str
) -> None:
    assert describe_copy(progress) == text
