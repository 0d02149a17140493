import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resumes.analyzer import Format, iter_sections, public_view
from resumes.analyzer.icons import ICONS
from resumes.analyzer.kinds import Choice, Colour, Flag, Group, Kind, Listing, Number
from resumes.analyzer.sections import HEADER, LAYOUTS, SECTION_TYPES, STYLE
from tests.resumes.analyzer.documents import a_document, parsed, with_section

HOBBIES = Format(extra_section_types=frozenset({"hobbies"}))


def view_of(document: Any, accepted: Format = HOBBIES) -> dict[str, Any]:
    return public_view(parsed(document, accepted).document, accepted)


def test_the_public_view_leaves_out_hidden_unknown_and_service_fields() -> None:
    document = {
        "extra": 1,
        "title": "Engineer",
        "sections": {
            "experiences": {
                "unknown": 1,
                "column": 1,
                "order": None,
                "name": "",
                "items": [
                    {
                        "position": "Dev",
                        "link": "",
                        "salary": 1,
                        "location": None,
                        "bullets": ["a", "", None],
                        "dateRange": {"fromYear": 2020, "toYear": None, "day": 3},
                    },
                    {"workplace": "", "dateRange": {"toYear": None}, "bullets": [""]},
                ],
            },
            "hobbies": {"column": 0, "items": [{"record": 1}, 5], "unknown": 1},
            "skills": {"column": 0, "layoutMode": "tags", "showBulletMarker": False},
        },
        "header": {"name": "Ada", "email": "", "phone": None, "fax": "1"},
        "style": {"layout": "double", "fontBody": "", "colors": [], "hideBranding": False, "x": 1},
    }
    assert view_of(document) == {
        "header": {"name": "Ada"},
        "sections": {
            "experiences": {
                "column": 1,
                "items": [
                    {
                        "position": "Dev",
                        "bullets": ["a", "", None],
                        "dateRange": {"fromYear": 2020},
                    },
                    {},
                ],
            },
            "hobbies": {"column": 0, "items": [{"record": 1}, 5]},
            "skills": {
                "column": 0,
                "layoutMode": "tags",
                "showBulletMarker": False,
                "items": [],
            },
        },
        "title": "Engineer",
        "style": {"layout": "double", "hideBranding": False},
    }


@pytest.mark.parametrize(
    "hidden", [{}, {"title": None, "style": None}, {"title": " ", "style": {}}]
)
def test_the_public_view_has_no_blank_title_and_no_empty_style(hidden: dict[str, Any]) -> None:
    assert view_of(a_document(**hidden)) == {"header": {"name": "Ada Lovelace"}, "sections": {}}


def test_the_public_view_leaves_out_section_types_that_are_no_longer_admitted() -> None:
    document = parsed(with_section("hobbies", "chess"), HOBBIES).document
    assert public_view(document)["sections"] == {}


def test_sections_come_in_ascending_order_then_those_without_as_sent() -> None:
    orders = {"skills": None, "awards": 2, "books": -1.5, "quotes": 2, "courses": "absent"}
    sections = {
        name: {"column": 0} if order == "absent" else {"column": 0, "order": order}
        for name, order in orders.items()
    }
    document = json.loads(parsed(a_document(sections=sections)).document)
    assert [section.type for section in iter_sections(document)] == [
        "books",
        "awards",
        "quotes",
        "skills",
        "courses",
    ]


@pytest.mark.parametrize(
    ("fields", "heading"),
    [
        ({}, "Experience"),
        ({"name": ""}, "Experience"),
        ({"name": " "}, "Experience"),
        ({"name": "Jobs"}, "Jobs"),
    ],
)
def test_a_section_without_a_name_is_shown_under_the_heading_of_its_type(
    fields: dict[str, str], heading: str
) -> None:
    document = with_section("experiences", column=1.0, **fields)
    (section,) = iter_sections(document)
    assert (section.heading, section.column) == (heading, 1)


def test_people_see_shown_fields_in_table_order_without_blanks() -> None:
    document = with_section(
        "skills",
        {"tags": ["a", "", None], "title": "T", "unknown": 1, "description": ""},
        {"title": ""},
    )
    stored_document = json.loads(parsed(document).document)
    (section,) = iter_sections(stored_document)
    assert [list(item.items()) for item in section.items] == [[("title", "T"), ("tags", ["a"])]]


def test_people_see_the_items_of_extra_section_types() -> None:
    document = with_section("hobbies", {"title": "Chess", "note": ""}, "Go", None)
    (section,) = iter_sections(document, HOBBIES)
    assert section.heading == "hobbies"
    assert section.items == ({"title": "Chess"}, {"": "Go"})
    assert list(iter_sections(document)) == []


_texts = st.sampled_from(["", " ", "x", "Zoë", "\u202e"]) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5
)
_numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_unknown = st.none() | st.lists(st.integers(0, 3), max_size=2) | st.just({"record": 1})


def _values(kind: Kind) -> st.SearchStrategy[Any]:
    if isinstance(kind, Choice):
        return st.sampled_from(sorted(LAYOUTS))
    if isinstance(kind, Colour):
        return st.sampled_from(["#000", "#008CFF", "#12345678"])
    if isinstance(kind, Number):
        return _numbers
    if isinstance(kind, Flag):
        return st.booleans()
    if isinstance(kind, Listing):
        return st.lists(st.none() | _values(kind.entry), max_size=3)
    if isinstance(kind, Group):
        return _objects(kind.fields)
    return _texts | st.sampled_from(sorted(ICONS)[:2])


def _objects(fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    known = {name: st.none() | _values(kind) for name, kind in fields.items()}
    return st.fixed_dictionaries({}, optional={**known, "unknown": _unknown, "record": _unknown})


def _sections(section_type: str) -> st.SearchStrategy[dict[str, Any]]:
    item = _objects(SECTION_TYPES[section_type].fields)
    return st.fixed_dictionaries(
        {"column": st.sampled_from([0, 1, 1.0])},
        optional={
            "order": st.none() | _numbers,
            "name": _texts,
            "items": st.none() | st.lists(item, max_size=2),
            "layoutMode": _unknown,
        },
    )


_documents = st.fixed_dictionaries(
    {
        "header": _objects(HEADER.fields),
        "sections": st.fixed_dictionaries(
            {}, optional={name: _sections(name) for name in SECTION_TYPES}
        ),
    },
    optional={"title": st.none() | _texts, "style": st.none() | _objects(STYLE.fields)},
)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(document=_documents)
def test_the_public_view_can_be_created_again_and_gives_the_same_view(document: Any) -> None:
    view = view_of(document)
    assert set(view) <= {"header", "sections", "title", "style"}
    again = parsed(view, HOBBIES)
    assert public_view(again.document, HOBBIES) == view
    assert not any("not a known field" in warning.message for warning in again.warnings)
    assert list(view["sections"]) == list(document["sections"])


def test_an_order_of_nought_comes_before_one_whatever_was_sent_first() -> None:
    document = a_document(
        sections={"awards": {"column": 0, "order": 1}, "books": {"column": 0, "order": 0}}
    )
    assert [section.type for section in iter_sections(view_of(document))] == ["books", "awards"]


def test_people_see_no_list_and_no_object_that_is_empty_or_only_of_blanks() -> None:
    (section,) = iter_sections(
        view_of(
            with_section("hobbies", {"a": [], "b": {}, "c": [None, ""], "d": {"e": [{}]}, "f": 0}),
        ),
        HOBBIES,
    )
    assert section.items == ({"f": 0},)
