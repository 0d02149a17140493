import copy
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings

from resumes import analyzer
from resumes.analyzer import DEFAULT_FORMAT, Format
from resumes.analyzer.sections import SECTION_TYPES
from resumes.errors import ResumesError
from server.openapi.kinds import reference
from server.openapi.resume import EXAMPLE, component_name, resume_components
from tests.server.openapi.documents import DOCUMENTS, EXTRA, FORMAT

SAMPLES = Path(__file__).parents[3] / "sample_data"


def schema_of(accepted: Format, name: str = "Resume") -> jsonschema_rs.Draft202012Validator:
    """A validator of one of the components."""
    components = {"schemas": resume_components(accepted)}
    return jsonschema_rs.Draft202012Validator({**reference(name), "components": components})


SCHEMA = schema_of(FORMAT)


def is_accepted(document: Any, accepted: Format = FORMAT) -> bool:
    """Whether create accepts the document."""
    try:
        analyzer.parse(json.dumps(document).encode(), accepted)
    except ResumesError:
        return False
    return True


def check_property(document: Any) -> None:
    assert SCHEMA.is_valid(document) == is_accepted(document)


@given(DOCUMENTS)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_schema_accepts_what_the_service_accepts_and_nothing_else(document: Any) -> None:
    check_property(document)


@pytest.mark.campaign
@given(DOCUMENTS)
@settings(max_examples=50_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_schema_and_the_service_agree_on_very_many_documents(document: Any) -> None:
    check_property(document)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.json")), ids=lambda path: path.name)
def test_the_schema_accepts_every_good_sample(path: Path) -> None:
    assert SCHEMA.is_valid(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "change",
    [
        {"header": None},
        {"sections": []},
        {"title": 5},
        {"style": {"layout": ""}},
        {"style": {"colors": ["#12345"]}},
        {"sections": {"education": {"column": 0}}},
        {"sections": {"skills": {}}},
        {"sections": {"skills": {"column": 0, "name": None}}},
        {"sections": {"skills": {"column": 2}}},
        {"sections": {"skills": {"column": 2}}, "style": {"layout": "double"}},
        {"sections": {"skills": {"column": True}}},
        {"sections": {"skills": {"column": 0, "items": [None]}}},
        {"sections": {"skills": {"column": 0, "items": [{"tags": ["x"] * 201}]}}},
        {"type": "Cover Letter"},
        {"isCoverLetter": True},
        {"cover_letters": {}},
    ],
    ids=str,
)
def test_the_schema_refuses_what_the_service_refuses(change: dict[str, Any]) -> None:
    document = copy.deepcopy(EXAMPLE) | change
    assert not is_accepted(document)
    assert not SCHEMA.is_valid(document)


def test_a_third_column_needs_the_layout_that_has_it() -> None:
    document = {"header": {}, "sections": {"skills": {"column": 2}}}
    assert SCHEMA.is_valid(document | {"style": {"layout": "multicolumn"}})
    assert not SCHEMA.is_valid(document)


def test_an_extra_section_type_is_in_the_schema_of_who_admits_it() -> None:
    document = {"header": {}, "sections": {EXTRA: {"column": 0, "items": ["chess", None]}}}
    assert SCHEMA.is_valid(document)
    assert not schema_of(DEFAULT_FORMAT).is_valid(document)


def test_letters_of_other_alphabets_are_where_the_schema_is_stricter() -> None:
    document = {"header": {}, "sections": {}, "kind": "cover\u00e9letter"}
    assert is_accepted(document)
    assert not SCHEMA.is_valid(document)


@pytest.mark.parametrize(
    "body",
    [
        b'{"header": {}, "header": {}, "sections": {}}',
        b'{"header": {}, "sections": {}, "x": %s}' % (b"[" * 40 + b"]" * 40),
        b'{"header": {}, "sections": {}, "x": 9223372036854775808}',
        b'{"header": {"name": "\\u0000"}, "sections": {}}',
    ],
)
def test_how_json_is_written_is_not_for_the_schema_to_see(body: bytes) -> None:
    assert SCHEMA.is_valid(json.loads(body))
    with pytest.raises(ResumesError):
        analyzer.parse(body)


def test_every_section_type_has_its_schema() -> None:
    components = resume_components(DEFAULT_FORMAT)
    assert {component_name(name) for name in SECTION_TYPES} <= components.keys()


def test_what_is_shown_has_only_the_four_fields_of_create() -> None:
    shown = schema_of(DEFAULT_FORMAT, "ShownResume")
    assert shown.is_valid(EXAMPLE)
    assert not shown.is_valid(EXAMPLE | {"isImported": True})
