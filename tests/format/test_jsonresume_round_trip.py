"""What was imported and is written again, and what was written and is imported again."""

import itertools
import string
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resumes.analyzer import Format, parse, parse_imported, shown_view, to_jsonresume
from resumes.errors import InvalidJson, InvalidResume
from tests.support.documents import HEADER, SECTIONS, objects_of, public_view, with_section
from tests.support.json_resumes import (
    COMPLETE,
    characters,
    characters_to_write,
    expected_back,
    imported_view,
    iter_faults,
    iter_leaves,
    path_of,
    replaced_at,
    there_and_back,
    written_back,
)

MAX_TEXT_CHARS: Final = 20_000


def another(text: str) -> str:
    """Another text of its kind: a date for a date, a country for a country."""
    if text[:2] == "20":
        return "1999-09"
    if "://" in text:
        return "https://other.example"
    return "FR" if len(text) == len("GB") else "other"


def test_every_field_that_is_not_excused_comes_back_also_when_it_is_changed() -> None:
    back = there_and_back(COMPLETE)
    assert written_back(back) == expected_back(COMPLETE)
    assert list(iter_faults(back)) == []
    for steps in iter_leaves(COMPLETE):
        at: Any = COMPLETE
        for step in steps:
            at = at[step]
        changed = replaced_at(COMPLETE, steps, another(at))
        assert written_back(there_and_back(changed)) == expected_back(changed), path_of(steps)


def test_every_country_comes_back_from_beside_a_region_and_from_beside_a_city() -> None:
    letters = string.ascii_uppercase
    codes = []
    for code in map("".join, itertools.product(letters, letters)):
        line = to_jsonresume({"header": {"location": f"A, B, {code}"}, "sections": {}})["basics"]
        if line["location"] == {"city": "A", "region": "B", "countryCode": code}:
            place = {"city": "A", "countryCode": code}
            assert there_and_back({"basics": {"location": place}})["basics"]["location"] == place
            codes.append(code)
    assert len(codes) == 249


WORDS = st.sampled_from(["Paris", "CA", "FR", "DE", "Canada", "Germany", ",", " ", "", " ,", "a,"])


@given(st.lists(WORDS, max_size=5), st.sampled_from([", ", ",", " "]))
def test_whatever_was_read_of_a_place_is_read_again(words: list[str], between: str) -> None:
    written = to_jsonresume({"header": {"location": between.join(words)}, "sections": {}})
    assert there_and_back(written)["basics"] == written["basics"]


def test_every_sample_is_valid_and_settles(repository: Path) -> None:
    for path in (repository / "sample_data").glob("*.json"):
        written = to_jsonresume(shown_view(parse(path.read_bytes()).document))
        assert list(iter_faults(written)) == [], path.name
        assert there_and_back(written) == written, path.name


# More than a resume may hold


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ("g" * 9_999 + "/" + "h" * 10_000, ["g" * 9_999 + "/" + "h" * 10_000]),
        ("g" * 10_000 + "/" + "h" * 10_000, ["g" * 10_000, "h" * 10_000]),
        ("g/" + "h" * 19_999, ["g", "h" * 19_999]),
        ("g/h/" + "i" * 19_999, ["g/h", "i" * 19_999]),
        ("g" * 19_999 + "/" + "m/" * 10_000, ["g" * 19_999, "m/" * 10_000]),
        ("/" + "h" * 20_000, []),
    ],
    ids=[
        "fits",
        "one more",
        "at the beginning",
        "the last slash",
        "two of full length",
        "no grade",
    ],
)
def test_a_score_is_divided_at_the_last_slash_if_it_is_too_long(
    score: str, expected: list[str]
) -> None:
    document = {"basics": {}, "education": [{"score": score}]}
    if not expected:
        with pytest.raises(InvalidResume, match="at most 20,000 characters"):
            imported_view(document)
        return
    [item] = imported_view(document)["sections"]["educations"]["items"]
    assert [item[name] for name in ("gpa", "maxGpa") if name in item] == expected
    assert there_and_back(document)["education"] == document["education"]


@pytest.mark.parametrize(
    ("key", "entry", "extra", "sections"),
    [
        ("work", {"name": "E", "startDate": "2020"}, {"summary": "s"},
         ("experiences", "additionalExperiences")),
        ("publications", {"name": "N"}, {"publisher": "s"},
         ("publications", "additionalPublications")),
        ("skills", {"name": "N", "keywords": ["k"]}, {"level": "s"},
         ("skills", "additionalTechnologies")),
        ("references", {"name": "N"}, {}, ("references", "quotes")),
    ],
)  # fmt: skip
def test_what_has_no_room_in_a_section_goes_to_the_one_that_says_the_same(
    key: str, entry: Any, extra: Any, sections: tuple[str, str]
) -> None:
    document = {"basics": {}, key: [entry] * 498 + [entry | extra] * 502}
    view = imported_view(document)["sections"]
    assert [len(view[name]["items"]) for name in sections] == [500, 500]
    assert len(to_jsonresume({"header": {}, "sections": view})[key]) == 1_000


@pytest.mark.parametrize(("more", "between"), [("", " \n\n "), ("b", "\n\n")])
def test_texts_keep_their_blanks_unless_they_are_too_long_together(more: str, between: str) -> None:
    begin, end = "a" * 9_998, "b" * 9_998 + more
    items = [{"text": f"{begin} "}, {"text": f" {end}"}]
    written = to_jsonresume(
        {"header": {}, "sections": with_section("summaries", *items)["sections"]}
    )
    assert written["basics"]["summary"] == f"{begin}{between}{end}"


BEGINNINGS = ["", "\n", "\n\n", "a\n\n\n"]
ENDINGS = ["", "\n", "\n\n", "\n\n\na", "\n\na\n\n"]


@pytest.mark.parametrize("room", [0, 1, 2])
def test_summaries_too_long_for_one_are_divided_again_wherever_line_ends_stand(room: int) -> None:
    large = Format(max_bytes=2**30)
    edges = [*itertools.product(BEGINNINGS, ENDINGS)]
    for first, second in itertools.product(edges, edges):
        texts = [
            before + "a" * (MAX_TEXT_CHARS - room - len(before + after)) + after
            for before, after in (first, second)
        ]
        document = with_section("summaries", *({"text": text} for text in (*texts, "\n", "a")))
        written = to_jsonresume(document)
        resume = parse_imported(orjson.dumps(written), large)
        items = public_view(resume.document)["sections"]["summaries"]["items"]
        assert all("a" in item["text"] for item in items)
        assert "".join(item["text"] for item in items).count("a") == "".join(texts).count("a") + 1


SHORT_TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=8
) | st.sampled_from(["a, b", "x - 2020 - y", "Berlin, DE", "2020"])
LONG_ENDS = st.sampled_from(["", "\n", "\n\n", "x\n", "/", "a - 2020 - ", ", ", ", CA"])
PIECES = st.sampled_from(
    ["x", "a\n", "b\n\n", "c\n\n\n", "\n", "d, ", ", ", "/", "x" * 9_999 + "\n\n"]
)


@st.composite
def long_texts(draw: st.DrawFn) -> str:
    """A text as long as one may be, or nearly, with what divides texts in it and at its ends."""
    before, after, piece = draw(LONG_ENDS), draw(LONG_ENDS), draw(PIECES)
    middle_chars = MAX_TEXT_CHARS - len(before + after) - draw(st.integers(0, 3))
    return before + (piece * middle_chars)[:middle_chars] + after


def items_of(fields: dict[str, str]) -> st.SearchStrategy[list[Any]]:
    """A few items, or as many as a section may have."""
    few = st.lists(objects_of(fields, SHORT_TEXTS | long_texts()), max_size=3)
    return few | st.builds(
        lambda item, count: [item] * count, objects_of(fields, SHORT_TEXTS), st.integers(250, 500)
    )


def sections_of(names: Iterable[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            name: st.fixed_dictionaries(
                {
                    "column": st.just(0),
                    "name": st.sampled_from(["", "References"]),
                    "items": items_of(SECTIONS[name]),
                }
            )
            for name in names
        }
    )


JOINED = [
    ["summaries"],
    ["experiences", "additionalExperiences"],
    ["publications", "additionalPublications"],
    ["skills", "additionalTechnologies"],
    ["quotes", "references"],
    *([name] for name in SECTIONS),
]
"""Sections that are written to one place."""

DOCUMENTS = st.fixed_dictionaries(
    {
        "header": objects_of(HEADER, SHORT_TEXTS | long_texts()),
        "sections": st.lists(st.sampled_from(JOINED), max_size=3).flatmap(
            lambda chosen: sections_of(dict.fromkeys(itertools.chain(*chosen)))
        ),
    }
)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(document=DOCUMENTS)
def test_every_valid_resume_makes_a_valid_json_resume_that_is_imported_without_loss(
    document: Any,
) -> None:
    large = Format(max_bytes=2**30)
    try:
        view = public_view(parse(orjson.dumps(document), large).document)
    except InvalidJson:  # more values than a resume may have
        return
    written = to_jsonresume(view)
    assert list(iter_faults(written)) == []
    lost = characters_to_write(view) - characters(written)
    assert not lost, "jsonresume/mapping.py, or what tests/support/json_resumes.py expects"

    imported_again = parse_imported(orjson.dumps(written), large)

    again = to_jsonresume(shown_view(imported_again.document))
    assert list(iter_faults(again)) == []
    assert characters(again) == characters(written)
