"""From what is shown of a resume to a JSON Resume."""

import copy
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resumes.analyzer import (
    Format,
    parse,
    parse_imported,
    public_view,
    sections_left_out,
    to_jsonresume,
)
from resumes.analyzer.jsonresume import is_json_resume
from resumes.analyzer.jsonresume.dates import WRITTEN
from resumes.analyzer.kinds import MAX_TEXT_CHARS, Group, Kind, Listing, Number, Text
from resumes.analyzer.sections import HEADER, SECTION_TYPES
from resumes.errors import InvalidJson
from tests.resumes.analyzer.documents import a_document, with_section
from tests.resumes.analyzer.jsonresume.comparing import (
    BASICS,
    ENTRIES,
    characters,
    characters_to_write,
    expected_back,
    written_back,
)
from tests.resumes.analyzer.jsonresume.json_schema import SCHEMA, iter_faults
from tests.resumes.analyzer.jsonresume.samples import COMPLETE, there_and_back


def test_what_was_imported_comes_back_field_by_field() -> None:
    back = there_and_back(COMPLETE)
    assert written_back(back) == expected_back(COMPLETE)
    assert list(iter_faults(back)) == []


def test_it_says_what_it_is() -> None:
    resume = to_jsonresume(a_document())
    assert resume["$schema"] == (
        "https://raw.githubusercontent.com/jsonresume/resume-schema/v1.0.0/schema.json"
    )
    assert resume["meta"] == {"version": "v1.0.0"}
    assert is_json_resume(to_jsonresume({"header": {}, "sections": {}}))


def test_keys_have_the_order_of_the_schema() -> None:
    assert list(there_and_back(COMPLETE)) == list(SCHEMA["properties"])


def leaves(value: Any, *steps: Any) -> Iterator[tuple[Any, ...]]:
    """The ways to every value inside that is no object or list."""
    if isinstance(value, dict | list):
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, *steps, step)
    else:
        yield steps


def changed_at(resume: dict[str, Any], steps: tuple[Any, ...]) -> dict[str, Any]:
    """The same with another text there: a date for a date, a country for a country."""
    changed = copy.deepcopy(resume)
    at: Any = changed
    for step in steps[:-1]:
        at = at[step]
    at[steps[-1]] = _another(at[steps[-1]])
    return changed


def _another(text: str) -> str:
    if WRITTEN.fullmatch(text):
        return "1999-09"
    if "://" in text:
        return "https://other.example"
    return "FR" if len(text) == len("GB") else "other"


EXCUSED = {
    ("basics", "image"),
    ("basics", "location", "address"),
    ("basics", "location", "postalCode"),
    ("basics", "profiles", 0, "username"),
    ("basics", "profiles", 1, "username"),
    ("work", 0, "description"),
    ("volunteer", 0, "url"),
    ("education", 0, "url"),
    ("certificates", 0, "url"),
    ("projects", 0, "keywords", 0),
    ("projects", 0, "roles", 0),
    ("projects", 0, "entity"),
    ("projects", 0, "type"),
    ("$schema",),
    ("meta", "canonical"),
    ("meta", "version"),
}


@pytest.mark.parametrize("steps", list(leaves(COMPLETE)), ids=str)
def test_the_comparison_sees_every_damaged_field_that_is_not_excused(steps: Any) -> None:
    damaged = expected_back(changed_at(COMPLETE, steps))
    assert (damaged == expected_back(COMPLETE)) == (steps in EXCUSED)


@pytest.mark.parametrize("steps", list(leaves(COMPLETE)), ids=str)
def test_a_field_that_is_not_excused_comes_back_changed_when_it_is_changed(steps: Any) -> None:
    changed = changed_at(COMPLETE, steps)
    assert written_back(there_and_back(changed)) == expected_back(changed)


def test_the_comparison_knows_every_field_of_the_schema() -> None:
    for key, rules in ENTRIES.items():
        parent = SCHEMA["properties"].get(key) or SCHEMA["properties"]["basics"]["properties"][key]
        assert parent["items"]["properties"].keys() <= rules.keys()
    assert SCHEMA["properties"]["basics"]["properties"].keys() <= BASICS.keys()


@pytest.mark.parametrize(
    ("section", "item", "key", "entry"),
    [
        ("additionalExperiences", {"workplace": "E"}, "work", {"name": "E"}),
        ("additionalPublications", {"title": "N"}, "publications", {"name": "N"}),
        (
            "additionalTechnologies",
            {"title": "T", "tags": ["a"]},
            "skills",
            {"name": "T", "keywords": ["a"]},
        ),
    ],
)
def test_sections_that_say_the_same_are_written_like_it(
    section: str, item: Any, key: str, entry: Any
) -> None:
    assert to_jsonresume(with_section(section, item))[key] == [entry]


def test_a_list_is_of_all_sections_that_say_the_same() -> None:
    sections = {
        "additionalTechnologies": {"column": 0, "items": [{"title": "b"}]},
        "skills": {"column": 0, "items": [{"title": "a"}, {}]},
    }
    assert to_jsonresume(a_document(sections=sections))["skills"] == [{"name": "a"}, {"name": "b"}]


def test_several_summaries_are_paragraphs_of_one() -> None:
    document = with_section("summaries", {"text": "a"}, {}, {"text": "b"})
    assert to_jsonresume(document)["basics"]["summary"] == "a\n\nb"


def test_quotes_are_references_only_where_they_are_called_so() -> None:
    quote = {"quote": "Good.", "author": "Bo"}
    assert to_jsonresume(with_section("quotes", quote, name="References"))["references"] == [
        {"reference": "Good.", "name": "Bo"}
    ]
    favourites = with_section("quotes", quote, name="Favourite quotes")
    assert "references" not in to_jsonresume(favourites)
    assert sections_left_out(favourites) == ("quotes",)


def test_what_is_left_out_is_named() -> None:
    shown = {"column": 0, "items": [{"title": "x"}]}
    sections = {
        "books": shown,
        "skills": shown,
        "strengths": {"column": 0, "items": [{}]},
        "mytime": {"column": 0, "items": []},
        "hobbies": {"column": 0, "items": ["kept"]},
    }
    assert sections_left_out(a_document(sections=sections)) == ("books", "hobbies")
    assert "books" not in json.dumps(to_jsonresume(a_document(sections=sections)))


def test_contacts_of_references_are_not_written() -> None:
    document = with_section("references", {"name": "Bo", "contact": "bo@example.org"})
    assert to_jsonresume(document)["references"] == [{"name": "Bo"}]


def test_every_sample_is_valid_and_settles(repository: Path) -> None:
    for path in (repository / "sample_data").glob("*.json"):
        written = to_jsonresume(public_view(parse(path.read_bytes()).document))
        assert list(iter_faults(written)) == [], path.name
        assert there_and_back(written) == written, path.name


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ({"work": "x"}, ".work is no array"),
        ({"work": ["x"]}, ".work[0] is no object"),
        ({"work": [{"name": 5}]}, ".work[0].name is no string"),
        ({"work": [{"startDate": "soon"}]}, ".work[0].startDate is soon"),
        ({"experiences": []}, ".experiences is not known"),
        ({"basics": {"profiles": [{"url": None}]}}, ".basics.profiles[0].url is no string"),
    ],
)
def test_the_schema_finds_faults(damage: dict[str, Any], fault: str) -> None:
    assert list(iter_faults(COMPLETE | damage)) == [fault]


SHORT_TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=8
) | st.sampled_from(["a, b", "x - 2020 - y", "Berlin, DE", "2020"])
ENDS = st.sampled_from(["", "\n", "\n\n", "x\n", "/", "a - 2020 - ", ", , CA"])
PIECES = st.sampled_from(
    ["x", "a\n", "b\n\n", "c\n\n\n", "\n", "d, ", ", ", "/", "x" * 9_999 + "\n\n"]
)


@st.composite
def long_texts(draw: st.DrawFn) -> str:
    """A text as long as one may be, or nearly, with what divides texts in it and at its ends."""
    before, after, piece = draw(ENDS), draw(ENDS), draw(PIECES)
    middle_chars = MAX_TEXT_CHARS - len(before + after) - draw(st.integers(0, 3))
    return before + (piece * middle_chars)[:middle_chars] + after


def values_of(kind: Kind, texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Whatever a field of this kind may hold."""
    if isinstance(kind, Text):
        return texts
    if isinstance(kind, Number):
        return st.integers(-1, 12) | st.integers(1990, 2030) | st.floats(-1e18, 1e18)
    if isinstance(kind, Listing):
        return st.lists(st.none() | values_of(kind.entry, texts), max_size=3)
    if isinstance(kind, Group):
        return objects_of(kind.fields, texts)
    return st.booleans()


def objects_of(
    fields: Mapping[str, Kind], texts: st.SearchStrategy[str]
) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {}, optional={name: values_of(kind, texts) for name, kind in fields.items()}
    )


def items_of(fields: Mapping[str, Kind]) -> st.SearchStrategy[list[Any]]:
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
                    "items": items_of(SECTION_TYPES[name].fields),
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
    *([name] for name in SECTION_TYPES),
]
"""Sections that are written to one place."""

DOCUMENTS = st.fixed_dictionaries(
    {
        "header": objects_of(HEADER.fields, SHORT_TEXTS | long_texts()),
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
    goes_there_and_back(document)


@pytest.mark.slow
@settings(max_examples=200, derandomize=True, deadline=None)
@given(document=DOCUMENTS)
def test_two_hundred_valid_resumes_are_imported_without_loss(document: Any) -> None:
    goes_there_and_back(document)


def goes_there_and_back(document: Any) -> None:
    large = Format(max_bytes=2**30)
    try:
        view = public_view(parse(orjson.dumps(document), large).document)
    except InvalidJson:  # more values than a resume may have
        return
    written = to_jsonresume(view)
    assert list(iter_faults(written)) == []
    assert not characters_to_write(view) - characters(written)

    imported_again = parse_imported(orjson.dumps(written), large)

    again = to_jsonresume(public_view(imported_again.document))
    assert list(iter_faults(again)) == []
    assert characters(again) == characters(written)


def test_what_is_not_there_is_no_field() -> None:
    document = with_section("interests", {"title": "Music"}) | {"header": {"name": "Ada"}}
    back = to_jsonresume(document)
    assert back["basics"] == {"name": "Ada"}
    assert back["interests"] == [{"name": "Music"}]
