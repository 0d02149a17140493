"""The kinds of value that a field can hold: how each is checked, and when it is shown.

Every kind does two things with a value that is not null. `check` reports what is wrong or odd
about it. `public` gives a valid value without its hidden and unknown parts, None when nothing of
it is shown.

Types are strict: `true` is no number and `"0"` is none either (docs/format.md, What is refused).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from resumes.analyzer.findings import Findings, printable
from resumes.analyzer.json_text import MAX_INTEGER, MIN_INTEGER, is_faithful

MAX_TEXT_CHARS = 20_000
MAX_LIST_ENTRIES = 200

IS_WHITE_SPACE = "is only white space"
IS_UNKNOWN = "is not a known field: kept, not shown"

_HEX_COLOUR = re.compile(r"#(?:[0-9A-Fa-f]{3,4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})", re.ASCII)


class Kind(Protocol):
    """What a field may hold."""

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None: ...

    def public(self, value: Any, /) -> Any: ...


Check = Callable[[Any, str | int, Findings], None]


class Text:
    """A string of at most 20,000 characters, shown unless empty."""

    __slots__ = ()

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is not str:
            findings.problem(where, "must be a string")
            return
        if value.isspace():
            findings.warn(where, IS_WHITE_SPACE)
        if len(value) > MAX_TEXT_CHARS:
            findings.problem(where, f"must be a string of at most {MAX_TEXT_CHARS:,} characters")

    def public(self, value: Any, /) -> Any:
        return value or None


class KnownText(Text):
    """A string of which some values are known; another one is kept, with a warning."""

    __slots__ = ("known", "known_as")

    def __init__(self, known: frozenset[str], known_as: str) -> None:
        self.known = known
        self.known_as = known_as

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        super().check(value, where, findings)
        if value and type(value) is str and value not in self.known:
            findings.warn(where, f'"{printable(value)}" is not a known {self.known_as}')


class Choice:
    """A string out of a closed set; anything else, the empty string too, is a problem."""

    __slots__ = ("choices",)

    def __init__(self, choices: Mapping[str, str]) -> None:
        self.choices = choices

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is not str or value not in self.choices:
            findings.problem(where, f"must be one of {', '.join(self.choices)}")

    def public(self, value: Any, /) -> Any:
        return value


class Colour:
    """A hex colour: `#` and 3 or 6 digits; 4 or 8 are kept, with a warning."""

    __slots__ = ()

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is not str or not _HEX_COLOUR.fullmatch(value):
            findings.problem(where, "must be a hex colour such as #1A2B3C")
        elif len(value) in (5, 9):
            findings.warn(where, f'"{value}" carries transparency, which may not be supported')

    def public(self, value: Any, /) -> Any:
        return value


class Number:
    """A finite number, whole or fractional, always shown.

    Outside `lowest` to `highest`, both possible values, it is kept with a warning that ends in
    `hint`.
    """

    __slots__ = ("highest", "hint", "lowest")

    def __init__(
        self, lowest: float = MIN_INTEGER, highest: float = MAX_INTEGER, hint: str = ""
    ) -> None:
        self.lowest = lowest
        self.highest = highest
        self.hint = hint

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        kind = type(value)
        if kind is not int and kind is not float:
            findings.problem(where, "must be a number")
        elif not self.lowest <= value <= self.highest:
            self._outside(value, where, findings)

    def public(self, value: Any, /) -> Any:
        return value

    def _outside(self, value: float, where: str | int, findings: Findings) -> None:
        if not is_faithful(value):
            findings.is_doubtful = True
        elif self.lowest != MIN_INTEGER:
            hint = f": {self.hint}" if self.hint else ""
            findings.warn(where, f"{value} is outside {self.lowest} to {self.highest}{hint}")


class Column(Number):
    """The number of a column: 0, 1, and 2 where the layout has a third one. 1.0 is column 1."""

    __slots__ = ()

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        kind = type(value)
        if kind is int or kind is float:
            if value == 0 or value == 1 or (value == 2 and findings.has_third_column):
                return
            if value == 2:
                findings.problem(where, "must be 0 or 1 (2 needs style.layout multicolumn)")
                return
        findings.problem(where, "must be a number: 0, 1 or 2")


class Flag:
    """True or false, shown either way."""

    __slots__ = ()

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is not bool:
            findings.problem(where, "must be a boolean")

    def public(self, value: Any, /) -> Any:
        return value


class Opaque:
    """Any JSON value, kept as it is; null is the only one that is not shown."""

    __slots__ = ()

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        # One deeper than the object or array in `scope`, which is one deeper than its steps.
        if not is_faithful(value, depth=len(findings.scope) + 2):
            findings.is_doubtful = True

    def public(self, value: Any, /) -> Any:
        return value


OPAQUE = Opaque()


class Listing:
    """An array of at most 200 entries of one kind, shown when one entry is.

    Null entries are as if absent. The public form keeps hidden entries, so that positions hold.
    Past `usual_entries` the array is kept with a warning.
    """

    __slots__ = ("check_entry", "entry", "of_what", "usual_entries")

    def __init__(self, entry: Kind, of_what: str, usual_entries: int = MAX_LIST_ENTRIES) -> None:
        self.entry = entry
        self.check_entry = entry.check
        self.of_what = of_what
        self.usual_entries = usual_entries

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is not list:
            findings.problem(where, f"must be an array of {self.of_what}")
            return
        if len(value) > MAX_LIST_ENTRIES:
            findings.problem(where, f"must be an array of at most {MAX_LIST_ENTRIES} entries")
            return
        if len(value) > self.usual_entries:
            findings.warn(where, f"has more than {self.usual_entries} entries")
        check = self.check_entry
        findings.scope.append(where)
        for position, entry in enumerate(value):
            if entry is not None:
                check(entry, position, findings)
        findings.scope.pop()

    def public(self, value: Any, /) -> Any:
        is_shown = any(e is not None and self.entry.public(e) is not None for e in value)
        return [self._as_sent(entry) for entry in value] if is_shown else None

    def _as_sent(self, entry: Any) -> Any:
        if isinstance(self.entry, Group) and entry is not None:
            return {name: entry[name] for name in entry if name in self.entry.fields}
        return entry


class Texts(Listing):
    """An array of strings."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(Text(), "strings")

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        # Nearly every list holds ordinary strings only, and this sees it in half the time.
        if type(value) is list and len(value) <= MAX_LIST_ENTRIES:
            for text in value:
                if (
                    type(text) is not str
                    or not text
                    or len(text) > MAX_TEXT_CHARS
                    or text.isspace()
                ):
                    break
            else:
                return
        super().check(value, where, findings)


class Group:
    """An object with known fields, shown when one of them is; unknown ones are kept, hidden."""

    __slots__ = ("checks", "fields")

    def __init__(self, fields: Mapping[str, Kind]) -> None:
        self.fields = fields
        self.checks: dict[str, Check] = {name: kind.check for name, kind in fields.items()}

    def check(self, value: Any, where: str | int, findings: Findings, /) -> None:
        if type(value) is not dict:
            findings.problem(where, "must be an object")
            return
        checks = self.checks
        findings.scope.append(where)
        for name, member in value.items():
            check = checks.get(name)
            if check is None:
                check_unknown(member, name, findings)
            elif member is not None:
                check(member, name, findings)
        findings.scope.pop()

    def public(self, value: Any, /) -> Any:
        return shown_fields(value, self.fields) or None


def check_unknown(value: Any, name: str, findings: Findings) -> None:
    """An unknown field is kept and reported (docs/format.md, What is a warning)."""
    findings.warn(name, IS_UNKNOWN)
    OPAQUE.check(value, name, findings)


def shown_fields(values: Mapping[str, Any], fields: Mapping[str, Kind]) -> dict[str, Any]:
    """The known fields of an object that are shown, in the order in which they were sent."""
    return {
        name: shown
        for name, value in values.items()
        if value is not None
        and (kind := fields.get(name)) is not None
        and (shown := kind.public(value)) is not None
    }
