"""What docs/format.md says of a document: refused, warned of, or set by the service."""

from time import process_time
from typing import Any

import pytest

from resumes.analyzer import Format
from resumes.analyzer.sections import SECTION_TYPES
from resumes.errors import CoverLetter
from tests.resumes.analyzer.documents import (
    a_document,
    parsed,
    refusal_of,
    refusals_of,
    stored,
    stored_item,
    warnings_of,
    with_section,
)

# Messages


@pytest.mark.parametrize("header", [None, [], "Ada", 5, True])
@pytest.mark.parametrize("required", ["header", "sections"])
def test_messages_a_missing_object_is_named(required: str, header: Any) -> None:
    message = f"Missing required field: {required} (must be an object)"
    without = a_document()
    del without[required]
    assert refusals_of(without) == [message]
    assert refusals_of(a_document(**{required: header})) == [message]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            a_document(sections={"experiences": {"column": 0, "name": 5}}),
            'Invalid section "experiences": name must be a string',
        ),
        (
            with_section("experiences", {}, {}, {"dateRange": {"fromYear": "2020"}}),
            'Invalid section "experiences": items[2].dateRange.fromYear must be a number',
        ),
        (
            with_section("skills", {"tags": ["a", 1]}),
            'Invalid section "skills": items[0].tags[1] must be a string',
        ),
        (
            with_section("mytime", {"data": [{"value": "1"}]}),
            'Invalid section "mytime": items[0].data[0].value must be a number',
        ),
        (
            a_document(sections={"skills": {"column": 0, "items": {}}}),
            'Invalid section "skills": items must be an array of objects',
        ),
        (with_section("skills", 5), 'Invalid section "skills": items[0] must be an object'),
        (a_document(sections={"skills": []}), 'Invalid section "skills": must be an object'),
        (a_document(header={"email": 5}), "Invalid field header.email: must be a string"),
        (a_document(title=[]), "Invalid field title: must be a string"),
        (a_document(style=[]), "Invalid field style: must be an object"),
        (a_document(style={"fontSize": "1"}), "Invalid field style.fontSize: must be a number"),
        (
            a_document(style={"hideBranding": 1}),
            "Invalid field style.hideBranding: must be a boolean",
        ),
    ],
)
def test_messages_name_the_section_and_the_field(document: Any, message: str) -> None:
    assert refusals_of(document) == [message]


def test_messages_come_in_document_order_and_the_first_is_the_error() -> None:
    document: dict[str, Any] = {
        "title": 1,
        "sections": {
            "skills": {"items": [{"tags": 1, "title": 2}], "column": "0"},
            "awards": {"column": 7},
        },
        "header": {"phone": 1, "email": 2},
    }
    assert refusals_of(document) == [
        "Invalid field title: must be a string",
        'Invalid section "skills": items[0].tags must be an array of strings',
        'Invalid section "skills": items[0].title must be a string',
        'Invalid section "skills": column must be a number: 0, 1 or 2',
        'Invalid section "awards": column must be a number: 0, 1 or 2',
        "Invalid field header.phone: must be a string",
        "Invalid field header.email: must be a string",
    ]


def test_messages_are_50_at_most() -> None:
    assert len(refusals_of(with_section("summaries", *[{"text": 1}] * 300))) == 50


@pytest.mark.timing
def test_messages_past_50_take_no_time_to_make() -> None:
    # Each would be compared with 26 names: seconds for a body within the size limit.
    sections = {f"experience{number}": 0 for number in range(20_000)}
    started_s = process_time()
    assert len(refusals_of(a_document(sections=sections))) == 50
    assert process_time() - started_s < 0.5


def test_messages_print_a_section_key_safely() -> None:
    message = refusal_of(a_document(sections={"\x1b[2J" + "x" * 5000: {}}))
    assert message.startswith('Invalid section "\\x1b[2Jxxx')
    assert "\x1b" not in message
    assert len(message) < 700


def test_a_document_that_is_no_object_is_told_so() -> None:
    others: list[Any] = [[], "x", 5, None, True]
    for other in others:
        assert refusals_of(other) == ["The resume must be a JSON object"]


# Types


def test_types_are_strict_and_numbers_may_be_fractional() -> None:
    document = with_section("languages", {"level": 4.5}, column=1.0, order=0.5)
    assert stored(document)["sections"]["languages"]["column"] == 1
    assert "level must be a number" in refusal_of(with_section("languages", {"level": "4"}))
    assert "level must be a number" in refusal_of(with_section("languages", {"level": True}))
    assert "name must be a string" in refusal_of(with_section("languages", {"name": 5}))


# null


@pytest.mark.parametrize(
    "document",
    [
        a_document(title=None),
        a_document(style=None),
        a_document(style={"layout": None, "colors": None, "fontSize": None}),
        a_document(style={"colors": [None, "#000"]}),
        a_document(header={"name": None, "email": None}),
        with_section("skills", order=None),
        a_document(sections={"skills": {"column": 0, "items": None}}),
        with_section("skills", {"title": None, "tags": None}),
        with_section("skills", {"tags": ["a", None]}),
        with_section("experiences", {"dateRange": None}),
        with_section("experiences", {"dateRange": {"toYear": None, "isOngoing": None}}),
        with_section("mytime", {"pieces": None, "data": [None, {"title": None}]}),
    ],
)
def test_null_is_as_if_absent(document: Any) -> None:
    assert parsed(document).warnings == ()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (a_document(sections={"skills": None}), 'Invalid section "skills": must be an object'),
        (
            with_section("skills", column=None),
            'Invalid section "skills": column must be a number: 0, 1 or 2',
        ),
        (with_section("skills", None), 'Invalid section "skills": items[0] must be an object'),
        (with_section("skills", name=None), 'Invalid section "skills": name must be a string'),
    ],
)
def test_null_is_refused_for_a_section_its_column_and_name_and_an_item(
    document: Any, message: str
) -> None:
    assert refusals_of(document) == [message]


# column and order


def test_column_is_required() -> None:
    assert refusals_of(a_document(sections={"skills": {"name": "Skills"}})) == [
        'Invalid section "skills": column is required and must be a number: 0, 1 or 2'
    ]


@pytest.mark.parametrize("column", [-1, 3, 0.5, "0", True, [], 2**62])
def test_column_is_0_1_or_2(column: Any) -> None:
    assert refusals_of(with_section("skills", column=column)) == [
        'Invalid section "skills": column must be a number: 0, 1 or 2'
    ]


def test_column_2_needs_the_layout_multicolumn() -> None:
    section = with_section("skills", column=2)
    for style in ({}, None, {"layout": None}, {"layout": "double"}):
        assert refusals_of({**section, "style": style}) == [
            'Invalid section "skills": column must be 0 or 1 (2 needs style.layout multicolumn)'
        ]
    parsed({**section, "style": {"layout": "multicolumn"}})
    parsed({"style": {"layout": "multicolumn"}, **section})


def test_order_is_any_finite_number() -> None:
    for order in (-5, 0, 1.5, 1e300):
        assert stored(with_section("skills", order=order))["sections"]["skills"]["order"] == order
    assert refusal_of(with_section("skills", order="1")) == (
        'Invalid section "skills": order must be a number'
    )


def test_order_of_keys_survives_with_record_and_show_flags_at_the_end() -> None:
    document: dict[str, Any] = {
        "zeta": 1,
        "sections": {
            "skills": {"items": [{"tags": ["x"], "zeta": 1, "title": "t"}], "column": 0},
            "awards": {"column": 0},
        },
        "header": {"website": "w", "name": "n"},
    }
    kept = stored(document)
    assert list(kept) == ["zeta", "sections", "header", "isImported"]
    assert list(kept["sections"]) == ["skills", "awards"]
    assert list(kept["header"]) == ["website", "name"]
    assert list(kept["sections"]["skills"]["items"][0]) == [
        "tags",
        "zeta",
        "title",
        "record",
        "showTitle",
        "showDescription",
        "showTags",
    ]


# A section's name absent or empty, and items absent


def test_section_name_may_be_absent_or_empty_and_items_absent() -> None:
    sections = {"skills": {"column": 0}, "awards": {"column": 1, "name": ""}}
    resume = stored(a_document(sections=sections))
    assert resume["sections"] == sections


# What is unknown


def test_unknown_section_type_is_refused_with_the_nearest_known_one() -> None:
    assert refusals_of(a_document(sections={"education": {"column": 0}})) == [
        'Invalid section "education": unknown section type (did you mean educations?)'
    ]
    message = refusal_of(a_document(sections={"qqqqq": {"column": 0}}))
    assert message.startswith('Invalid section "qqqqq": unknown section type (must be one of summ')


def test_unknown_section_type_can_be_admitted_and_its_items_are_kept_as_they_are() -> None:
    accepted = Format(extra_section_types=frozenset({"hobbies"}))
    items = [{"record": "x", "showTitle": 5, "deep": [[1]]}, None, "text"]
    document = with_section("hobbies", *items, name="Hobbies")
    assert stored(document, accepted)["sections"]["hobbies"]["items"] == items
    assert warnings_of(document, accepted) == {}
    assert "column is required" in refusal_of(a_document(sections={"hobbies": {}}), accepted)
    assert "unknown section type" in refusal_of(document)


def test_unknown_fields_are_kept_and_reported() -> None:
    document = a_document(
        header={"fax": "1"},
        style={"shadow": 1},
        extra=[{}],
        sections={
            "experiences": {
                "column": 0,
                "icon": 1,
                "items": [{"salary": 1, "dateRange": {"fromDay": 1}}],
            },
            "mytime": {"column": 0, "items": [{"data": [{"colour": "red"}]}]},
        },
    )
    reported = warnings_of(document)
    assert list(reported) == [
        "header.fax",
        "sections.experiences.icon",
        "sections.experiences.items[0].salary",
        "sections.experiences.items[0].dateRange.fromDay",
        "sections.mytime.items[0].data[0].colour",
        "style.shadow",
        "extra",
    ]
    assert reported["header.fax"] == "fax is not a known field: kept, not shown"
    kept = stored(document)
    assert kept["header"] == {"fax": "1"}
    assert kept["extra"] == [{}]
    assert kept["sections"]["mytime"]["items"][0]["data"] == [{"colour": "red"}]


def test_unknown_fields_past_50_are_counted() -> None:
    warnings = parsed(a_document(**{f"field{number}": 1 for number in range(60)})).warnings
    assert len(warnings) == 51
    assert warnings[-1].message == "10 more warnings"


def test_sent_by_a_client_service_fields_are_dropped_and_reported() -> None:
    document = with_section("awards", {"record": "x", "showTitle": True, "title": "", "showX": 1})
    document["isImported"] = False
    kept = stored(document)
    assert kept["isImported"] is True
    assert list(kept)[-1] == "isImported"
    assert kept["sections"]["awards"]["items"][0] == {
        "title": "",
        "showX": 1,
        "record": "awards",
        "showTitle": False,
        "showDescription": False,
        "showIcon": False,
    }
    dropped = "is set by the service: the value sent was dropped"
    assert warnings_of(document) == {
        "sections.awards.items[0].record": f"record {dropped}",
        "sections.awards.items[0].showTitle": f"showTitle {dropped}",
        "sections.awards.items[0].showX": "showX is not a known field: kept, not shown",
        "isImported": f"isImported {dropped}",
    }


def test_layout_mode_and_bullet_marker_are_known_on_skills_and_technologies_only() -> None:
    extras = {"layoutMode": "compact", "showBulletMarker": False}
    for section_type in ("skills", "additionalTechnologies"):
        document = with_section(section_type, **extras)
        assert warnings_of(document) == {}
        assert stored(document)["sections"][section_type]["layoutMode"] == "compact"
    assert len(warnings_of(with_section("awards", **extras))) == 2


# Values


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (
            with_section("projects", {"dateRange": {"toMonth": 12}}),
            "sections.projects.items[0].dateRange.toMonth",
        ),
        (with_section("languages", {"level": 6}), "sections.languages.items[0].level"),
        (
            with_section("industryExperiences", {"level": 11}),
            "sections.industryExperiences.items[0].level",
        ),
        (with_section("awards", {"icon": "nope"}), "sections.awards.items[0].icon"),
        (a_document(style={"fontBody": "comic"}), "style.fontBody"),
        (a_document(style={"fontHeading": "comic"}), "style.fontHeading"),
        (a_document(style={"fontSize": 5}), "style.fontSize"),
        (a_document(style={"colors": ["#000", "#111", "#222"]}), "style.colors"),
        (a_document(style={"colors": ["#00000080"]}), "style.colors[0]"),
        (with_section("skills", {"title": " "}), "sections.skills.items[0].title"),
        (with_section("skills", {"title": "\u3000"}), "sections.skills.items[0].title"),
    ],
)
def test_out_of_range_values_are_kept_with_a_warning(document: Any, path: str) -> None:
    assert list(warnings_of(document)) == [path]
    kept = stored(document)
    if "style" in document:
        assert kept["style"] == document["style"]


def test_layout_not_in_the_table_and_colour_not_hex_are_refused() -> None:
    assert refusal_of(a_document(style={"layout": "fancy"})).startswith(
        "Invalid field style.layout: must be one of double, ivyleague, "
    )
    assert refusals_of(a_document(style={"colors": ["#000", "blue"]})) == [
        "Invalid field style.colors[1]: must be a hex colour such as #1A2B3C"
    ]


def test_text_limits_are_20000_characters_500_items_and_200_entries() -> None:
    parsed(with_section("skills", *[{"tags": ["x"] * 200}] * 500))
    parsed(with_section("summaries", {"text": "é" * 20_000}))
    assert refusals_of(with_section("summaries", {"text": "x" * 20_001})) == [
        'Invalid section "summaries": items[0].text must be a string of at most 20,000 characters'
    ]
    assert refusals_of(with_section("skills", *[{}] * 501)) == [
        'Invalid section "skills": items must be an array of at most 500 items'
    ]
    assert refusals_of(with_section("skills", {"tags": ["x"] * 201})) == [
        'Invalid section "skills": items[0].tags must be an array of at most 200 entries'
    ]
    assert "at most 20,000" in refusal_of(a_document(title="x" * 20_001))


# Cover letters


@pytest.mark.parametrize(
    "marked",
    [
        {"type": "coverLetter"},
        {"kind": "Cover Letters"},
        {"documentType": "COVER-LETTER_2"},
        {"isCoverLetter": True},
        {"coverLetter": None},
        {"coverLetters": []},
        {"sections": {"coverLetter": {}}},
        {"sections": {"coverLetters": None}, "header": 5},
    ],
)
def test_cover_letters_are_refused_before_anything_else_is_looked_at(marked: Any) -> None:
    for document in (marked, {**a_document(), **marked}):
        with pytest.raises(CoverLetter, match="Cover letters cannot be created"):
            parsed(document)


@pytest.mark.parametrize(
    "unmarked",
    [
        {"type": "resume"},
        {"type": ["coverLetter"]},
        {"isCoverLetter": False},
        {"isCoverLetter": "true"},
        {"title": "coverLetter"},
        {"letterOfCover": 1},
    ],
)
def test_cover_letters_are_only_those_marked_as_one(unmarked: Any) -> None:
    parsed(a_document(**unmarked))


# record and show flags


def test_record_is_the_section_type_on_every_item() -> None:
    resume = stored(with_section("quotes", {"quote": "q"}, {}))
    assert [item["record"] for item in resume["sections"]["quotes"]["items"]] == ["quotes"] * 2


def test_show_flags_there_is_one_for_every_field_of_the_items_type() -> None:
    assert stored_item("experiences", {"description": "d", "bullets": ["", "b"]}) == {
        "description": "d",
        "bullets": ["", "b"],
        "record": "experiences",
        "showWorkplace": False,
        "showPosition": False,
        "showLocation": False,
        "showLink": False,
        "showCompanyLogo": False,
        "showDateRange": False,
        "showDescription": True,
        "showBullets": True,
    }


@pytest.mark.parametrize(
    ("section_type", "item", "flag", "is_shown"),
    [
        ("summaries", {"text": "x"}, "showText", True),
        ("summaries", {"text": ""}, "showText", False),
        ("summaries", {"text": None}, "showText", False),
        ("summaries", {"text": " "}, "showText", True),
        ("skills", {"tags": []}, "showTags", False),
        ("skills", {"tags": ["", None]}, "showTags", False),
        ("skills", {"tags": ["", " "]}, "showTags", True),
        ("customs", {"dateRange": {}}, "showDateRange", False),
        ("customs", {"dateRange": {"fromYear": None}}, "showDateRange", False),
        ("customs", {"dateRange": {"isOngoing": False}}, "showDateRange", True),
        ("customs", {"dateRange": {"fromMonth": 0}}, "showDateRange", True),
        ("customs", {"dateRange": {"note": 1}}, "showDateRange", False),
        ("languages", {"level": 0}, "showLevel", True),
        ("mytime", {"pieces": 0}, "showPieces", True),
        ("mytime", {"data": [{}, None]}, "showData", False),
        ("mytime", {"data": [{}, {"value": 0}]}, "showData", True),
    ],
)
def test_show_flags_follow_whether_the_value_counts(
    section_type: str, item: dict[str, Any], flag: str, is_shown: bool
) -> None:
    assert stored_item(section_type, item)[flag] is is_shown


def test_an_unknown_section_type_is_told_all_that_are_known_in_their_order() -> None:
    admitted = Format(extra_section_types=frozenset({"zeal", "hobbies"}))
    document = with_section("qqqqq")
    known = ", ".join([*SECTION_TYPES, "hobbies", "zeal"])
    assert refusal_of(document, admitted) == (
        f'Invalid section "qqqqq": unknown section type (must be one of {known})'
    )


def test_as_many_entries_as_a_list_may_have_are_kept() -> None:
    slices = [{"title": "Sleep", "value": 1}] * 200
    assert parsed(with_section("mytime", {"data": slices})).warnings == ()


def test_an_icon_that_is_no_text_is_refused_at_its_place() -> None:
    assert refusal_of(with_section("awards", {"icon": 5})) == (
        'Invalid section "awards": items[0].icon must be a string'
    )
