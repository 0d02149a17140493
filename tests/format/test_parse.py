"""What becomes of a document: what is stored, its warnings, and what is known of it later."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from resumes.analyzer import Resume, check_stored, parse, stored_warnings
from resumes.analyzer.plain import MAX_BYTES, parse_plain
from resumes.errors import CoverLetter, InvalidJson, InvalidResume, Issue
from tests.support.documents import (
    SECTIONS,
    a_document,
    admitting,
    parsed,
    public_view,
    warnings_of,
    whole,
    whole_view,
    with_section,
)

UNKNOWN = "is not a known field: stored, but not displayed"
DROPPED = "is set by the service: the value sent was dropped"

EXAMPLES: list[dict[str, Any]] = [
    a_document(),
    a_document(title="Engineer", style={"layout": "multicolumn", "colors": ["#000"]}),
    with_section("experiences", {"dateRange": {"fromYear": 2020}, "bullets": ["a", None]}, {}),
    with_section("mytime", {"pieces": 1, "data": [{"title": "a", "value": 1}]}, column=1),
    with_section("skills", {"tags": ["a"], "unknown": [{"deep": [1.5]}]}, layoutMode="tags"),
    with_section("experiences", {"position": "X", "dateRange": {"fromMonth": 12}, "hat": True}),
    {"header": {"name": " ", "shoe": 38}, "sections": {}, "odd": [1, 2], "title": ""},
]


def test_a_valid_body_gives_all_that_the_store_needs() -> None:
    body = b'{"header": {"name": "Ada Lovelace"}, "sections": {}, "title": "Engineer", "x": 1}'
    assert parse(body) == Resume(
        title="Engineer",
        name="Ada Lovelace",
        filename="AdaLovelaceResume.pdf",
        document=body,
        warnings=(Issue("x", f"x {UNKNOWN}"),),
    )


def test_what_is_stored_is_what_was_sent_but_for_white_space_between_tokens() -> None:
    texts = (
        rb'"n\u0061me":"A\n  B \ud83d\ude00"',
        b'"x":[1.50,1e2,-0,12345678901234567890.0,"\xc3\xa9"]',
    )
    body = b'{"header":{%b},"sections":{"awards":{"column":0,"items":[{"record":"x"}]}},%b}' % texts
    assert parse(body).document == body
    for between in (b"\n", b"\r\n  ", b"\r\t"):
        assert parse(body.replace(b'"sections":', b'"sections":' + between)).document == body


@pytest.mark.parametrize("blank", [None, "", "  "])
def test_title_and_name_absent_or_blank_are_none(blank: str | None) -> None:
    resume = parsed({"header": {"name": blank}, "sections": {}, "title": blank})
    assert (resume.title, resume.name, resume.filename) == (None, None, "Resume.pdf")


def test_the_order_of_keys_survives_and_what_the_service_sets_is_at_the_end() -> None:
    document: dict[str, Any] = {
        "isImported": False,
        "zeta": 1,
        "sections": {
            "skills": {"items": [{"tags": ["x"], "zeta": 1, "record": 1, "title": "t"}],
                       "column": 1.0},
            "awards": {"column": 0, "name": "", "order": -5},
        },
        "header": {"website": "w", "name": "n"},
    }  # fmt: skip
    expected = {
        "zeta": 1,
        "sections": {
            "skills": {
                "items": [
                    {"tags": ["x"], "zeta": 1, "title": "t", "record": "skills",
                     "showTitle": True, "showDescription": False, "showTags": True}
                ],
                "column": 1.0,
            },
            "awards": {"column": 0, "name": "", "order": -5},
        },
        "header": {"website": "w", "name": "n"},
        "isImported": True,
    }  # fmt: skip
    assert json.dumps(whole(document)) == json.dumps(expected)


def test_unknown_fields_are_kept_with_a_warning_at_any_level() -> None:
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
            "awards": {"column": 0, "layoutMode": "compact", "showBulletMarker": False},
        },
    )
    assert warnings_of(document) == [
        ("header.fax", f"fax {UNKNOWN}"),
        ("sections.experiences.icon", f"icon {UNKNOWN}"),
        ("sections.experiences.items[0].salary", f"salary {UNKNOWN}"),
        ("sections.experiences.items[0].dateRange.fromDay", f"fromDay {UNKNOWN}"),
        ("sections.mytime.items[0].data[0].colour", f"colour {UNKNOWN}"),
        ("sections.awards.layoutMode", f"layoutMode {UNKNOWN}"),
        ("sections.awards.showBulletMarker", f"showBulletMarker {UNKNOWN}"),
        ("style.shadow", f"shadow {UNKNOWN}"),
        ("extra", f"extra {UNKNOWN}"),
    ]
    kept = whole(document)
    assert (kept["header"], kept["style"], kept["extra"]) == ({"fax": "1"}, {"shadow": 1}, [{}])
    assert kept["sections"]["mytime"]["items"][0]["data"] == [{"colour": "red"}]
    assert kept["sections"]["awards"] == document["sections"]["awards"]


def test_layout_mode_and_bullet_marker_are_known_on_skills_and_technologies() -> None:
    extras: dict[str, Any] = {"layoutMode": "compact", "showBulletMarker": [False]}
    for section_type in ("skills", "additionalTechnologies"):
        document = with_section(section_type, **extras)
        assert warnings_of(document) == []
        assert whole(document)["sections"][section_type] == {"column": 0, **extras, "items": []}


def test_what_the_service_sets_is_dropped_with_a_warning() -> None:
    document = with_section("awards", {"record": "x", "showTitle": True, "title": "", "showX": 1})
    document["isImported"] = False
    assert whole(document)["sections"]["awards"]["items"][0] == {
        "title": "",
        "showX": 1,
        "record": "awards",
        "showTitle": False,
        "showDescription": False,
        "showIcon": False,
    }
    assert warnings_of(document) == [
        ("sections.awards.items[0].record", f"record {DROPPED}"),
        ("sections.awards.items[0].showTitle", f"showTitle {DROPPED}"),
        ("sections.awards.items[0].showX", f"showX {UNKNOWN}"),
        ("isImported", f"isImported {DROPPED}"),
    ]


def test_items_of_an_admitted_type_are_kept_as_they_are() -> None:
    items = [{"record": "x", "showTitle": 5, "deep": [[1]]}, None, "text"]
    document = with_section("hobbies", *items, name="Hobbies")
    kept = whole(document, admitting("hobbies"))["sections"]["hobbies"]
    assert kept == {"column": 0, "name": "Hobbies", "items": items}
    assert warnings_of(document, admitting("hobbies")) == []


@pytest.mark.parametrize(
    "fields",
    [{"order": None}, {"items": None}, {"name": ""}, {"order": 1e300, "column": 1.0}, {"order": 0}],
)
def test_fields_of_a_section_without_a_warning(fields: dict[str, Any]) -> None:
    section = {"column": 0, **fields}
    assert warnings_of(a_document(sections={"skills": section})) == []
    assert whole(a_document(sections={"skills": section}))["sections"]["skills"] == section


@pytest.mark.parametrize(("more", "summary"), [(1, "1 more warning"), (7, "7 more warnings")])
def test_50_warnings_are_listed_and_the_rest_are_counted(more: int, summary: str) -> None:
    def with_odd(count: int) -> Any:
        return a_document(**{f"field{number}": 1 for number in range(count)})

    fields = [(f"field{number}", f"field{number} {UNKNOWN}") for number in range(50)]
    assert warnings_of(with_odd(50)) == fields
    assert warnings_of(with_odd(50 + more)) == [*fields, ("", summary)]


def test_500_items_of_200_entries_are_a_resume() -> None:
    assert warnings_of(with_section("skills", *[{"tags": ["x"] * 200}] * 500)) == []


# What is stored, looked at again


@pytest.mark.parametrize("document", EXAMPLES)
def test_a_stored_document_is_known_and_warned_of_as_when_it_was_created(document: Any) -> None:
    created = parsed(document)
    assert check_stored(created.document)[:2] == (created.title, created.name)
    assert stored_warnings(created.document, None) == created.warnings
    assert stored_warnings(created.document.decode(), None) == created.warnings


@pytest.mark.parametrize(
    "document",
    [
        with_section("skills", {"title": "X", "record": "me", "showTitle": 1}),
        a_document(isImported=5),
        with_section("hobbies", {"any": 1, "record": 5}, 7),
    ],
)
def test_of_what_the_service_set_or_admitted_there_is_no_warning_later(document: Any) -> None:
    created = parsed(document, admitting("hobbies"))
    assert stored_warnings(created.document, None) == ()
    assert check_stored(created.document)[:2] == (None, "Ada Lovelace")
    odd = parsed(with_section("hobbies", {"any": 1}, odd=1), admitting("hobbies"))
    assert stored_warnings(odd.document, None) == odd.warnings != ()


def test_what_was_stored_without_a_field_of_the_service_has_no_warning_for_it() -> None:
    # Fields that the service sets may be added to the format after it was stored.
    stored_before = {"header": {}, "sections": {"skills": {"column": 0, "items": [{"title": "X"}]}}}
    assert stored_warnings(json.dumps(stored_before), None) == ()


def test_a_stored_document_may_be_larger_than_what_can_be_sent() -> None:
    # Earlier versions added what the service sets.
    section = {"column": 0, "items": [{}] * 500}
    sections = dict.fromkeys([*SECTIONS, "patents"], section)
    stored = orjson.dumps(
        whole({"header": {"name": "Ada"}, "sections": sections}, admitting("patents"))
    )
    with pytest.raises(InvalidJson, match="more than 50,000 fields"):
        parse(stored, admitting("patents"))
    assert check_stored(stored).name == "Ada"
    assert stored_warnings(stored, None) == ()


@pytest.mark.parametrize("document", EXAMPLES)
def test_a_document_that_has_what_the_service_sets_reads_like_one_that_has_not(
    document: Any,
) -> None:
    sent = parsed(document).document
    before = orjson.dumps(whole_view(sent))
    assert whole_view(before) == whole_view(sent)
    assert public_view(before) == public_view(sent)
    assert check_stored(before) == check_stored(sent)
    assert stored_warnings(before, None) == stored_warnings(sent, None)


STORED = parsed(EXAMPLES[2]).document


def with_members(**members: object) -> bytes:
    return json.dumps(json.loads(STORED) | members).encode()


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        with_members(header=[]),
        with_members(sections=7),
        with_members(sections={"skills": 7}),
        with_members(title="\ud800"),
        with_members(title="\0"),
        with_members(type="coverLetter"),
        with_members(sections={"awards": 7}),
        with_members(sections={"awards": {"column": 0, "items": {}}}),
        with_members(sections={"awards": {"column": 0, "items": [5, None]}}),
        with_members(sections={"awards": {"column": 0, "items": [{"record": "awards"}, []]}}),
        STORED.replace(b"2020", b"1e999"),
        STORED.replace(b'"sections"', b'"isImported": 1e999, "sections"'),
        STORED.replace(b"2020", b"9" * 4_000),
        b'{"a":' * 900 + b"1" + b"}" * 900,
    ],
    ids=lambda document: repr(document[-20:]),
)
def test_what_the_service_cannot_have_stored_is_refused(document: bytes) -> None:
    with pytest.raises((InvalidJson, InvalidResume, CoverLetter)):
        check_stored(document)


# The quick way, which takes only what the precise way has nothing to say about


BLANKS = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"


def is_taken(body: bytes) -> bool:
    """Whether the quick way takes it; then the precise way, to which a mark leads, says the same."""
    if parse_plain(body) is None:
        return False
    quick, precise = parse(body), parse(b"\xef\xbb\xbf" + body)
    assert precise.warnings == ()
    assert quick == precise._replace(document=quick.document)
    assert json.loads(quick.document) == json.loads(body)
    assert b"\n" not in quick.document
    return True


def test_most_samples_without_a_warning_are_taken(repository: Path) -> None:
    bodies = [path.read_bytes() for path in (repository / "sample_data").glob("*.json")]
    clean = [body for body in bodies if not parse(body).warnings]
    assert sum(map(is_taken, clean)) > len(clean) * 0.7


def a_body(item: Any = None, **members: Any) -> bytes:
    section = {"column": 0, "items": [item if item is not None else {"text": "Builds."}]}
    return json.dumps({"header": {}, "sections": {"summaries": section}, **members}).encode()


@pytest.mark.parametrize(
    "body",
    [
        a_body().replace(b'"column": 0', b'"column": 0, "column": 0'),
        a_body().replace(b"{}", rb'{"name": "A", "n\u0061me": "A"}'),
        a_body().replace(b"{}", rb'{"name": "A", "name": "B\u003a"}'),
        a_body({"text": "B\x00"}),
        *(a_body({"text": blank}) for blank in BLANKS),
        *(json.dumps({"header": {"name": blank}, "sections": {}}, ensure_ascii=False).encode() for blank in BLANKS[9:]),
        a_body({"text": "B" * 20_001}),
        a_body({"text": 5}),
        a_body({"unknown": "B"}),
        a_body({"record": "summaries"}),
        a_body(isImported=True),
        a_body(kind="coverLetter"),
        a_body(style={"layout": ""}),
        a_body(style={"layout": "unknown"}),
        a_body(style={"colors": ["#12345678"]}),
        a_body(style={"colors": ["#123\n"]}),
        a_body(style={"colors": ["#123"] * 3}),
        a_body(style={"fontSize": 5}),
        a_body(style={"fontBody": "unknown"}),
        a_body().replace(b'"column": 0', b'"column": 2'),
        a_body().replace(b'"column": 0', b'"column": null'),
        a_body().replace(b'"column": 0', b'"column": 0, "name": null'),
        a_body().replace(b'"column": 0', b'"column": 0, "order": 1e999'),
        a_body().replace(b'"column": 0', b'"column": 0, "order": 9223372036854775808'),
        a_body(title="B" * MAX_BYTES),
        b"\xef\xbb\xbf" + a_body(),
        a_body().decode().encode("utf-16"),
        a_body() + b"x",
        b"",
        b"[]",
    ],
)  # fmt: skip
def test_what_wants_a_closer_look_is_left_to_the_precise_way(body: bytes) -> None:
    assert is_taken(a_body())
    assert parse_plain(body) is None


@pytest.mark.parametrize(
    "body",
    [
        a_body(title=None, style=None),
        a_body(style={"layout": None, "fontBody": "", "colors": ["#123", None], "fontSize": 0}),
        a_body().replace(b'"column": 0', b'"column": 1, "order": -0, "items": null, "name": ""'
                         ).replace(b', "items": [{"text": "Builds."}]', b""),
        a_body().replace(b'"column": 0', b'"order": 9223372036854775807, "column": 0'),
        a_body({"text": "Ωmega “: \"a\\b\"\n 😀"}),
        json.dumps(json.loads(a_body()), indent=2).replace("\n", "\r\n").encode(),
    ],
)  # fmt: skip
def test_what_has_empty_null_and_odd_looking_values_is_taken(body: bytes) -> None:
    assert is_taken(body)
