"""Parse dates as people write them in a JSON Resume, in many languages.

A date has a year and optionally a month; the analyzer format has no days. If the month is
ambiguous, only the year is read. If the year is ambiguous, nothing is read: a wrong date is worse
than none.
"""

import functools
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from resumes.analyzer.schema import MONTHS
from resumes.text import folded


class WrittenDate(NamedTuple):
    """A parsed date. Months count from 0. `is_whole` is true if at most a day was omitted."""

    year: int
    month: int | None = None
    is_whole: bool = True


def find_date(text: str) -> WrittenDate | None:
    """Return the date if the text is a date and nothing else, otherwise None.

    Only years that the schema of JSON Resume allows are read, so that the date can be written
    again.
    """
    text = _SIGN.sub("-", _LAST_SIGN.sub("", _plain(text)))
    if dated := _YEAR_FIRST.fullmatch(text):
        return _dated(dated[1], dated[2])
    if dated := _MONTH_FIRST.fullmatch(text):
        return _dated(dated[2], dated[1])
    if dated := _DAY_OR_MONTH_FIRST.fullmatch(text):
        return _day_or_month_first(dated[1], dated[2], dated[3], dated[4])
    return _named(text)


def is_ongoing(text: str) -> bool:
    """Return whether the text means "ongoing", such as "Present", "bis heute" or "至今"."""
    return _plain(text).strip(_AROUND) in _words_for_present()


def find_written_date(item: Mapping[str, Any], end: str) -> str | None:
    """Return the beginning ("from") or end ("to") of the item's `dateRange`, such as `2020-01`.

    An invalid month is omitted. Return None without a year that JSON Resume allows."""
    span: Any = item.get("dateRange") or {}
    year, month = span.get(f"{end}Year"), span.get(f"{end}Month")
    if year is None or year != int(year) or not 1000 <= year <= 2999:
        return None
    if month not in range(len(MONTHS)):
        return str(int(year))
    return f"{int(year)}-{int(month) + 1:02}"


WRITTEN_DATE: Final = re.compile(r"[12][0-9]{3}(?:-[01][0-9](?:-[0-3][0-9])?)?", re.ASCII)
"""The pattern of a date in JSON Resume."""

MAX_DATE_CHARS: Final = 60

_AROUND: Final = " .,!*()[]-\N{EN DASH}\N{EM DASH}\N{HORIZONTAL ELLIPSIS}\N{LEFT-TO-RIGHT MARK}"


def _plain(text: str) -> str:
    """Remove case and accents, and convert digits to ASCII. Return no text if it is too long."""
    if len(text) > MAX_DATE_CHARS:
        return ""
    digits = (str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)
    apostrophes = "".join(digits).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    # Compose characters again: otherwise, Korean syllables would consist of several.
    return unicodedata.normalize("NFC", " ".join(folded(apostrophes).split())).rstrip(" .,")


_YEAR: Final = "([12][0-9]{3})"
_TIME: Final = "(?:t[0-9].*| [0-9]{1,2}:[0-9]{2}.*)?"
_YEAR_FIRST: Final = re.compile(
    rf"{_YEAR}(?:\.? ?[-/.] ?([01]?[0-9])(?:\.? ?[-/.] ?[0-3]?[0-9]{_TIME})?)?"
)
_MONTH_FIRST: Final = re.compile(rf"([01]?[0-9])(?: ?[-/.] ?| ){_YEAR}")
_DAY_OR_MONTH_FIRST: Final = re.compile(rf"([0-3]?[0-9])([-/.]) ?([0-3]?[0-9])\2 ?{_YEAR}{_TIME}")
_LAST_SIGN: Final = re.compile("(?<=[0-9]) ?[年년月월日일]$")
_SIGN: Final = re.compile("(?<=[0-9]) ?[年년月월] ?")
"""A character after a number in a Chinese, Japanese or Korean date: `2014年9月1日`."""


def _dated(year: str, month: str | None) -> WrittenDate | None:
    number = int(month or 0)  # databases write a year as 2014-00-00
    if number > len(MONTHS):
        return None
    return WrittenDate(int(year), number - 1 if number else None)


def _day_or_month_first(first: str, separator: str, second: str, year: str) -> WrittenDate | None:
    """Parse dates such as `01.09.2014`, or `09/13/2014`, where only one number can be a month."""
    months = [int(number) for number in (second, first) if 1 <= int(number) <= len(MONTHS)]
    if not months:
        return None
    if separator != "." and len(set(months)) > 1:
        return WrittenDate(int(year), is_whole=False)
    return WrittenDate(int(year), months[0] - 1)


_SEPARATORS: Final = re.compile(
    r"[ .,/-]+|(?<![0-9])(?=[12][0-9]{3}(?![0-9]))|(?<=[0-9]{4})(?=[^0-9])"
)
_DAY: Final = re.compile("(?:0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th|er|o|a)?")
_FILLERS: Final = frozenset(
    {"de", "del", "of", "the", "г", "год", "года", "р", "рік", "року", "rok", "roku", "m", "gada"}  # noqa: RUF001  (Cyrillic)
)
_PARTS: Final = frozenset(
    {"q1", "q2", "q3", "q4", "h1", "h2", "spring", "summer", "autumn", "fall", "winter",
     "fruhling", "fruhjahr", "sommer", "herbst", "printemps", "ete", "automne", "hiver",
     "primavera", "verano", "otono", "invierno"}
    # These names mean different months in two languages: listopad is November in Polish, but
    # October in Croatian.
    | {"lip", "lis", "listopad", "listopada", "srp"}
)  # fmt: skip
_FOLDER: Final = Path(__file__).parent


@functools.cache
def _months() -> Mapping[str, int]:
    """Return the months by name. A line of the file has a month's names from Unicode's CLDR, and
    `maerz` and `jaenner`, which are spelled without an umlaut."""
    lines = (_FOLDER / "months.txt").read_text("utf-8").splitlines()
    return {_plain(name): month for month, names in enumerate(lines) for name in names.split()}


@functools.cache
def _words_for_present() -> frozenset[str]:
    """Return the phrases in `present.txt` that mean "ongoing".

    They include the words in `rendering.words.WORDS`, which the service itself writes.
    """
    lines = (_FOLDER / "present.txt").read_text("utf-8").splitlines()
    return frozenset(_plain(words) for line in lines for words in line.split(", "))


def _named(text: str) -> WrittenDate | None:
    """Parse dates such as `September 2014`, `1. září 2014`, `Sep 1st, 2014` or `1 de mayo 2014`."""
    order, year, month = "", 0, None
    for word in filter(None, _SEPARATORS.split(text)):
        if re.fullmatch(_YEAR, word):
            order, year = order + "Y", int(word)
        elif _DAY.fullmatch(word):
            order += "D"
        elif (named := _months().get(word.removeprefix("d'"))) is not None:
            order, month = order + "M", named
        elif word in _PARTS:
            order += "P"
        elif word not in _FILLERS:
            return None
    if order in ("Y", "MY", "YM", "DMY", "MDY", "YMD"):
        return WrittenDate(year, month)
    return WrittenDate(year, is_whole=False) if order in ("PY", "YP") else None
