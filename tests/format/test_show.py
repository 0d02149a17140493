"""What of a stored resume is seen, by clients and by people, and what it is called."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resumes.analyzer import (
    attachment,
    check_stored,
    filename,
    is_filename,
    iter_sections,
    list_title,
    parse,
    plain_number,
    public_json,
    sent_json,
    shown_view,
    stored_warnings,
    whole_json,
)
from resumes.analyzer.view import date_range
from resumes.errors import InvalidResume, Issue, StoreIncompatible
from tests.support.documents import (
    DOCUMENTS,
    HEADINGS,
    SECTIONS,
    a_document,
    admitting,
    parsed,
    public_view,
    view_of,
    whole,
    whole_view,
    with_section,
)

HOBBIES = admitting("hobbies")
TO = " \N{EN DASH} "
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def test_the_public_view_leaves_out_hidden_and_service_fields_but_no_unknown_ones() -> None:
    job = {"position": "Dev", "salary": 1, "bullets": ["a", "", None]}
    data = [{"title": "a", "x": 1}, None, {"title": ""}]
    document = {
        "extra": 1,
        "isImported": 2,
        "title": "Engineer",
        "sections": {
            "experiences": {
                "unknown": 1,
                "column": 1,
                "order": None,
                "name": "",
                "items": [
                    {
                        "link": "",
                        **job,
                        "record": "?",
                        "showLink": True,
                        "location": None,
                        "dateRange": {"fromYear": 2020, "toYear": None, "day": 3},
                    },
                    {"workplace": "", "dateRange": {"toYear": None}, "bullets": [""]},
                ],
            },
            "mytime": {"column": 0, "order": 2, "items": [{"data": data}]},
            "hobbies": {"column": 0, "items": [{"record": 1}, 5], "unknown": 1},
            "skills": {"column": 0, "layoutMode": "tags", "showBulletMarker": False},
        },
        "header": {"name": "Ada", "email": "", "phone": None, "fax": "1"},
        "style": {"layout": "double", "fontBody": "", "colors": [], "hideBranding": False, "x": 1},
    }
    expected = {
        "header": {"name": "Ada", "fax": "1"},
        "sections": {
            "experiences": {
                "unknown": 1,
                "column": 1,
                "items": [{**job, "dateRange": {"fromYear": 2020, "day": 3}}, {}],
            },
            "mytime": {"column": 0, "order": 2, "items": [{"data": data}]},
            "hobbies": {"column": 0, "unknown": 1, "items": [{"record": 1}, 5]},
            "skills": {"column": 0, "layoutMode": "tags", "showBulletMarker": False, "items": []},
        },
        "title": "Engineer",
        "style": {"layout": "double", "hideBranding": False, "x": 1},
        "extra": 1,
    }
    assert json.dumps(view_of(document, HOBBIES)) == json.dumps(expected)
    assert public_view(parsed(document, HOBBIES).document.decode(), HOBBIES) == expected
    seen = shown_view(parsed(document, HOBBIES).document, HOBBIES)["sections"]
    assert seen["mytime"]["items"] == [{"data": [{"title": "a"}, None, {"title": ""}]}]
    assert seen["hobbies"] == {"column": 0, "items": [{"record": 1}, 5]}
    assert view_of(with_section("mytime", {"data": data})) == with_section("mytime", {"data": data})
    del expected["sections"]["hobbies"]  # type: ignore[attr-defined]
    assert public_view(parsed(document, HOBBIES).document) == expected


@pytest.mark.parametrize(
    "hidden", [{}, {"title": None, "style": None}, {"title": " ", "style": {}}]
)
def test_the_public_view_has_no_blank_title_and_no_empty_style(hidden: dict[str, Any]) -> None:
    assert view_of(a_document(**hidden)) == {"header": {"name": "Ada Lovelace"}, "sections": {}}


@pytest.mark.parametrize(
    "document",
    [
        b"", "{", "[]", "1", "null", '{"header": {}}', '{"sections": {}}',
        '{"header": null, "sections": {}}', '{"header": {}, "sections": []}',
    ],
)  # fmt: skip
def test_a_stored_document_that_has_lost_its_form_is_called_damaged(document: str | bytes) -> None:
    with pytest.raises(
        StoreIncompatible, match=r"^A stored resume is damaged\. `resumes db check`"
    ):
        public_view(document)


def test_a_stored_document_with_sections_that_are_damaged_is_shown_whole() -> None:
    document = a_document(sections={"skills": {"column": 0, "items": 5}, "awards": 7})
    assert whole_view(json.dumps(document)) == {**document, "isImported": True}


def test_sections_come_in_ascending_order_then_those_without_as_sent() -> None:
    orders = {"skills": None, "awards": 2, "books": -1.5, "quotes": 2, "courses": "absent",
              "customs": 1, "interests": 0}  # fmt: skip
    sections = {
        name: {"column": 0} if order == "absent" else {"column": 0, "order": order}
        for name, order in orders.items()
    }
    document = json.loads(parsed(a_document(sections=sections)).document)
    expected = ["books", "interests", "customs", "awards", "quotes", "skills", "courses"]
    assert [section.type for section in iter_sections(document)] == expected
    assert [section.type for section in iter_sections(view_of(document))] == expected


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_without_a_name_is_shown_under_the_heading_of_its_type(name: str) -> None:
    for fields in ({}, {"name": ""}, {"name": " "}, {"name": None}):
        (section,) = iter_sections(with_section(name, column=1.0, **fields))
        assert (section.type, section.heading, section.column) == (name, HEADINGS[name], 1)
    (section,) = iter_sections(with_section(name, column=2, name="Jobs"))
    assert (section.heading, section.column) == ("Jobs", 2)


def test_people_see_shown_fields_in_table_order_without_blanks() -> None:
    document = with_section(
        "skills",
        {"tags": ["a", "", None], "title": "T", "unknown": 1, "description": ""},
        {"title": ""},
    )
    for each in (document, json.loads(parsed(document).document)):
        (section,) = iter_sections(each)
        assert [list(item.items()) for item in section.items] == [[("title", "T"), ("tags", ["a"])]]


def test_people_see_the_items_of_admitted_section_types_without_what_is_empty() -> None:
    document = with_section(
        "hobbies",
        {"title": "Chess", "note": ""},
        "Go",
        None,
        {"a": [], "b": {}, "c": [None, ""], "d": {"e": [{}]}, "f": 0},
        {"g": False, "h": ["", {"i": [1]}]},
    )
    (section,) = iter_sections(document, HOBBIES)
    assert section.heading == "hobbies"
    assert section.items == (
        {"title": "Chess"}, {"": "Go"}, {"f": 0}, {"g": False, "h": [{"i": [1]}]},
    )  # fmt: skip
    assert list(iter_sections(document)) == []
    (empty,) = iter_sections(a_document(sections={"skills": {"column": 0}}))
    assert empty.items == ()


@settings(max_examples=60, derandomize=True, deadline=None)
@given(document=DOCUMENTS)
def test_the_view_has_what_flags_show_and_created_again_it_gives_the_same_view(
    document: Any,
) -> None:
    view = view_of(document, HOBBIES)
    assert set(view) <= {"header", "sections", "title", "style"}
    assert list(view["sections"]) == list(document["sections"])
    for name, section in whole(document, HOBBIES)["sections"].items():
        for item, seen in zip(
            section.get("items") or (), view["sections"][name]["items"], strict=True
        ):
            for field in SECTIONS[name]:
                assert item[f"show{field[0].upper()}{field[1:]}"] is (field in seen)
    again = parsed(view, HOBBIES)
    assert public_view(again.document, HOBBIES) == view
    assert not any("is set by the service" in warning.message for warning in again.warnings)


# Notations that a parser would not give back.
NOTATIONS = [
    "1.0", "1e5", "-0", "-0.0", "1E-7", "0.1000000000000000055511151231257827", "9007199254740993",
    r'"\u00e9\/\t"', '"é"', r'{"\u0061": [1.50, {}, null, ""]}', "[]", "{}", "null", '""', "false",
]  # fmt: skip


@settings(max_examples=40, derandomize=True, deadline=None)
@given(document=DOCUMENTS, data=st.data())
def test_unknown_fields_come_back_as_they_were_written_wherever_they_are(
    document: Any, data: st.DataObject
) -> None:
    """In what clients get, what they create of it, and what is exported of that."""
    groups = [document, document["header"]]
    groups += [group for group in [document.get("style")] if group is not None]
    for name, section in document["sections"].items():
        groups.append(section)
        for item in section.get("items") or () if name in SECTIONS else ():
            groups += [item, *filter(None, [item.get("dateRange"), *(item.get("data") or ())])]
    texts = {}
    for number, group in enumerate(groups):
        key = f"x{number}"
        texts[key] = data.draw(st.sampled_from(NOTATIONS))
        group[key] = f"<{key}>"
    body = json.dumps(document)
    for key, text in texts.items():
        body = body.replace(f'"<{key}>"', text)
    got = public_json(parse(body.encode(), HOBBIES).document, HOBBIES)
    again = parse(got, HOBBIES)
    assert public_json(again.document, HOBBIES) == got
    for shown in (got, whole_json(again.document)):
        for key, text in texts.items():
            assert shown.decode().count(f'"{key}":{text}') == 1


def test_fields_that_the_first_release_did_not_know_are_shown_of_what_it_stored() -> None:
    """Then they could hold anything: what cannot be shown stays an unknown field."""
    item = {"workplace": "Mill", "location": "York", "description": 5, "bullets": ["Ground corn"]}
    bad = {"workplace": "Mine", "bullets": "one", "link": {"a": 1.50}, "companyLogo": None}
    document = with_section("additionalExperiences", item, bad)
    dates = {"fromYear": 2020, "fromMonth": 12, "day": 3}
    customs3 = {"column": 0, "items": [{"dateRange": dates | {"toYear": None}}]}
    customs2 = {"column": 0, "items": [{"dateRange": "2020", "icon": ["x"]}]}
    document["sections"] |= {"customs3": customs3, "customs2": customs2}
    text = json.dumps(document).replace("1.5", "1.50").encode()

    mill, mine, dated = (item for section in iter_sections(document) for item in section.items)
    assert mill == {"workplace": "Mill", "location": "York", "bullets": ["Ground corn"]}
    assert mine == {"workplace": "Mine"}
    assert dated == {"dateRange": {"fromYear": 2020, "fromMonth": 11}}
    assert check_stored(text).name == "Ada Lovelace"
    for view in (public_view(text), whole_view(text)):
        jobs, _, customs = view["sections"].values()
        assert jobs["items"][0].items() >= item.items()
        assert {"dateRange": "2020", "icon": ["x"]}.items() <= customs["items"][0].items()
    assert public_view(text)["sections"]["customs3"]["items"] == [{"dateRange": dates}]
    assert b'"link":{"a": 1.50}' in public_json(text)
    assert whole_view(text)["sections"]["additionalExperiences"]["items"][1]["showBullets"] is False
    assert [warning.path.rpartition("items")[2] for warning in stored_warnings(text, None)] == [
        "[0].description", "[1].bullets", "[1].link", "[0].dateRange.fromMonth", "[0].dateRange.day",
        "[0].dateRange", "[0].icon",
    ]  # fmt: skip
    with pytest.raises(InvalidResume, match=r"items\[0\]\.description must be a string"):
        parse(public_json(text))
    many = with_section("customs2", {"dateRange": dates | dict.fromkeys(map(str, range(10_050)))})
    unknown = "dateRange is not a known field: stored, but not displayed"
    warning = Issue("sections.customs2.items[0].dateRange", unknown)
    assert stored_warnings(json.dumps(many), None) == (warning,)


def test_what_was_sent_is_shown_as_it_was_sent_without_what_the_service_set() -> None:
    sent = b'{"header":{"name":"A"},"sections":{"skills":{"column":0,"items":[{"x":1.50}]}}}'
    stored = parse(sent.replace(b'"x"', b'"record":"r","x"')).document
    assert sent_json(stored) == sent_json(stored.decode()) == sent


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"fromYear": 2015, "fromMonth": 0, "isOngoing": True}, f"Jan 2015{TO}present"),
        ({"fromYear": 2013, "fromMonth": 3, "toYear": 2018, "toMonth": 11, "isOngoing": False},
         f"Apr 2013{TO}Dec 2018"),
        ({"fromYear": 1961, "toYear": 1968}, f"1961{TO}1968"),
        ({"fromYear": 1969, "toYear": 1969}, "1969"),
        ({"fromYear": 2015}, "2015"),
        ({"fromYear": 2015.0, "fromMonth": 1.0}, "Feb 2015"),
        ({"toYear": 2019, "toMonth": 5}, "until Jun 2019"),
        ({"isOngoing": True}, "present"),
        ({"fromMonth": 12, "fromYear": 2015}, "month 12 2015"),
        ({"fromMonth": 0.5, "fromYear": 2015}, "month 0.5 2015"),
        ({"fromMonth": None, "fromYear": 2015}, "2015"),
        *(({"fromMonth": number}, name) for number, name in enumerate(MONTHS)),
        ({"isOngoing": False}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_a_date_range_reads_as_people_write_it(fields: dict[str, Any], expected: str) -> None:
    assert date_range(fields) == expected


@pytest.mark.parametrize(
    ("number", "expected"), [(2015, "2015"), (2015.0, "2015"), (4.5, "4.5"), (-0.0, "0")]
)
def test_a_whole_number_is_written_without_a_fraction(number: float, expected: str) -> None:
    assert plain_number(number) == expected


@pytest.mark.parametrize(
    ("title", "name", "shown"),
    [
        ("Engineer", "Ada", "Engineer"),
        (None, "Ada Lovelace", "Ada Lovelace Resume"),
        ("", "Ada", "Ada Resume"),
        (" \t", "Ada", "Ada Resume"),
        (None, None, "New Resume"),
        (None, "  ", "New Resume"),
    ],
)
def test_title_absent_or_blank_lists_as_the_name_or_new_resume(
    title: str | None, name: str | None, shown: str
) -> None:
    assert list_title(title, name) == shown


@pytest.mark.parametrize(
    ("title", "name", "expected"),
    [
        ("Engineer", "Mira Hoffmann", "MiraHoffmannResume.pdf"),
        ("Senior  Engineer", None, "Senior Engineer.pdf"),
        (None, None, "Resume.pdf"),
        ("a/b", " / ", "ab.pdf"),
        ("...", "\u202e", "Resume.pdf"),
        (None, "..Ada", "AdaResume.pdf"),
        (None, "../../etc/passwd", "etcpasswdResume.pdf"),
        (None, "Ada\u202e\u2066\u200b\x00\x1b\n\x7f", "AdaResume.pdf"),
        (None, 'A<d>a:"/\\|?*', "AdaResume.pdf"),
        (None, "Zoe\u0308", "Zo\u00ebResume.pdf"),
        (None, "e\u200b\u0301", "\u00e9Resume.pdf"),
        (None, "李 小龍", "李小龍Resume.pdf"),
        (None, "Xavier X", "XavierXResume.pdf"),
        ("Xerox X", None, "Xerox X.pdf"),
        # Cut to 120 bytes, between characters, and not with a blank at the end.
        (None, "é" * 200, "é" * 55 + "Resume.pdf"),
        (None, "a" + "é" * 100, "a" + "é" * 54 + "Resume.pdf"),
        ("X" * 200, None, "X" * 116 + ".pdf"),
        ("x" * 115 + " yyyy", None, "x" * 115 + ".pdf"),
    ],
)
def test_a_file_name_is_made_of_the_name_else_the_title(
    title: str | None, name: str | None, expected: str
) -> None:
    assert filename(title, name) == expected
    assert is_filename(expected)


@pytest.mark.parametrize(
    "text",
    [
        "", ".pdf", "..pdf", "Ada", "Ada.PDF", "../Ada.pdf", "/Ada.pdf", "a\\b.pdf", " Ada.pdf",
        "a\0.pdf", "a\n.pdf", "a\u202e.pdf", "x" * 117 + ".pdf", "\u00e9" * 59 + ".pdf",
    ],
)  # fmt: skip
def test_what_is_not_safe_everywhere_is_no_file_name(text: str) -> None:
    assert not is_filename(text)


@pytest.mark.parametrize(
    ("name", "plain", "encoded"),
    [
        ("Ada Resume.pdf", "Ada Resume.pdf", "Ada%20Resume.pdf"),
        ("ZoëResume.pdf", "Resume.pdf", "Zo%C3%ABResume.pdf"),
        ("ZoëResume.docx", "Resume.docx", "Zo%C3%ABResume.docx"),
        ('a".pdf', "Resume.pdf", "a%22.pdf"),
        ("Zoë St. ClairResume.pdf", "Resume.pdf", "Zo%C3%AB%20St.%20ClairResume.pdf"),
        ("a\r\nX: y/b.pdf", "Resume.pdf", "a%0D%0AX%3A%20y%2Fb.pdf"),
    ],
)
def test_a_download_is_named_in_ascii_and_as_it_is_called(
    name: str, plain: str, encoded: str
) -> None:
    expected = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}"
    assert attachment(name) == expected
