import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resumes.analyzer import Format, Resume, check_stored, parse
from resumes.analyzer.json_text import MAX_FIELDS
from resumes.analyzer.sections import MAX_ITEMS, SECTION_TYPES
from resumes.errors import CoverLetter, InvalidJson, InvalidResume, Issue, TooLarge
from tests.resumes.analyzer.documents import a_document, parsed, with_section

SHAPES = [
    json.dumps(document).encode()
    for document in (
        a_document(title="Engineer", style={"layout": "multicolumn", "colors": ["#000"]}),
        with_section("experiences", {"dateRange": {"fromYear": 2020}, "bullets": ["a", None]}),
        with_section("mytime", {"pieces": 1, "data": [{"title": "a", "value": 1}]}, column=1),
        with_section("skills", {"tags": ["a"], "unknown": [{"deep": [1.5]}]}, layoutMode="tags"),
    )
]


def test_a_valid_body_gives_all_that_the_store_needs() -> None:
    body = b'{"header": {"name": "Ada Lovelace"}, "sections": {}, "title": "Engineer", "x": 1}'
    assert parse(body) == Resume(
        title="Engineer",
        name="Ada Lovelace",
        filename="AdaLovelaceResume.pdf",
        document=(
            b'{"header":{"name":"Ada Lovelace"},"sections":{},"title":"Engineer","x":1,'
            b'"isImported":true}'
        ),
        warnings=(Issue("x", "x is not a known field: kept, not shown"),),
    )


@pytest.mark.parametrize("blank", [None, "", "  "])
def test_title_and_name_absent_or_blank_are_none(blank: str | None) -> None:
    resume = parsed({"header": {"name": blank}, "sections": {}, "title": blank})
    assert (resume.title, resume.name, resume.filename) == (None, None, "Resume.pdf")


def test_size_over_the_setting_is_too_large() -> None:
    body = json.dumps(a_document()).encode()
    parse(body, Format(max_bytes=len(body)))
    with pytest.raises(TooLarge) as refusal:
        parse(body, Format(max_bytes=len(body) - 1))
    assert refusal.value.limit_bytes == len(body) - 1


@pytest.mark.parametrize(
    ("bad", "offset"),
    [(b"1e999", 0), (b"9223372036854775808", 0), (b"[" * 40 + b"]" * 40, 29)],
    ids=["overflow", "integer", "depth"],
)
@pytest.mark.parametrize(
    "around",
    [
        b'{"header": {"website": %s}, "sections": {}}',
        b'{"header": {}, "sections": {"languages": {"column": 0, "items": [{"level": %s}]}}}',
        b'{"header": {}, "sections": {"languages": {"column": 0, "items": [{"record": %s}]}}}',
        b'{"header": {}, "sections": {"languages": {"column": 0, "order": %s}}}',
        b'{"header": {}, "sections": {"languages": {"column": %s}}}',
        b'{"header": {}, "sections": {"skills": {"column": 0, "layoutMode": %s}}}',
        b'{"header": {}, "sections": {}, "style": {"fontSize": %s}}',
        b'{"header": {}, "sections": {}, "unknown": %s}',
        b'{"header": {}, "sections": {}, "isImported": %s}',
        b'{"type": "coverLetter", "unknown": %s}',
        b'{"sections": [%s]}',
        b"[%s]",
    ],
)
def test_not_json_is_found_wherever_it_stands_and_before_all_else(
    around: bytes, bad: bytes, offset: int
) -> None:
    with pytest.raises(InvalidJson) as refusal:
        parse(around % bad)
    start = around.index(b"%s")
    assert refusal.value.offset is not None
    assert start <= refusal.value.offset <= start + 32


@pytest.mark.parametrize("depth", [31, 32])
def test_a_document_may_nest_32_levels_deep_also_in_unknown_fields(depth: int) -> None:
    def nested(inner: bytes) -> bytes:
        return b'{"header":{},"sections":{"skills":{"column":0,"items":[{"x":%s}]}}}' % inner

    levels_around = 5
    parse(nested(b"[" * (depth - levels_around) + b"]" * (depth - levels_around)))
    over = 33 - levels_around
    with pytest.raises(InvalidJson, match="nested deeper than 32 levels"):
        parse(nested(b"[" * over + b"]" * over))


@st.composite
def _nearly_documents(draw: st.DrawFn) -> bytes:
    """A document with a few bytes replaced, which reaches further than random bytes do."""
    body = bytearray(draw(st.sampled_from(SHAPES)))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(body)))
        piece = draw(
            st.binary(max_size=4)
            | st.sampled_from(
                [b"null", b"1e999", b'"', b"{}", b"[]", b"\\u0000", b"\\ud800", b"9" * 25, b"true"]
            )
        )
        body[start : start + draw(st.integers(0, 6))] = piece
    return bytes(body)


_json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=5)
            | st.sampled_from(
                ["header", "sections", "style", "title", "skills", "items", "column"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(body=st.binary() | _nearly_documents() | _json_values.map(lambda v: json.dumps(v).encode()))
@example(body=b"")
@example(body=b'{"header":{},"sections":{"languages":{"column":0,"items":[{"level":' + b"9" * 4300)
def test_any_bytes_give_a_resume_or_one_of_the_four_errors(body: bytes) -> None:
    try:
        resume = parse(body)
    except (InvalidJson, InvalidResume, CoverLetter, TooLarge):
        return
    assert json.loads(resume.document)["isImported"] is True


def test_what_is_no_object_is_refused_as_a_whole() -> None:
    with pytest.raises(InvalidResume) as refusal:
        parse(b"[]")
    assert refusal.value.issues == (Issue("", "The resume must be a JSON object"),)


def test_what_cannot_be_kept_is_refused_in_extra_section_types_too() -> None:
    body = b'{"header":{},"sections":{"hobbies":{"column":0,"items":[9223372036854775808]}}}'
    with pytest.raises(InvalidJson) as refusal:
        parse(body, Format(extra_section_types=frozenset({"hobbies"})))
    assert refusal.value.offset == body.index(b"922")


def test_that_it_is_imported_stands_at_the_end_wherever_it_was_sent() -> None:
    resume = parse(b'{"isImported":false,"header":{},"sections":{}}')
    assert list(json.loads(resume.document)) == ["header", "sections", "isImported"]


def test_far_too_many_odd_fields_are_refused_as_a_whole() -> None:
    odd = ",".join(f'"x{number}":1' for number in range(10_050))
    with pytest.raises(InvalidResume, match="more than 10,000 unknown") as refusal:
        parse(f'{{"header":{{{odd}}},"sections":{{}}}}'.encode())
    assert [issue.path for issue in refusal.value.issues] == [""]


@pytest.mark.parametrize("body", SHAPES)
def test_what_was_stored_is_known_by_title_and_name(body: bytes) -> None:
    resume = parse(body)
    assert check_stored(resume.document) == (resume.title, resume.name)


def test_a_stored_document_may_be_larger_than_what_can_be_sent() -> None:
    section = {"column": 0, "items": [{}] * MAX_ITEMS}
    accepted = Format(extra_section_types=frozenset({"patents"}))
    sections = dict.fromkeys([*SECTION_TYPES, *accepted.extra_section_types], section)
    document = parsed({"header": {"name": "Ada"}, "sections": sections}, accepted).document
    assert document.count(b":") > MAX_FIELDS
    assert check_stored(document).name == "Ada"


def _with(**members: object) -> bytes:
    return json.dumps(json.loads(parse(SHAPES[1]).document) | members).encode()


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        SHAPES[1],
        _with(isImported="yes"),
        _with(header=[]),
        _with(sections=7),
        _with(title="\ud800"),
        _with(title="\0"),
        _with(type="coverLetter"),
        _with(sections={"awards": 7}),
        _with(sections={"awards": {"column": 0, "items": {}}}),
        _with(sections={"awards": {"column": 0, "items": [5, None]}}),
        parse(SHAPES[1]).document.replace(b'"record":"experiences"', b'"record":"awards"'),
        parse(SHAPES[1]).document.replace(b'"showLink":false', b'"showLink":1e999'),
        parse(SHAPES[1]).document.replace(b"2020", b"1e999"),
        parse(SHAPES[1]).document.replace(b"2020", b"9" * 4_000),
        b'{"a":' * 900 + b"1" + b"}" * 900,
    ],
)
def test_what_the_service_cannot_have_stored_is_refused(document: bytes) -> None:
    with pytest.raises((InvalidJson, InvalidResume, CoverLetter)):
        check_stored(document)
