"""Define the kinds of field values: how they are checked, and which values are plain or shown.

Types are strict: neither `true` nor `"0"` is a number (docs/format.md, What is rejected).
"""

import re
from collections.abc import Callable, Container, Mapping
from types import GenericAlias
from typing import Annotated, Any, ClassVar, Literal

import orjson
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, defstruct, field
from msgspec.json import Decoder

from resumes.analyzer.findings import Findings, printable
from resumes.analyzer.strict_json import MAX_INTEGER, MIN_INTEGER, is_faithful
from resumes.errors import InvalidResume

MAX_TEXT_CHARS = 20_000
MAX_LIST_ENTRIES = 200

IS_UNKNOWN = "is not a known field: stored, but not displayed"
IS_SET_BY_SERVICE = "is set by the service: the value sent was dropped"

_MEMBERS = Decoder(dict[str, Raw])
_ENTRIES = Decoder(list[Raw])
_HEX_COLOUR = re.compile(r"#(?:[0-9A-Fa-f]{3,4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})", re.ASCII)


class Kind(Struct):
    """The kind of a field's value: by default, any JSON value, which is shown unless it is null."""

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        """Report problems and warnings about a value that is not null."""
        # The value is one level below the object or array in `scope`, whose depth is one more than
        # the number of steps.
        if not is_faithful(value, depth=len(findings.scope) + 2):
            findings.is_doubtful = True

    def plain_type(self) -> Any:
        """Return the type of the values that cause no problem and no warning (`plain.py`)."""
        return bool | str

    def public(self, value: Any, unknown: list[str] | None = None, /) -> Any:
        """Return the shown part of a valid value that is not null, or None if nothing is shown.

        With `unknown`, also return the unknown fields inside the value, and append their names.
        """
        return value

    def exact(self, public: Any, text: Raw, /) -> Any:
        """Return the result of `public`, but with its unknown fields as orjson fragments of `text`,
        the JSON text of the value."""
        return public

    def without_unknown(self, value: Any, /) -> Any:
        """Return a valid value or null without its unknown fields."""
        return value


class Text(Kind):
    """A string of at most 20,000 characters, shown unless empty."""

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is not str:
            findings.problem(where, "must be a string")
            return
        if value.isspace():
            findings.warn(where, "is only white space")
        if len(value) > MAX_TEXT_CHARS:
            findings.problem(where, f"must be a string of at most {MAX_TEXT_CHARS:,} characters")

    def plain_type(self) -> Any:
        return Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]

    def public(self, value: Any, unknown: list[str] | None = None, /) -> Any:
        return value or None


class KnownText(Text):
    """A string with some known values. Other values are kept, but cause a warning."""

    known: frozenset[str]
    known_as: str

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        super().check(value, where, findings)
        if value and type(value) is str and value not in self.known:
            findings.warn(where, f'"{printable(value)}" is not a known {self.known_as}')

    def plain_type(self) -> Any:
        return Literal["", *sorted(self.known)]


class Choice(Kind):
    """A string from a closed set. Any other value, even the empty string, is a problem."""

    choices: Mapping[str, str]

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is not str or value not in self.choices:
            findings.problem(where, f"must be one of {', '.join(self.choices)}")

    def plain_type(self) -> Any:
        return Literal[*self.choices]


class Colour(Kind):
    """A hex color of 3 or 6 digits after `#`. Colors of 4 or 8 digits cause a warning."""

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is not str or not _HEX_COLOUR.fullmatch(value):
            findings.problem(where, "must be a hex color such as #1A2B3C")
        elif len(value) in (5, 9):
            findings.warn(where, f'"{value}" has transparency, which might not be supported')

    def plain_type(self) -> Any:
        return Annotated[str, Meta(pattern=r"^#(?:[0-9A-Fa-f]{3}){1,2}\Z")]


class Number(Kind):
    """A finite number, which may have a fraction. It is always shown.

    A number outside the range from `lowest` to `highest` (inclusive) is kept, but causes a warning
    that ends with `hint`.
    """

    lowest: float = MIN_INTEGER
    highest: float = MAX_INTEGER
    hint: str = ""

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) not in (int, float):
            findings.problem(where, "must be a number")
        elif self.lowest <= value <= self.highest:
            pass
        elif not is_faithful(value):
            findings.is_doubtful = True
        elif self.lowest != MIN_INTEGER:
            hint = f": {self.hint}" if self.hint else ""
            findings.warn(
                where, f"{value} is outside the range {self.lowest} to {self.highest}{hint}"
            )

    def plain_type(self) -> Any:
        limits = Meta(ge=self.lowest, le=self.highest)
        if self.lowest == MIN_INTEGER:
            # The exclusive limits keep integers that are out of range from being read as floats.
            return Annotated[int, limits] | Annotated[float, Meta(gt=MIN_INTEGER, lt=MAX_INTEGER)]
        return Annotated[int, limits] | Annotated[float, limits]


MONTHS_IN_YEAR = 12


class Month(Number):
    """The number of a month. `find_first` returns the number of January in a document.

    If the number of January is not set, months count from 1 in a document that contains a month 12
    but no month 0, and otherwise from 0. The first 12 causes a warning about this. A number that is
    not a month is kept, but causes a warning.
    """

    find_first: Callable[[Any], int] = int

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is int and 1 <= value < MONTHS_IN_YEAR:
            return
        if type(value) not in (int, float):
            findings.problem(where, "must be a number")
            return
        if value in range(1, MONTHS_IN_YEAR) or (value == 0 and not findings.first_month):
            return
        if not is_faithful(value):
            findings.is_doubtful = True
            return
        if findings.first_month is None:
            findings.first_month = self.find_first(findings.document)
        first = findings.first_month
        if first and value == MONTHS_IN_YEAR:
            if not (findings.is_first_month_set or findings.is_first_month_reported):
                findings.is_first_month_reported = True
                findings.warn(where, "is 12, so all months of this resume count from 1 (January)")
        else:
            hint = self.hint
            if findings.is_first_month_set:
                hint = f"months of this resume count from {first} (January)"
            elif first:
                hint = "months of this resume count from 1, as one of them is 12"
            elif value == MONTHS_IN_YEAR:
                hint = "months of this resume count from 0, as one of them is 0"
            last = first + MONTHS_IN_YEAR - 1
            findings.warn(where, f"{value} is outside the range {first} to {last}: {hint}")

    def plain_type(self) -> Any:
        return Annotated[int, Meta(ge=0, lt=MONTHS_IN_YEAR)]


class ColumnNumber(Number):
    """The number of a column: 0 or 1, or 2 if the layout has a third column. 1.0 means column 1."""

    EXPECTED: ClassVar = "must be a number: 0, 1 or 2"

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) not in (int, float) or value not in (0, 1, 2):
            findings.problem(where, self.EXPECTED)
        elif value == 2 and not findings.has_third_column:
            findings.problem(where, "must be 0 or 1 (2 needs style.layout multicolumn)")

    def plain_type(self) -> Any:
        return Literal[0, 1]


class Flag(Kind):
    """A boolean. Both values are shown."""

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is not bool:
            findings.problem(where, "must be a boolean")

    def plain_type(self) -> Any:
        return bool


class Opaque(Kind):
    """Any JSON value, for example of an unknown field."""

    def exact(self, public: Any, text: Raw, /) -> Any:
        return orjson.Fragment(bytes(text))


OPAQUE = Opaque()


class Added(Kind):
    """A field that earlier releases did not know, so that they may have stored any value.

    A field with a stored value that `kind` does not allow is treated as unknown.
    """

    kind: Kind

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if findings.is_stored and not self._allows(value):
            findings.warn(where, IS_UNKNOWN)
            OPAQUE.check(value, where, findings)
        else:
            self.kind.check(value, where, findings)

    def plain_type(self) -> Any:
        return self.kind.plain_type()

    def public(self, value: Any, unknown: list[str] | None = None, /) -> Any:
        if self._allows(value):
            return self.kind.public(value, unknown)
        if unknown is None:
            return None
        unknown.append("")
        return value

    def exact(self, public: Any, text: Raw, /) -> Any:
        return (self.kind if self._allows(public) else OPAQUE).exact(public, text)

    def _allows(self, value: Any) -> bool:
        findings = Findings()
        try:
            self.kind.check(value, "", findings)
        except InvalidResume:
            return False
        return not (findings.issues or findings.is_doubtful)


class Listing(Kind):
    """An array of at most `max_entries` entries of one kind. It is shown if one of its entries is.

    Unless `not_null` is set, null entries are accepted and hidden. The public form keeps hidden
    entries, so that positions do not change. An array of more than `usual_entries` causes a
    warning.
    """

    entry: Kind
    of_what: str
    usual_entries: int = MAX_LIST_ENTRIES
    max_entries: int = MAX_LIST_ENTRIES
    counted_as: str = "entries"
    not_null: bool = False

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is not list:
            findings.problem(where, f"must be an array of {self.of_what}")
            return
        if len(value) > self.max_entries:
            most = f"{self.max_entries} {self.counted_as}"
            findings.problem(where, f"must be an array of at most {most}")
            return
        if len(value) > self.usual_entries:
            findings.warn(where, f"has more than {self.usual_entries} entries")
        findings.scope.append(where)
        for position, entry in enumerate(value):
            if entry is not None or self.not_null:
                self.entry.check(entry, position, findings)
        findings.scope.pop()

    def plain_type(self) -> Any:
        entry = self.entry.plain_type()
        entries = GenericAlias(list, entry if self.not_null else entry | None)
        return Annotated[entries, Meta(max_length=min(self.usual_entries, self.max_entries))]

    def public(self, value: Any, unknown: list[str] | None = None, /) -> Any:
        shown = [
            each is not None and self.entry.public(each, unknown) is not None for each in value
        ]
        if not any(shown):
            return None
        return value if unknown else list(map(self.entry.without_unknown, value))

    def exact(self, public: Any, text: Raw, /) -> Any:
        if not public or type(public) is not list:  # the document is damaged
            return public
        return [
            None if each is None else self.entry.exact(each, entry)
            for each, entry in zip(public, _ENTRIES.decode(text), strict=True)
        ]


class Group(Kind):
    """An object with known fields. It is shown if one of its fields is.

    Fields in `not_null` must not be null. Fields in `required` must not be missing; the values of
    `required` describe the expected value. Other fields cause a warning: unknown fields are kept
    but hidden, and fields that the service sets are ignored.
    """

    fields: Mapping[str, Kind]
    set_by_service: frozenset[str] = frozenset()
    not_null: frozenset[str] = frozenset()
    required: Mapping[str, str] = {}
    other: Kind = field(default_factory=Opaque)
    """The kind of a field that is not in `fields`."""

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is not dict:
            findings.problem(where, "must be an object")
            return
        findings.scope.append(where)
        for name in self.required:
            if name not in value:
                findings.problem(name, f"is required and {self.required[name]}")
        for name, member in value.items():
            if (kind := self.fields.get(name)) is not None:
                if member is not None or name in self.not_null:
                    kind.check(member, name, findings)
            else:
                self.check_other(member, name, findings)
        findings.scope.pop()

    def check_other(self, value: Any, name: str, findings: Findings) -> None:
        """Warn about a field that is not in `fields` (docs/format.md, What is a warning)."""
        findings.warn(name, IS_SET_BY_SERVICE if name in self.set_by_service else IS_UNKNOWN)
        OPAQUE.check(value, name, findings)

    def plain_type(self) -> Any:
        fields: list[tuple[Any, ...]] = []
        for name, kind in self.fields.items():
            of = kind.plain_type() if name in self.not_null else kind.plain_type() | None
            fields.append((name, of) if name in self.required else (name, of | UnsetType, UNSET))
        return defstruct("Group", fields, kw_only=True, forbid_unknown_fields=True, gc=False)

    def public(self, value: Any, unknown: list[str] | None = None, /) -> Any:
        return shown_fields(value, self.fields, unknown) or None

    def exact(self, public: Any, text: Raw, /) -> Any:
        if not public or type(public) is not dict:  # the document is damaged
            return public
        members = _MEMBERS.decode(text)
        return {
            name: self.fields.get(name, self.other).exact(value, members[name])
            if name in members
            else value
            for name, value in public.items()
        }

    def without_unknown(self, value: Any, /) -> Any:
        return value and {name: value[name] for name in value if name in self.fields}


def shown_fields(
    values: Mapping[str, Any],
    fields: Mapping[str, Kind],
    unknown: list[str] | None = None,
    left_out: Container[str] = (),
) -> dict[str, Any]:
    """Return the fields of an object that are shown, in the order in which they were sent.

    With `unknown`, also return the fields that are neither in `fields` nor in `left_out`, and
    append their names.
    """
    shown = {}
    for name, value in values.items():
        if (kind := fields.get(name)) is None:
            if unknown is not None and name not in left_out:
                unknown.append(name)
                shown[name] = value
        elif value is not None and (found := kind.public(value, unknown)) is not None:
            shown[name] = found
    return shown
