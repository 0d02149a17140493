"""Documents that are nearly resumes, for comparing what the schema and the service say of them."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from resumes.analyzer import Format
from resumes.analyzer.kinds import (
    MAX_LIST_ENTRIES,
    MAX_TEXT_CHARS,
    Choice,
    Colour,
    ColumnNumber,
    Flag,
    Group,
    Kind,
    KnownText,
    Listing,
    Number,
    Text,
)
from resumes.analyzer.schema import HEADER, MAX_ITEMS, SECTION_FIELDS, SECTION_TYPES, STYLE

EXTRA = "hobbies"
FORMAT = Format(extra_section_types=frozenset({EXTRA}))

Values = st.SearchStrategy[Any]

# Only JSON that can be kept: U+0000 and whole numbers beyond 64 bits are not for a schema to see.
TEXTS: Values = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12
)
NUMBERS: Values = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
SCALARS: Values = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
ANYTHING: Values = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)
AT_LIMITS: Values = st.sampled_from(
    [
        "x" * MAX_TEXT_CHARS,
        "\N{GRINNING FACE}" * MAX_TEXT_CHARS,
        "\N{GRINNING FACE}" * (MAX_TEXT_CHARS + 1),
        ["x"] * MAX_LIST_ENTRIES,
        ["x"] * (MAX_LIST_ENTRIES + 1),
        [None] * (MAX_LIST_ENTRIES + 1),
        [{}] * MAX_ITEMS,
        [{}] * (MAX_ITEMS + 1),
    ]
)
COLOURS: Values = st.sampled_from(["#123", "#1234", "#abcdef", "#ABCDEF99"])
NO_COLOURS: Values = st.sampled_from(["#12", "#12345", "#abcdef\n", "", "#12\u0663", "123456"])
COLUMNS: Values = st.sampled_from([0, 1, 2, 0.0, 1.0, 2.0])
NO_COLUMNS: Values = st.sampled_from([3, -1, 0.5, True, False, None, "0", []])
COVER_LETTERS: Values = st.sampled_from(
    ["coverLetter", "cover_letters", " COVER LETTER\n", "cover-letter 2", "1c.o.v.e.r.letter"]
)
NO_COVER_LETTERS: Values = st.sampled_from(
    ["coverxletter", "coverlettersx", "coverletterss", "coverlette", "resume", ""]
)
LETTER_NAMES: Values = st.one_of(COVER_LETTERS, NO_COVER_LETTERS)


def mostly(usual: Values, odd: Values) -> Values:
    """The usual, and one time in sixteen the odd."""
    return st.integers(0, 15).flatmap(lambda each: odd if each == 15 else usual)


def of_kind(kind: Kind) -> Values:
    """Values for a field of this kind: nearly always right ones, else wrong or at a limit."""
    wrong = st.one_of(ANYTHING, NO_COLOURS, NO_COLUMNS, AT_LIMITS)
    return mostly(st.one_of(st.none(), _right(kind)), wrong)


def _right(kind: Kind) -> Values:
    match kind:
        case ColumnNumber():
            return COLUMNS
        case Number():
            return NUMBERS
        case KnownText():
            return st.one_of(TEXTS, st.sampled_from(sorted(kind.known)))
        case Text():
            return TEXTS
        case Choice():
            return st.sampled_from([*kind.choices])
        case Colour():
            return COLOURS
        case Flag():
            return st.booleans()
        case Listing():
            return st.lists(of_kind(kind.entry), max_size=3)
        case Group():
            return of_fields(kind.fields)
        case _:
            return ANYTHING


def of_fields(fields: Mapping[str, Kind]) -> Values:
    """Objects with some of the fields, and perhaps with one that is not known."""
    known: dict[Any, Values] = {name: of_kind(kind) for name, kind in fields.items()}
    unknown = st.dictionaries(TEXTS, ANYTHING, max_size=1)
    return st.builds(
        lambda some, other: other | some, st.fixed_dictionaries({}, optional=known), unknown
    )


def _section(fields: Mapping[str, Kind], item: Values) -> Values:
    own: dict[Any, Values] = {name: of_kind(fields[name]) for name in fields if name != "column"}
    own["items"] = mostly(st.lists(item, max_size=3), st.one_of(ANYTHING, AT_LIMITS))
    column = st.integers(0, 15).flatmap(
        lambda each: NO_COLUMNS if each == 15 else COLUMNS if each > 12 else st.integers(0, 1)
    )
    return mostly(st.fixed_dictionaries({"column": column}, optional=own), ANYTHING)


_OF_EVERY_TYPE: dict[Any, Values] = {
    EXTRA: _section(SECTION_FIELDS, ANYTHING),
    **{
        name: _section(each.own_fields, mostly(of_fields(each.fields), ANYTHING))
        for name, each in SECTION_TYPES.items()
    },
}

SECTIONS: Values = mostly(
    st.lists(st.sampled_from(list(_OF_EVERY_TYPE)), max_size=4, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: _OF_EVERY_TYPE[name] for name in names})
    ),
    st.one_of(
        st.dictionaries(st.one_of(TEXTS, LETTER_NAMES), st.just({"column": 0}), max_size=2),
        ANYTHING,
    ),
)

_MARKS: Values = mostly(
    st.just({}),
    st.one_of(
        st.dictionaries(st.sampled_from(["type", "kind", "documentType"]), LETTER_NAMES),
        st.dictionaries(st.just("isCoverLetter"), SCALARS),
        st.dictionaries(st.one_of(TEXTS, LETTER_NAMES), ANYTHING, max_size=2),
    ),
)


def _resume(header: Any, sections: Any, rest: Any, marks: Any) -> Any:
    return {"header": header, "sections": sections, **rest, **marks}


DOCUMENTS: Values = mostly(
    st.builds(
        _resume,
        mostly(of_fields(HEADER.fields), ANYTHING),
        SECTIONS,
        st.fixed_dictionaries(
            {},
            optional={
                "title": of_kind(Text()),
                "style": mostly(
                    st.one_of(st.just({"layout": "multicolumn"}), of_fields(STYLE.fields)),
                    ANYTHING,
                ),
            },
        ),
        _MARKS,
    ),
    st.one_of(ANYTHING, st.dictionaries(st.sampled_from(["header", "sections"]), ANYTHING)),
)
"""Mostly resumes that are accepted, with here and there a fault."""
