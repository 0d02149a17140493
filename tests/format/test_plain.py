"""The quick way accepts only what the precise way has nothing to say about."""

import json
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from resumes.analyzer import DEFAULT_FORMAT, filename, parse
from resumes.analyzer.plain import MAX_BYTES, parse_plain
from resumes.analyzer.resume import is_cover_letter, validate
from resumes.analyzer.strict_json import read_json
from resumes.analyzer.view import Names
from resumes.errors import InvalidInput
from tests.fuzz.changing import changed, changed_bytes
from tests.support.documents import iter_files

ROOT = Path(__file__).parents[2]
CORPUS = ROOT.parent / "shared" / "corpus"

BLANKS = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"
NASTY = (
    *(rb"\u0000", rb"\u003a", rb"\u003A", rb"\ud800", rb"\udc00", rb"\ud83d\ude00", rb"\\u0000"),
    *(b'"', b":", b",", b"\\", b"{}", b"[]", b"null", b"true", b"NaN", b"-Infinity", b"\x00"),
    *(b"1e999", b"-0", b"-0.0", b"1.0", b"9007199254740993", b"9223372036854775808", b"1e-400"),
    *(b"-9223372036854775809", b"9223372036854775807", b"1e18", b"9.3e18", b"01", b"1."),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\x0c"),
    *(f'"{blank}"'.encode() for blank in BLANKS),
    *(json.dumps(blank).encode() for blank in BLANKS),
    b"[" * 40 + b"]" * 40,
)
MEMBER = re.compile(rb'"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[-0-9.eE+]+|true|false|null)')


def precisely(body: bytes) -> Names | None:
    """What the precise way knows of the resume; None when it has anything to say about it."""
    try:
        document = read_json(body)
    except InvalidInput:
        return None
    if type(document) is not dict or is_cover_letter(document):
        return None
    try:
        findings = validate(document, DEFAULT_FORMAT)
    except InvalidInput:
        return None
    if findings.issues or findings.warnings or findings.is_doubtful:
        return None
    return Names(document.get("title") or None, document["header"].get("name") or None)


def check(body: bytes) -> bool:
    """Whether the quick way takes it; what it says is what the precise way says."""
    plain = parse_plain(body)
    if plain is None:
        return False
    assert plain == precisely(body), body
    resume = parse(body)
    assert (resume.title, resume.name, resume.warnings) == (*plain, ())
    assert resume.filename == filename(plain.title, plain.name)
    assert read_json(resume.document) == read_json(body)
    assert b"\n" not in resume.document
    return True


@cache
def documents() -> list[bytes]:
    """The samples, and the corpus where it is there."""
    samples = [path.read_bytes() for path in sorted((ROOT / "sample_data").rglob("*.json"))]
    archives = sorted(CORPUS.glob("*.tar*"))
    return [*samples, *(content for archive in archives for _, content in iter_files(archive))]


def a_change(body: bytes, chosen: random.Random) -> bytes:
    match chosen.randrange(4):
        case 0:
            return changed(body, chosen, lambda data: changed_bytes(data, chosen))
        case 1:  # a key that comes twice, at any depth
            members = list(MEMBER.finditer(body))
            if not members:
                return body
            begin, end = chosen.choice(members).span()
            return body[:end] + b"," + body[begin:end] + body[end:]
        case 2:  # another value
            members = list(re.finditer(rb'"[^"\\]*"(?!\s*:)|[-0-9.]+', body))
            if not members:
                return body
            begin, end = chosen.choice(members).span()
            return body[:begin] + chosen.choice(NASTY) + body[end:]
        case _:
            at = chosen.randint(0, len(body))
            return body[:at] + chosen.choice(NASTY) + body[at:]


@pytest.mark.parametrize(
    "times", [3_000, pytest.param(200_000, marks=[pytest.mark.campaign, pytest.mark.timeout(1200)])]
)
def test_of_changed_documents_none_is_taken_that_the_precise_way_would_not(times: int) -> None:
    chosen = random.Random(times)
    taken = 0
    for number in range(times):
        body = documents()[number % len(documents())]
        for _ in range(chosen.choice((1, 1, 2))):
            body = a_change(body, chosen)
        taken += check(body)
    assert taken > times / 100


def test_most_documents_without_a_warning_are_taken() -> None:
    clean = [body for body in documents() if precisely(body) is not None]
    assert sum(map(check, clean)) > len(clean) * 0.7


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
    assert check(a_body())
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
    assert check(body)
