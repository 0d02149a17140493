from typing import Any

import pytest

from resumes.analyzer.kinds import (
    OPAQUE,
    Choice,
    Colour,
    Column,
    Flag,
    Group,
    Kind,
    KnownText,
    Number,
    Text,
    Texts,
)
from resumes.analyzer.sections import DATE_RANGE, LAYOUTS
from server.openapi.kinds import fields_schema, or_null, value_schema
from tests.server.openapi.conforming import is_valid

NOTHING: dict[str, Any] = {"components": {}}


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (Text(), "x" * 20_000, "x" * 20_001),
        (KnownText(frozenset({"star"}), "icon"), "planet nine", 9),
        (Texts(), ["x", "", None], [5]),
        (Texts(), ["x"] * 200, ["x"] * 201),
        (Number(0, 4), 99.5, "4"),
        (Number(), -1, True),
        (Column(), 1.0, 3),
        (Column(), 2, False),
        (Flag(), False, 0),
        (Choice(LAYOUTS), "double", "Double Column"),
        (Colour(), "#1a2b3c", "1a2b3c"),
        (OPAQUE, {"anything": []}, ...),
        (Group({"value": Number()}), {"value": None, "unknown": []}, {"value": "1"}),
    ],
)
def test_a_schema_accepts_what_its_kind_accepts(kind: Kind, right: Any, wrong: Any) -> None:
    schema = value_schema(kind)
    assert is_valid(NOTHING, schema, right)
    assert wrong is ... or not is_valid(NOTHING, schema, wrong)


@pytest.mark.parametrize("kind", [Text(), Number(), Choice(LAYOUTS), Flag(), OPAQUE, Texts()])
def test_what_may_be_null_may_be_so_beside_its_values(kind: Kind) -> None:
    assert is_valid(NOTHING, or_null(value_schema(kind)), None)
    assert kind is OPAQUE or not is_valid(NOTHING, value_schema(kind), None)


def test_a_date_range_is_described_once_for_all_that_have_one() -> None:
    schema = fields_schema({"dateRange": DATE_RANGE})
    assert schema["properties"]["dateRange"] == {
        "anyOf": [{"$ref": "#/components/schemas/DateRange"}, {"type": "null"}]
    }


def test_usual_values_are_told_in_words() -> None:
    assert "Usually 0 to 4: mind" in value_schema(Number(0, 4, "mind"))["description"]
    assert "Ivy League" in value_schema(Choice(LAYOUTS))["description"]
    assert "Known: a, b." in value_schema(KnownText(frozenset("ba"), "font"))["description"]
