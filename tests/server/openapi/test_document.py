from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import schemathesis

from resumes.analyzer import DEFAULT_FORMAT, Format
from server.openapi import build_document, document_bytes
from tests.server.openapi.conforming import is_valid, resolved

DOCUMENT = build_document()


def parts(value: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object within a value, with its place."""
    if isinstance(value, dict):
        yield path, value
        for name, member in value.items():
            yield from parts(member, f"{path}/{name}")
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            yield from parts(entry, f"{path}/{position}")


def test_the_document_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    assert schemathesis.openapi.from_dict(DOCUMENT).validate() is None


def test_every_reference_leads_somewhere() -> None:
    for _, part in parts(DOCUMENT):
        if isinstance(part.get("$ref"), str):
            assert resolved(DOCUMENT, part)


def test_every_component_is_referred_to() -> None:
    text = orjson.dumps(DOCUMENT).decode()
    for kind, components in DOCUMENT["components"].items():
        if kind != "securitySchemes":
            for name in components:
                assert f'"#/components/{kind}/{name}"' in text, name


def examples() -> list[Any]:
    """Every example that has a schema beside it: its place, the schema, the example."""
    found = []
    for path, part in parts(DOCUMENT):
        if "example" in part and "schema" in part:
            found.append(pytest.param(part["schema"], part["example"], id=path))
        # In a field's schema; a field may have that name itself.
        if isinstance(part.get("examples"), list):
            found += [pytest.param(part, each, id=f"{path}/examples") for each in part["examples"]]
    return found


@pytest.mark.parametrize(("schema", "example"), examples())
def test_every_example_is_valid(schema: dict[str, Any], example: Any) -> None:
    assert is_valid(DOCUMENT, schema, example)


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [part["operationId"] for _, part in parts(DOCUMENT["paths"]) if "responses" in part]
    assert len(set(names)) == len(names) == 9


def test_a_setting_that_changes_the_format_changes_the_document() -> None:
    accepted = Format(extra_section_types=frozenset({"hobbies"}), max_bytes=4096)
    resume = build_document(accepted)["components"]["schemas"]["Resume"]
    assert "hobbies" in resume["properties"]["sections"]["properties"]
    assert "4,096 bytes" in resume["description"]


def test_the_document_is_written_as_json_for_people() -> None:
    written = document_bytes(DEFAULT_FORMAT)
    assert orjson.loads(written) == DOCUMENT
    assert written.startswith(b'{\n  "openapi"')
    assert written.endswith(b"}\n")
