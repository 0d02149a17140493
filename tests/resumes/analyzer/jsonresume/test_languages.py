"""How well a language is spoken."""

import pytest

from resumes.analyzer import to_jsonresume
from resumes.analyzer.jsonresume.languages import find_level
from tests.resumes.analyzer.documents import with_section
from tests.resumes.analyzer.jsonresume.samples import entry_back, imported_items, with_list


@pytest.mark.parametrize(
    ("fluency", "level"),
    [
        ("Native speaker", 5),
        ("C2", 5),
        ("Native or Bilingual Proficiency", 5),
        ("fluent", 4),
        ("C1 (advanced)", 4),
        ("Full Professional Proficiency", 4),
        ("B2", 4),
        ("Limited Working Proficiency", 3),
        ("intermediate", 3),
        ("B1", 3),
        ("Basic", 2),
        ("A2", 2),
        ("Beginner", 1),
        ("A1", 1),
        ("Enough to order", None),
        ("", None),
    ],
)
def test_words_mean_a_level_if_they_are_known(fluency: str, level: int | None) -> None:
    assert find_level(fluency) == level


def test_the_words_are_kept_beside_the_level() -> None:
    languages = with_list("languages", {"language": "French", "fluency": "B2, rusty"}, "Latin")

    assert imported_items(languages, "languages") == [
        {"name": "French", "levelText": "B2, rusty", "level": 4},
        {"name": "Latin"},
    ]
    assert entry_back("languages", languages["languages"][0]) == languages["languages"][0]


@pytest.mark.parametrize("level", [1, 2, 3, 4, 5])
def test_a_level_without_words_is_written_in_such_as_mean_it(level: int) -> None:
    document = with_section("languages", {"name": "French", "level": level})
    [written] = to_jsonresume(document)["languages"]
    assert find_level(written["fluency"]) == level


@pytest.mark.parametrize("level", [0, 4.5, 17])
def test_a_level_that_means_nothing_is_not_written(level: float) -> None:
    document = with_section("languages", {"name": "French", "level": level})
    assert to_jsonresume(document)["languages"] == [{"language": "French"}]
