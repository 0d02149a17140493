from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resumes.analyzer.findings import Findings
from resumes.analyzer.kinds import (
    OPAQUE,
    Choice,
    Colour,
    Column,
    Flag,
    Group,
    Kind,
    KnownText,
    Listing,
    Number,
    Text,
    Texts,
)
from resumes.analyzer.sections import DATE_RANGE, SECTION_TYPES

PAIRS = Listing(Group({"title": Text(), "value": Number()}), "objects")


def findings_about(kind: Kind, value: Any) -> tuple[bool, list[str], list[str]]:
    """Whether it is shown, the problems, the warnings."""
    findings = Findings()
    is_shown = kind.check(value, "field", findings)
    assert findings.scope == []
    return (
        is_shown,
        [issue.message.removeprefix("Invalid field ") for issue in findings.issues],
        [warning.message for warning in findings.warnings],
    )


@pytest.mark.parametrize(
    ("kind", "value", "is_shown"),
    [
        (Text(), "x", True),
        (Text(), "", False),
        (Text(), "x" * 20_000, True),
        (Number(), 0, True),
        (Number(), -1.5, True),
        (Flag(), False, True),
        (Flag(), True, True),
        (Texts(), [], False),
        (Texts(), ["", None], False),
        (Texts(), [None, "x"], True),
        (Texts(), ["x"] * 200, True),
        (PAIRS, [{}], False),
        (PAIRS, [None, {"title": "", "value": None}], False),
        (PAIRS, [{"value": 0}], True),
        (DATE_RANGE, {}, False),
        (DATE_RANGE, {"fromYear": None}, False),
        (DATE_RANGE, {"fromYear": 2020}, True),
        (DATE_RANGE, {"isOngoing": False}, True),
        (Choice({"double": "Double Column"}), "double", True),
        (Colour(), "#fff", True),
        (Colour(), "#008CFF", True),
        (Column(), 1.0, True),
        (OPAQUE, {"any": [1, None]}, True),
    ],
)
def test_a_good_value_is_shown_or_hidden_without_a_word(
    kind: Kind, value: Any, is_shown: bool
) -> None:
    assert findings_about(kind, value) == (is_shown, [], [])
    assert (kind.public(value) is not None) is is_shown


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        (Text(), 5, "field: must be a string"),
        (Text(), True, "field: must be a string"),
        (Text(), ["x"], "field: must be a string"),
        (Text(), "x" * 20_001, "field: must be a string of at most 20,000 characters"),
        (Number(), True, "field: must be a number"),
        (Number(), "0", "field: must be a number"),
        (Flag(), 1, "field: must be a boolean"),
        (Flag(), "true", "field: must be a boolean"),
        (Texts(), "x", "field: must be an array of strings"),
        (Texts(), ["ok", 5], "field[1]: must be a string"),
        (Texts(), ["x" * 20_001], "field[0]: must be a string of at most 20,000 characters"),
        (Texts(), ["x"] * 201, "field: must be an array of at most 200 entries"),
        (PAIRS, [{}, "x"], "field[1]: must be an object"),
        (PAIRS, [{"title": 5}], "field[0].title: must be a string"),
        (DATE_RANGE, [], "field: must be an object"),
        (DATE_RANGE, {"fromYear": "2020"}, "field.fromYear: must be a number"),
        (DATE_RANGE, {"isOngoing": 0}, "field.isOngoing: must be a boolean"),
        (Choice({"a": "A", "b": "B"}), "", "field: must be one of a, b"),
        (Choice({"a": "A"}), ["a"], "field: must be one of a"),
        (Colour(), "red", "field: must be a hex colour such as #1A2B3C"),
        (Colour(), "#12345", "field: must be a hex colour such as #1A2B3C"),
        (Colour(), "#fff\n", "field: must be a hex colour such as #1A2B3C"),
        (Column(), 1.5, "field: must be a number: 0, 1 or 2"),
        (Column(), True, "field: must be a number: 0, 1 or 2"),
        (Column(), 2, "field: must be 0 or 1 (2 needs style.layout multicolumn)"),
    ],
)
def test_a_value_of_a_wrong_type_is_a_problem(kind: Kind, value: Any, problem: str) -> None:
    _, problems, _ = findings_about(kind, value)
    assert problems == [problem]


@pytest.mark.parametrize(
    ("kind", "value", "warning"),
    [
        (Text(), " \n", "field is only white space"),
        (Texts(), ["x", " "], "field[1] is only white space"),
        (KnownText(frozenset({"star"}), "icon"), "moon", 'field "moon" is not a known icon'),
        (Number(0, 5), 6, "field 6 is outside 0 to 5"),
        (Number(0, 5, "five is all"), -0.5, "field -0.5 is outside 0 to 5: five is all"),
        (Colour(), "#1234", 'field "#1234" carries transparency, which may not be supported'),
        (Listing(Text(), "strings", usual_entries=2), list("abc"), "field has more than 2 entries"),
        (DATE_RANGE, {"fromYear": 1, "x": 2}, "x is not a known field: kept, not shown"),
    ],
)
def test_an_odd_value_is_shown_with_a_warning(kind: Kind, value: Any, warning: str) -> None:
    assert findings_about(kind, value) == (True, [], [warning])


def test_a_month_12_is_told_that_months_are_0_based() -> None:
    _, _, warnings = findings_about(DATE_RANGE, {"toMonth": 12})
    assert warnings == [
        "toMonth 12 is outside 0 to 11: months are 0-based, 0 is January and 11 is December"
    ]


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, float("inf"), 10**4000])
def test_a_number_that_cannot_be_kept_raises_doubt(value: float) -> None:
    for kind in (Number(), Number(0, 5), OPAQUE):
        findings = Findings()
        kind.check(value, "field", findings)
        assert findings.is_doubtful
        assert findings.warnings == []


def test_a_large_float_is_kept_without_doubt() -> None:
    findings = Findings()
    assert Number().check(1e300, "field", findings)
    assert not findings.is_doubtful


def test_the_public_list_keeps_entries_as_sent_but_not_their_unknown_fields() -> None:
    assert Texts().public(["a", "", None]) == ["a", "", None]
    assert PAIRS.public([{"title": "a", "x": 1}, None, {"title": ""}]) == [
        {"title": "a"},
        None,
        {"title": ""},
    ]


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 2100)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", " ", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["title", "value", "fromYear", "z"]), inner, max_size=3)
    ),
    max_leaves=6,
)
_kinds = list(
    {id(kind): kind for row in SECTION_TYPES.values() for kind in row.fields.values()}.values()
)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(kind=st.sampled_from(_kinds), value=_values.filter(lambda value: value is not None))
def test_what_check_says_is_shown_is_what_public_shows(kind: Kind, value: Any) -> None:
    findings = Findings()
    is_shown = kind.check(value, "field", findings)
    if not findings.issues:
        assert is_shown is (kind.public(value) is not None)
