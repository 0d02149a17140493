"""A demo went well when good samples are in and bad ones are out."""

from pathlib import Path

import pytest

from cli.demonstration import Demo
from cli.session import Session
from importer.service import FileReport
from resumes.store.ledger import FileOutcome


@pytest.mark.parametrize(
    ("good", "bad", "is_as_expected"),
    [
        (FileOutcome.DONE, FileOutcome.FAILED, True),
        (FileOutcome.FAILED, FileOutcome.FAILED, False),
        (FileOutcome.DONE, FileOutcome.DONE, False),
        (FileOutcome.HELD, FileOutcome.FAILED, False),
        (None, FileOutcome.FAILED, False),
    ],
)
def test_every_dropped_sample_counts(
    tmp_path: Path, good: FileOutcome | None, bad: FileOutcome, is_as_expected: bool
) -> None:
    session = Session(home=tmp_path)
    demo = Demo(session, session.settings(), dropped={"good.json": True, "bad.json": False})
    for name, outcome in (("demo/good.json", good), ("demo/bad.json", bad)):
        if outcome is not None:
            demo.reports.append(FileReport("demo", name, outcome, None, None, "", None, 0))

    assert demo.is_as_expected is is_as_expected


def test_a_demo_that_dropped_nothing_went_well(tmp_path: Path) -> None:
    session = Session(home=tmp_path)

    assert Demo(session, session.settings()).is_as_expected
