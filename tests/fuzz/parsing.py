"""Any bytes, read as a resume, and as a file that may be a JSON Resume."""

import json
import re
from typing import Any, Final

import orjson

from resumes.analyzer import (
    Format,
    Resume,
    iter_sections,
    list_title,
    parse,
    parse_imported,
    sections_left_out,
    shown_view,
    stored_warnings,
    to_jsonresume,
)
from resumes.analyzer.jsonresume.conversion import find_foreign_format, is_json_resume
from resumes.analyzer.kinds import IS_SET_BY_SERVICE, MAX_TEXT_CHARS
from resumes.analyzer.plain import parse_plain
from resumes.analyzer.resume import validate
from resumes.analyzer.schema import SECTION_TYPES
from resumes.analyzer.strict_json import read_json
from resumes.analyzer.view import date_range
from resumes.errors import CoverLetter, InvalidResume
from resumes.text import is_harmless
from tests.fuzz import oracle
from tests.fuzz.declared import FORMAT, MOST_ISSUES, check_issues, read
from tests.support.documents import public_view, whole_view
from tests.support.json_resumes import characters, characters_to_write

LARGE: Final = Format(max_bytes=2**21)
"""For exports, which may be longer than what they are of."""

MAX_FILENAME_BYTES: Final = 120
MOST_FLAGS: Final = 5_000
"""Of a document with more fields that the service sets, the warnings about sending them back may
be too many."""


def check_parsing(body: bytes) -> None:
    """It is refused with a declared error, or is stored as it was sent, and can be sent again."""
    resume = read(parse, body)
    _check_imported(body, resume)
    if isinstance(resume, Resume):
        value = oracle.find_value(body)
        assert value is not None, "accepted, and no JSON that can be kept"
        check_issues(resume.warnings, value[0])
        assert len(resume.warnings) <= MOST_ISSUES + 1
        assert _dumped(orjson.loads(resume.document)) == _dumped(value[0])
        _check_plain(body, resume)
        _check_spelling(resume, value[0])
        check_stored(resume)
        _check_warnings(resume)


def check_stored(resume: Resume) -> None:
    """What was accepted is accepted again, in both its forms, and comes out the same."""
    view = public_view(resume.document, FORMAT)
    again = parse(orjson.dumps(view), FORMAT)
    assert _dumped(public_view(again.document, FORMAT)) == _dumped(view)
    _check_sent_back(resume)
    _check_names(resume)
    _check_reading(resume, shown_view(resume.document, FORMAT))


def _check_imported(body: bytes, outcome: object) -> None:
    """A file of the same bytes comes to the same, unless it is in another format."""
    value = oracle.find_value(body)
    if value is not None and (is_json_resume(value[0]) or find_foreign_format(value[0])):
        return
    imported = read(parse_imported, body)
    if isinstance(outcome, Resume):
        assert imported == outcome
    else:
        assert (type(imported), str(imported)) == (type(outcome), str(outcome))


def _check_plain(body: bytes, resume: Resume) -> None:
    """What the quick way takes, the precise one has nothing to say about."""
    if parse_plain(body) is not None:
        findings = validate(read_json(body), FORMAT)
        assert not findings.issues
        assert not findings.warnings
        assert not findings.is_doubtful
        assert resume.warnings == ()


_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


def _escaped(found: re.Match[str]) -> str:
    """The JSON string with every character escaped."""
    units = json.loads(found[0]).encode("utf-16-be", "surrogatepass").hex()
    return '"' + "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)) + '"'


def _check_spelling(resume: Resume, value: Any) -> None:
    """The same value spelled otherwise is the same resume."""
    for spelled in (json.dumps(value, indent=1), _STRING.sub(_escaped, json.dumps(value))):
        if len(spelled) <= FORMAT.max_bytes:
            again = parse(spelled.encode(), FORMAT)
            assert again == resume._replace(document=again.document)
            assert _dumped(orjson.loads(again.document)) == _dumped(value)


def _check_sent_back(resume: Resume) -> None:
    # With all that the service sets in it, as earlier versions have it.
    whole = whole_view(resume.document)
    body = orjson.dumps(whole)
    if len(body) > FORMAT.max_bytes or _count_flags(whole) > MOST_FLAGS:
        return
    again = parse(body, FORMAT)
    assert _dumped(whole_view(again.document)) == _dumped(whole)
    assert (again.title, again.name, again.filename) == resume[:3]


def _count_flags(document: dict[str, Any]) -> int:
    return sum(
        len(item)
        for name, section in document["sections"].items()
        if name in SECTION_TYPES
        for item in section.get("items") or ()
    )


def _check_names(resume: Resume) -> None:
    assert resume.title is None or resume.title.strip()
    assert resume.name is None or resume.name.strip()
    assert list_title(resume.title, resume.name).strip()
    assert len(resume.filename.encode()) <= MAX_FILENAME_BYTES
    assert resume.filename.endswith(".pdf")
    assert not resume.filename.startswith(".")
    assert not set(resume.filename) & set('/\\:<>"|?*\0\n')


def _check_warnings(resume: Resume) -> None:
    """They can be told of the stored document later, as if it came in now."""
    if len(resume.warnings) > MOST_ISSUES:
        return
    kept = [one for one in resume.warnings if not one.message.endswith(IS_SET_BY_SERVICE)]
    assert list(stored_warnings(resume.document, resume.first_month)) == kept


def _check_reading(resume: Resume, view: dict[str, Any]) -> None:
    """Whatever is shown of it can be drawn and exported."""
    for document in (orjson.loads(resume.document), view):
        for section in iter_sections(document, FORMAT):
            assert section.heading.strip()
            assert section.column in (0, 1, 2)
            for item in section.items:
                if section.type in SECTION_TYPES and "dateRange" in item:
                    assert is_harmless(date_range(item["dateRange"]))
    exported = to_jsonresume(view)
    assert is_json_resume(exported)
    assert set(sections_left_out(view)) <= view["sections"].keys()
    assert not characters_to_write(view) - characters(exported)
    again = parse_imported(orjson.dumps(exported), LARGE)
    assert characters(to_jsonresume(shown_view(again.document))) == characters(exported)


def _dumped(value: Any) -> str:
    return json.dumps(value)


MOST_WARNINGS = 102
"""Those of the conversion and those of the document, and a count of the rest for each."""


def check_converting(body: bytes) -> None:
    """It is refused with a declared error, or makes a resume that can be stored and given back.

    What is no JSON Resume is given back as one all the same, which can be imported.
    """
    resume = read(parse_imported, body)
    value = oracle.find_value(body)
    if value is None or not is_json_resume(value[0]):
        if isinstance(resume, Resume):
            check_stored(resume)
        return
    if not isinstance(resume, Resume):
        assert isinstance(resume, InvalidResume | CoverLetter)
        return
    assert len(resume.warnings) <= MOST_WARNINGS
    check_issues(resume.warnings, value[0])
    check_stored(resume)
    _check_given_back(resume)


def _check_given_back(resume: Resume) -> None:
    """Exported, imported and exported once more, it is as the first export was."""
    first = to_jsonresume(shown_view(resume.document, FORMAT))
    again = parse_imported(orjson.dumps(first), LARGE)
    second = to_jsonresume(shown_view(again.document, FORMAT))
    for exported in (first, second):
        if len(summary := exported["basics"].get("summary", "")) > MAX_TEXT_CHARS:
            exported["basics"]["summary"] = summary.split()  # blanks between long ones may go
    assert second == first
