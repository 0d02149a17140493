"""The words of the product, each with a line and a way to where more is said."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from importer.health import HealthState
from resumes.health.findings import State as FindingState
from resumes.store.ledger import FileOutcome
from tests.system import pages

pytestmark = pytest.mark.docs

LONGEST = 130
"""Characters of what a word means: one line."""

PAGE = Path(__file__).parents[2] / "docs" / "glossary.md"


class Word(NamedTuple):
    """A row of the page."""

    word: str
    means: str
    target: str


def words() -> list[Word]:
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| \[[^\]]+\]\(([^)]+)\) \|$",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    return [Word(*row) for row in rows]


WORDS = words()


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.word)
def test_a_word_is_said_in_one_line_and_used_where_it_leads(word: Word) -> None:
    path, _, chapter = word.target.partition("#")
    page = PAGE.parent / path

    assert len(word.means) <= LONGEST
    assert chapter in pages.anchors(page)
    # As it stands there: `rotating`, `requestId`.
    stem = re.escape(word.word.removesuffix("e")).replace(r"\ ", r"\s*")
    assert re.search(rf"\b{stem}", pages.chapter(page, chapter), re.IGNORECASE)


def test_every_row_is_read_and_they_are_in_order() -> None:
    text = PAGE.read_text(encoding="utf-8")
    names = [word.word for word in WORDS]

    assert len(names) == text.count("\n| ") - 2
    assert names == sorted(names, key=str.lower)
    assert len(set(names)) == len(names)


def test_the_words_of_every_closed_set_are_there() -> None:
    closed = {
        *(outcome.value for outcome in FileOutcome),
        *(state.value for state in HealthState if state is not HealthState.OK),
        FindingState.NOTICE.value,
    }

    assert closed <= {word.word for word in WORDS}


def test_the_words_of_the_command_line_are_there(repository: Path) -> None:
    known = {word.word for word in WORDS}
    text = (repository / "README.md").read_text(encoding="utf-8")

    for command in ("retry", "release", "rotate", "revoke"):
        assert re.search(rf"`resumes \w+ {command}`", text)
        assert command in known
