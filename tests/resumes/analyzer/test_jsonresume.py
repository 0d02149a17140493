"""Bytes that may be a JSON Resume: `parse_imported` beside `parse`."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resumes.analyzer import Format, parse, parse_imported, public_view, to_jsonresume
from resumes.analyzer.jsonresume.mapping import KEYS
from resumes.errors import CoverLetter, InvalidInput, InvalidJson, InvalidResume, TooLarge
from tests.resumes.analyzer.documents import a_document, with_section
from tests.resumes.analyzer.jsonresume.comparing import BASICS, ENTRIES, LOCATION
from tests.resumes.analyzer.jsonresume.json_schema import iter_faults
from tests.resumes.analyzer.jsonresume.samples import COMPLETE, imported, with_list


def outcome(parser: Any, body: bytes) -> Any:
    """What comes of the bytes: the resume, or all that the error says."""
    try:
        return parser(body)
    except InvalidInput as error:
        return type(error), error.message, vars(error)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(a_document(title="Engineer", unknown=1)).encode(),
        json.dumps(with_section("skills", {"tags": 5}, layoutMode="tags")).encode(),
        b'{"header": {}, "sections": {}, "basics": {"name": "Ada"}, "work": []}',
        b'{"header": 5, "basics": {}}',
        b'{"sections": {"education": {}}}',
        b'{"title": "x"}',
        b'{"type": "coverLetter"}',
        b'{"header": {}, "sections": {}, "x": 1e999}',
        b'{"work": [],}',
        b"{",
        b"[]",
        b"5",
        b"",
        b"\xff\xfe{",
    ],
)
def test_what_is_no_json_resume_gives_what_parse_gives(body: bytes) -> None:
    assert outcome(parse_imported, body) == outcome(parse, body)


def test_a_json_resume_is_stored_as_an_analyzer_document() -> None:
    resume = imported({"basics": {"name": "Ada Example", "label": "Analyst"}})
    assert (resume.title, resume.name) == ("Ada Example - Analyst", "Ada Example")
    assert resume.filename == "AdaExampleResume.pdf"
    stored = json.loads(resume.document)
    assert stored["isImported"] is True
    assert "basics" not in stored


def test_over_http_a_json_resume_is_none() -> None:
    with pytest.raises(InvalidResume, match="header"):
        parse(json.dumps(COMPLETE).encode())


def test_what_is_converted_is_stored_without_a_warning_of_its_own() -> None:
    document = json.loads(imported(COMPLETE).document)
    assert parse(json.dumps(public_view(json.dumps(document))).encode()).warnings == ()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"1e999", "overflows"),
        (b"9223372036854775808", "outside"),
        (b"[" * 40 + b"]" * 40, "nested deeper"),
        (b'"\\u0000"', "U\\+0000"),
    ],
)
@pytest.mark.parametrize(
    "around",
    [b'{"basics": {"x": %s}}', b'{"work": [{"name": %s}]}', b'{"basics": {}, "meta": %s}'],
)
def test_json_that_cannot_be_kept_is_refused_with_its_place(
    around: bytes, bad: bytes, reason: str
) -> None:
    with pytest.raises(InvalidJson, match=reason) as refusal:
        parse_imported(around % bad)
    assert refusal.value.offset is not None
    assert refusal.value.offset >= around.index(b"%s")


def test_a_json_resume_that_calls_itself_a_cover_letter_is_one() -> None:
    with pytest.raises(CoverLetter):
        imported(COMPLETE | {"type": "cover letter"})


def test_the_size_limit_is_of_the_json_resume() -> None:
    body = json.dumps(COMPLETE).encode()
    parse_imported(body, Format(max_bytes=len(body)))
    with pytest.raises(TooLarge):
        parse_imported(body, Format(max_bytes=len(body) - 1))


LONG = "x" * 20_001


@pytest.mark.parametrize(
    ("resume", "path", "expectation"),
    [
        ({"basics": {"label": LONG}}, "basics.label", "at most 20,000 characters"),
        ({"basics": {"summary": LONG}}, "basics.summary", "at most 20,000 characters"),
        (
            with_list("work", {}, {"name": "E", "description": LONG}),
            "work[1].description",
            "at most 20,000 characters",
        ),
        (with_list("work", {"highlights": ["x"] * 201}), "work[0].highlights", "at most 200"),
        (with_list("skills", *["x"] * 1_001), "skills", "at most 500 items"),
        (with_list("languages", *["x"] * 501), "languages", "at most 500 items"),
        (
            {"education": [{"score": f"{LONG}/4"}]},
            "education[0].score",
            "at most 20,000 characters",
        ),
        (
            with_list("awards", {"awarder": LONG[:15_000], "summary": LONG[:15_000]}),
            "awards[0].awarder",
            "at most 20,000 characters",
        ),
    ],
)
def test_a_limit_is_told_where_its_owner_finds_it(resume: Any, path: str, expectation: str) -> None:
    with pytest.raises(InvalidResume) as refusal:
        imported(resume)
    [issue] = refusal.value.issues
    assert issue.path == path
    assert issue.message.startswith(f"{path}: Invalid ")
    assert expectation in issue.message


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["2020-13", "2020-02", "Present", "a, b", " ", "x" * 20_001]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=4) | st.sampled_from(["name", "title", "city", "url"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)


def objects_with(names: Any) -> st.SearchStrategy[Any]:
    return ANYTHING | st.fixed_dictionaries({}, optional=dict.fromkeys(names, ANYTHING))


def lists_of(key: str) -> st.SearchStrategy[Any]:
    return ANYTHING | st.lists(objects_with(ENTRIES[key]), max_size=3)


JSON_RESUMES = st.fixed_dictionaries(
    {
        "basics": st.fixed_dictionaries(
            {},
            optional={
                **dict.fromkeys(BASICS, ANYTHING),
                "location": objects_with(LOCATION),
                "profiles": lists_of("profiles"),
            },
        )
    },
    optional={
        "$schema": ANYTHING,
        "meta": ANYTHING,
        "unknown": ANYTHING,
        **{key: lists_of(key) for key in KEYS if key in ENTRIES},
    },
)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(document=JSON_RESUMES)
def test_whatever_the_fields_hold_it_is_a_resume_or_refused(document: Any) -> None:
    try:
        resume = parse_imported(json.dumps(document).encode())
    except (InvalidJson, InvalidResume):
        return
    view = public_view(resume.document)
    assert parse(json.dumps(view).encode()).warnings == ()
    assert list(iter_faults(to_jsonresume(view))) == []
    assert len(resume.warnings) <= 51
