"""Any bytes, read as a file that may be a JSON Resume."""

import orjson

from resumes.analyzer import Resume, parse_imported, public_view, to_jsonresume
from resumes.analyzer.fields import MAX_TEXT_CHARS
from resumes.analyzer.jsonresume.conversion import is_json_resume
from resumes.errors import CoverLetter, InvalidResume
from tests.fuzz import oracle
from tests.fuzz.declared import FORMAT, check_issues, read
from tests.fuzz.parsing import LARGE, check_stored

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
    first = to_jsonresume(public_view(resume.document, FORMAT))
    again = parse_imported(orjson.dumps(first), LARGE)
    second = to_jsonresume(public_view(again.document, FORMAT))
    for exported in (first, second):
        if len(summary := exported["basics"].get("summary", "")) > MAX_TEXT_CHARS:
            exported["basics"]["summary"] = summary.split()  # blanks between long ones may go
    assert second == first
