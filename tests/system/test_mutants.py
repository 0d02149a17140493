"""`make mutants` says what was tried, and ends with an error when nothing was."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import mutants

FAKE = """
import json, sys
from pathlib import Path

print("The clean tests fail")
ends = json.loads({ends!r})
if ends is None:
    sys.exit(1)
folder = Path("mutants")
folder.mkdir(exist_ok=True)
(folder / "listing.py.meta").write_text(json.dumps({{"exit_code_by_key": ends}}))
"""


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ({"a": 1, "b": 36}, "| quota | 2 | 2 | 0 | 0 | 0 | 100.0% |"),
        ({"a": 1, "b": 0, "c": 33, "d": 1}, "| quota | 4 | 2 | 1 | 1 | 0 | 50.0% |"),
        ({"a": 1, "b": None, "c": None}, "| quota | 3 | 1 | 0 | 0 | 2 | 100.0% |"),
        ({"a": None}, "| quota | 1 | 0 | 0 | 0 | 1 | none tried |"),
        ({}, "| quota | 0 | 0 | 0 | 0 | 0 | none tried |"),
    ],
)
def test_a_row_counts_each_mutant_once_and_hides_none(
    ends: dict[str, int | None], told: str
) -> None:
    assert mutants.row("quota", ends) == told


def test_each_checkout_has_copies_of_its_own() -> None:
    assert mutants.FOLDER.name != "resumes-mutants"


@pytest.mark.parametrize(
    ("ends", "code", "told"),
    [
        (None, 2, "quota: mutmut ended with 1"),
        (None, 2, "The clean tests fail"),
        ({}, 2, "none tried"),
        ({"a": 1, "b": None}, 2, "| 1 | 100.0% |"),
        ({"a": 1, "b": 0}, 1, "\n  b\n"),
        ({"a": 1}, 0, "| 0 | 100.0% |"),
    ],
)
def test_the_end_says_whether_mutants_were_tried_and_survived(
    tmp_path: Path, repository: Path, ends: dict[str, int | None] | None, code: int, told: str
) -> None:
    # given a mutmut that comes to this
    site = tmp_path / "site" / "mutmut"
    site.mkdir(parents=True)
    (site / "__main__.py").write_text(FAKE.format(ends=json.dumps(ends)))
    # when it is run
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants", "--areas", "quota", "--folder", tmp_path / "copies",
         "--site", site.parent],
        cwd=repository, capture_output=True, text=True,
    )  # fmt: skip
    # then that is said
    assert told in done.stdout + done.stderr
    assert done.returncode == code
