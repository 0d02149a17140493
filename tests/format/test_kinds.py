"""Every field of docs/format.md: what it may hold, what refuses it, what is odd, when it is shown."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from resumes.analyzer import iter_sections, schema, shown_view
from resumes.analyzer.schema import LAYOUTS
from tests.support.documents import (
    HEADER,
    HEADINGS,
    SECTIONS,
    STYLE,
    a_document,
    issues_of,
    listed,
    stored_item,
    view_of,
    warnings_of,
    with_section,
)

FIELDS: Final = [
    ("", "title", "text"),
    *(("header", field, kind) for field, kind in HEADER.items()),
    *(("style", field, kind) for field, kind in STYLE.items()),
    *((name, field, kind) for name in SECTIONS for field, kind in SECTIONS[name].items()),
]
WRONG_NUMBERS: Final[list[Any]] = [True, "0", []]
LONG: Final = "x" * 20_001
TOO_LONG: Final = "must be a string of at most 20,000 characters"
NO_COLOUR: Final = "must be a hex color such as #1A2B3C"
FROM_1: Final = "is 12, so all months of this resume count from 1 (January)"
MONTHS: Final = "months are 0-based (0 is January, 11 is December)"
NO_LAYOUT: Final = f"must be one of {', '.join(LAYOUTS)}"


def holding(place: str, field: str, value: Any) -> dict[str, Any]:
    """A document with that value in a field of its own, its header, its style or an item."""
    if place in SECTIONS:
        return with_section(place, {field: value})
    return a_document(**{place: {field: value}} if place else {field: value})


def pointer(place: str, field: str) -> str:
    if place in SECTIONS:
        return f"sections.{place}.items[0].{field}"
    return f"{place}.{field}" if place else field


def message(place: str, field: str, problem: str) -> str:
    if place in SECTIONS:
        return f'Invalid section "{place}": items[0].{field} {problem}'
    return f"Invalid field {pointer(place, field)}: {problem}"


def shown(place: str, field: str, value: Any) -> Any:
    view = view_of(holding(place, field, value))
    if place in SECTIONS:
        return view["sections"][place]["items"][0].get(field)
    return (view.get(place, {}) if place else view).get(field)


def fields_of(kind: str) -> Iterator[tuple[str, str]]:
    found = [(place, field) for place, field, other in FIELDS if other == kind]
    assert found, kind
    yield from found


def test_the_page_has_the_26_section_types_and_15_layouts() -> None:
    assert (len(SECTIONS), len(set(HEADINGS.values())), len(LAYOUTS)) == (26, 26, 15)
    for name, page, table in (("HEADER", HEADER, schema.HEADER), ("STYLE", STYLE, schema.STYLE)):
        differing = {*page} ^ {*table.fields}
        where = f"docs/format.md, analyzer/schema.py or tests/support/documents.py: {name}"
        assert not differing, f"{where}: {differing}"


@pytest.mark.parametrize(
    ("kind", "value", "is_shown"),
    [
        *((kind, None, False) for kind in sorted({kind for _, _, kind in FIELDS})),
        ("text", "x", True),
        ("text", "", False),
        ("text", "é" * 20_000, True),
        ("icon", "", False),
        *(("icon", icon, True) for icon in ("001-free-plus", "21-free-star", "youtube-square")),
        ("number", 0, True),
        ("number", -1.5, True),
        ("number", 1e300, True),
        ("number", -(2**63), True),
        ("0 to 4", 0, True),
        ("0 to 4", 4, True),
        ("0 to 2", 0.5, True),
        ("flag", False, True),
        ("flag", True, True),
        ("texts", [], False),
        ("texts", ["", None], False),
        ("texts", ["a", "", None], True),
        ("texts", ["x"] * 200, True),
        ("slices", [], False),
        ("slices", [{}], False),
        ("slices", [None, {"title": "", "value": None}], False),
        ("slices", [{}, None, {"value": 0}], True),
        ("slices", [{"title": "Sleep", "value": 1}] * 200, True),
        ("dateRange", {}, False),
        ("dateRange", {"fromYear": None, "isOngoing": None}, False),
        ("dateRange", {"fromYear": 2020, "fromMonth": 11}, True),
        ("dateRange", {"toYear": 2020.5, "toMonth": 0}, True),
        ("dateRange", {"isOngoing": False}, True),
        *(("layout", layout, True) for layout in LAYOUTS),
        ("colours", [], False),
        ("colours", ["#fff", None], True),
        ("colours", ["#008CFF", "#aBcDeF"], True),
        *(("body font", font, True) for font in ("opensans", "roboto", "ptsans", "interui")),
        ("body font", "", False),
        *(("heading font", font, True) for font in ("rubik", "lato", "playfair", "gelasio")),
    ],
)  # fmt: skip
def test_a_good_value_is_kept_and_shown_or_hidden_without_a_warning(
    kind: str, value: Any, is_shown: bool
) -> None:
    for place, field in fields_of(kind):
        assert warnings_of(holding(place, field, value)) == []
        seen = shown(place, field, value)
        if kind == "dateRange" and seen is not None:
            assert seen == {name: each for name, each in value.items() if each is not None}
        else:
            assert seen == (value if is_shown else None)
        if place in SECTIONS:
            item = stored_item(place, {field: value})
            assert item[field] == value
            assert item[f"show{field[0].upper()}{field[1:]}"] is is_shown


@pytest.mark.parametrize(
    ("kind", "value", "within", "problem"),
    [
        ("text", 5, "", "must be a string"),
        ("text", True, "", "must be a string"),
        ("text", ["x"], "", "must be a string"),
        ("text", LONG, "", TOO_LONG),
        ("icon", 5, "", "must be a string"),
        ("icon", LONG, "", TOO_LONG),
        ("body font", 5, "", "must be a string"),
        ("heading font", [], "", "must be a string"),
        *((kind, bad, "", "must be a number")
          for kind in ("number", "0 to 2", "0 to 3", "0 to 4", "0 to 5", "0 to 10")
          for bad in WRONG_NUMBERS),
        ("flag", 1, "", "must be a boolean"),
        ("flag", "true", "", "must be a boolean"),
        ("texts", "x", "", "must be an array of strings"),
        ("texts", {}, "", "must be an array of strings"),
        ("texts", ["ok", 5], "[1]", "must be a string"),
        ("texts", [LONG], "[0]", TOO_LONG),
        ("texts", ["x"] * 201, "", "must be an array of at most 200 entries"),
        ("slices", {}, "", "must be an array of objects"),
        ("slices", [{}] * 201, "", "must be an array of at most 200 entries"),
        ("slices", [{}, "x"], "[1]", "must be an object"),
        ("slices", [{"title": 5}], "[0].title", "must be a string"),
        ("slices", [{"value": "1"}], "[0].value", "must be a number"),
        ("dateRange", [], "", "must be an object"),
        ("dateRange", "2020", "", "must be an object"),
        *(("dateRange", {name: "1"}, f".{name}", "must be a number")
          for name in ("fromYear", "fromMonth", "toYear", "toMonth")),
        ("dateRange", {"isOngoing": 0}, ".isOngoing", "must be a boolean"),
        ("layout", "", "", NO_LAYOUT),
        ("layout", "fancy", "", NO_LAYOUT),
        ("layout", ["single"], "", NO_LAYOUT),
        ("colours", "#fff", "", "must be an array of hex colors"),
        *(("colours", ["#000", bad], "[1]", NO_COLOUR)
          for bad in ("red", "#12345", "#fff\n", "", "#\u0661\u0661\u0661")),
        ("colours", [5], "[0]", NO_COLOUR),
    ],
)  # fmt: skip
def test_a_value_that_is_none_for_its_field_is_refused_with_its_place(
    kind: str, value: Any, within: str, problem: str
) -> None:
    for place, field in fields_of(kind):
        assert listed(issues_of(holding(place, field, value))) == [
            (pointer(place, field) + within, message(place, field + within, problem))
        ]


def outside(value: Any, highest: int) -> str:
    return f"{value} is outside the range 0 to {highest}"


@pytest.mark.parametrize(
    ("kind", "value", "within", "named", "remark"),
    [
        ("text", " \n", "", "", "is only white space"),
        ("text", "\u3000", "", "", "is only white space"),
        ("texts", ["x", " "], "[1]", "[1]", "is only white space"),
        ("icon", "nope", "", "", '"nope" is not a known icon'),
        ("icon", "a\x1b" + "x" * 60, "", "", f'"a\\x1b{"x" * 58}…" is not a known icon'),
        ("body font", "comic", "", "", '"comic" is not a known body font'),
        ("heading font", "comic", "", "", '"comic" is not a known heading font'),
        *((f"0 to {most}", value, "", "", outside(value, most))
          for most in (2, 3, 4, 5, 10) for value in (-0.5, most + 1)),
        ("dateRange", {"toMonth": 13}, ".toMonth", "toMonth", f"{outside(13, 11)}: {MONTHS}"),
        ("dateRange", {"toMonth": 1.5}, ".toMonth", "toMonth", f"{outside(1.5, 11)}: {MONTHS}"),
        ("dateRange", {"toMonth": 12}, ".toMonth", "toMonth", FROM_1),
        ("dateRange", {"toMonth": 12.0, "fromMonth": 12}, ".toMonth", "toMonth", FROM_1),
        ("dateRange", {"fromMonth": -1}, ".fromMonth", "fromMonth", f"{outside(-1, 11)}: {MONTHS}"),
        ("dateRange", {"fromYear": 1, "x": 2}, ".x", "x", "is not a known field: stored, but not displayed"),
        ("slices", [{}, {"value": 1, "x": []}], "[1].x", "x",
         "is not a known field: stored, but not displayed"),
        ("slices", [{"title": " "}], "[0].title", "title", "is only white space"),
        ("colours", ["#000", "#111", "#222"], "", "", "has more than 2 entries"),
        ("colours", ["#1234"], "[0]", "[0]",
         '"#1234" has transparency, which might not be supported'),
        ("colours", ["#000", "#00000080"], "[1]", "[1]",
         '"#00000080" has transparency, which might not be supported'),
    ],
)  # fmt: skip
def test_an_odd_value_is_kept_and_shown_with_a_warning(
    kind: str, value: Any, within: str, named: str, remark: str
) -> None:
    for place, field in fields_of(kind):
        name = named if named and named[0] != "[" else field + named
        document = holding(place, field, value)
        assert warnings_of(document) == [(pointer(place, field) + within, f"{name} {remark}")]
        assert place == "" or shown(place, field, value) is not None


def test_a_value_that_is_odd_in_two_ways_has_two_warnings() -> None:
    assert [message for _, message in warnings_of(with_section("awards", {"icon": " "}))] == [
        "icon is only white space",
        'icon " " is not a known icon',
    ]


@pytest.mark.parametrize("name", SECTIONS)
def test_an_item_of_a_type_has_a_flag_for_each_of_its_fields_and_knows_no_others(name: str) -> None:
    others = {field for fields in SECTIONS.values() for field in fields} - SECTIONS[name].keys()
    item = stored_item(name, dict.fromkeys(sorted(others)))
    flags = {f"show{field[0].upper()}{field[1:]}" for field in SECTIONS[name]}
    expected = {**dict.fromkeys(others), "record": name, **dict.fromkeys(flags, False)}
    where = f"docs/format.md or analyzer/schema.py: {name}"
    assert item == expected, f"{where}: {item.keys() ^ expected.keys()}"
    assert list(item)[-len(flags) - 1 :][0] == "record"
    warnings = warnings_of(with_section(name, dict.fromkeys(sorted(others))))
    assert {path.rpartition(".")[2] for path, _ in warnings} == others


def test_a_document_that_has_a_month_12_counts_from_1_unless_it_has_a_month_0() -> None:
    def warned(*months: tuple[Any, Any]) -> tuple[list[str], list[tuple[Any, Any]]]:
        sections = {
            name: {"column": 0, "items": [{"dateRange": {"fromMonth": first, "toMonth": last}}]}
            for name, (first, last) in zip(
                ("customs", "projects", "experiences"), months, strict=False
            )
        }
        document = a_document(sections=sections)
        seen = shown_view(json.dumps(document))["sections"].values()
        items = [item for section in seen for item in section["items"]]
        assert [item for section in iter_sections(document) for item in section.items] == items
        texts = [text.partition(" ")[2] for _, text in warnings_of(document)]
        return texts, [tuple(item["dateRange"].values()) for item in items]

    why = "is outside the range 1 to 12: months of this resume count from 1, as one of them is 12"
    texts, months = warned((1, 12), (0.5, 13), (12, 2))
    assert (texts, months) == ([FROM_1, f"0.5 {why}", f"13 {why}"], [(0, 11), (0.5, 13), (11, 1)])
    why = "is outside the range 0 to 11: months of this resume count from 0, as one of them is 0"
    assert warned((0, 12)) == ([f"12 {why}"], [(0, 12)])
