"""What is a JSON Resume, and above all what is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from resumes.analyzer.jsonresume import is_json_resume
from resumes.analyzer.jsonresume.mapping import KEYS
from resumes.analyzer.sections import SECTION_TYPES
from tests.resumes.analyzer.documents import a_document
from tests.resumes.analyzer.jsonresume.samples import COMPLETE

SCHEMA = "https://raw.example/jsonresume/resume-schema/v1.0.0/schema.json"


@pytest.mark.parametrize(
    "document",
    [
        COMPLETE,
        {"basics": {}},
        {"basics": {"name": "Ada"}, "unknown": 1},
        {"$schema": SCHEMA, "skills": []},
        {"$schema": "https://jsonresume.example/v1.json", "skills": []},
        {"$schema": "https://raw.example/resume-schema/v1.json", "skills": []},
        {"$schema": SCHEMA, "basics": None},
        {"work": [{"company": "Engines"}]},
        {"education": [{"institution": "School"}], "skills": [], "meta": {}},
    ],
)
def test_a_json_resume(document: Any) -> None:
    assert is_json_resume(document)


@pytest.mark.parametrize(
    "document",
    [
        a_document(),
        a_document(basics={}, work=[{"company": "Engines"}]),
        {"header": {}, "basics": {}},
        {"header": None, "basics": {}},
        {"sections": {}, "basics": {}},
        {"sections": [], "$schema": SCHEMA, "work": [{"name": "Engines"}]},
        {"header": {}},
        {"title": "Analyst"},
        {},
        {"$schema": SCHEMA},
        {"$schema": SCHEMA, "meta": {}},
        {"$schema": SCHEMA.replace("schema.json", "job-schema.json"), "skills": []},
        {"$schema": "https://example.org/analyzer.json", "skills": []},
        {"$schema": 5, "skills": []},
        {"basics": []},
        {"basics": "Ada"},
        {"work": []},
        {"work": ["Engines"]},
        {"work": [{"x": 1}]},
        {"work": {"name": "Engines"}},
        {"work": [{"name": "Engines"}, 1]},
        {"work": [{"name": "Engines"}], "employees": 5},
        {"skills": [{"name": "Analysis"}]},
        [],
        [COMPLETE],
        "basics",
        None,
        5,
    ],
)
def test_no_json_resume(document: Any) -> None:
    assert not is_json_resume(document)


@pytest.mark.parametrize("name", SECTION_TYPES)
def test_a_section_that_slipped_to_the_top_is_none(name: str) -> None:
    assert not is_json_resume({name: {"column": 0, "items": [{"name": "x"}]}})
    assert not is_json_resume({name: [{"name": "x", "title": "x"}]})


def test_no_sample_of_the_analyzer_format_is_taken_for_one(repository: Path) -> None:
    for path in (repository / "sample_data").rglob("*.json"):
        try:
            document = json.loads(path.read_bytes())
        except ValueError:
            continue
        assert not is_json_resume(document), path.name


def test_a_document_with_every_key_is_one() -> None:
    document: dict[str, Any] = {key: [] for key in KEYS} | {
        "$schema": None,
        "basics": {"name": "Ada"},
    }
    assert is_json_resume(document)
