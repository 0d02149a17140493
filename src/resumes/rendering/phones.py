"""Parsing of telephone numbers as people write them."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

MIN_DIGITS: Final = 5
MAX_DIGITS: Final = 15
"""The maximum number of digits with a country code (ITU-T E.164)."""

MAX_CHARS: Final = 40
"""A longer text is not a single number."""

UNSEEN: Final = re.compile(r"[\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
"""The invisible characters that address books put around a number."""

LIKE_DASHES: Final = "\u2212\u2043\u2500\u2501\u30fc\u4e00"
"""Characters that are used as dashes between digits: the minus, lines, the Japanese long vowel and one."""

_DASH: Final = re.compile(f"[{LIKE_DASHES}]")
_BETWEEN_NUMBERS: Final = re.compile(r"[^\d\s()./+-]+|[\r\n\t]+|(?<=[\d\s)/])(?=\+)")
_NUMBER: Final = re.compile(r"[\s(]*\+?[\d\s()./-]+")
_ZERO_WITHIN: Final = re.compile(r"\d\D*\(\s*0\s*\)")
_PARTS: Final = re.compile(r"\s*/\s*|\s+-+\s+")
"""Separates two numbers, or an area code and the rest of a number."""

_COUNTRY: Final = r"1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|\d{3}"
_INTERNATIONAL: Final = re.compile(
    rf"\(?\s*(\+\s*|00\s*|011[\s-]+(?=(?:\D*\d){{10}}))({_COUNTRY})(.*)", re.DOTALL
)
_TRUNKS: Final = {
    "7": r"0|8(?=\d{10})", "36": "06?", **dict.fromkeys(("39", "225", "229", "242", "378"), "")
}  # fmt: skip
"""By country code, the prefix that is dialed only within the country. In all others it is 0; in some a
number also begins with 0 from abroad, and in Russia an area code with 8."""

_AREA_DIGITS: Final = 4
"""The maximum number of digits of an area code; one more with a 0 or a country code before it."""

MIN_LOCAL_DIGITS: Final = 6
"""Fewer digits are a group of a number, if more than one number could be in the text."""

_LONG: Final = re.compile(rf"\d{{{MIN_LOCAL_DIGITS},}}")
_YEAR: Final = r"(?:19|20)\d\d"
_DATE: Final = re.compile(
    rf"(?:\d{{1,2}} *[-/.] *){{1,2}}{_YEAR}|{_YEAR}(?: *[-/.] *\d{{1,2}}){{1,2}}|{_YEAR} *[-/] *{_YEAR}"
)


class _Plain(dict[int, str]):
    """For `str.translate`: each digit, dash, bracket and apostrophe of any script, and each letter of
    another width, as one character of the plainest kind."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if unicodedata.decomposition(char).startswith(("<wide>", "<narrow>", "<small>", "<font>")):
            char = unicodedata.normalize("NFKC", char)
        if char.isdecimal():
            char = str(unicodedata.decimal(char))
        elif char in _APOSTROPHES:
            char = "'"
        elif not char.isascii():
            char = {"Pd": "-", "Ps": "(", "Pe": ")"}.get(unicodedata.category(char), char)
        self[code] = char
        return char


_APOSTROPHES: Final = (
    "`\u00b4\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u02c8\u2018\u2019\u201b\u2032\ua78c"
)
PLAIN: Final = _Plain()


class PhoneNumber(NamedTuple):
    """The digits of a number."""

    prefix: str
    """`+`, `00` or `011` before a country code; empty without one."""
    country: str
    national: str
    """The other digits; with a country code, without the prefix for calls within the country."""

    @property
    def dialed(self) -> str:
        return f"{self.prefix}{self.country}{self.national}"


def find_number(text: str) -> PhoneNumber | None:
    """Return the number if the text is exactly one; None for any other text, or if it may be more."""
    shown = _plain(text[:MAX_CHARS]).strip()
    if len(text) > MAX_CHARS or not _NUMBER.fullmatch(shown) or _DATE.fullmatch(shown):
        return None
    parts = [*_iter_parts(shown)]
    if len(parts) != 1:
        return None
    number = _parse(parts[0])
    if not number.country and _ZERO_WITHIN.search(shown):
        return None  # it may have a country code without the +
    return number if MIN_DIGITS <= len(number.country + number.national) <= MAX_DIGITS else None


def iter_numbers(text: str) -> Iterator[PhoneNumber]:
    """Yield the numbers that a text may contain."""
    for part in _iter_parts(_plain(text)):
        yield _parse(part)


def _plain(text: str) -> str:
    """Return the text with ASCII digits, hyphens and blanks."""
    return _DASH.sub("-", unicodedata.normalize("NFKC", UNSEEN.sub("", text)).translate(PLAIN))


def _iter_parts(text: str) -> Iterator[str]:
    for number in _BETWEEN_NUMBERS.split(text):
        whole = ""
        for part in filter(_digits, _PARTS.split(number)):
            if whole and not _is_area(whole, part):
                yield from _iter_groups(whole)
                whole = ""
            whole = f"{whole} {part}".strip()
        if whole:
            yield from _iter_groups(whole)


def _iter_groups(part: str) -> Iterator[str]:
    """Yield the numbers of a part, which are separated only by blanks."""
    for gap in re.finditer(r"\s+", part):
        before, after = part[: gap.start()], part[gap.end() :]
        begins = after[0] in "(0" or (_LONG.match(after) and _LONG.search(before))
        if begins and min(len(_parse(before).national), len(_digits(after))) >= MIN_LOCAL_DIGITS:
            yield before
            yield from _iter_groups(after)
            return
    yield part


def _is_area(first: str, second: str) -> bool:
    """Return whether the first part is the area code of the second rather than another number."""
    number = _parse(first)
    area = number.national.removeprefix("0")
    most = _AREA_DIGITS + bool(number.country or area != number.national)
    is_whole = second.startswith("0") and len(_digits(second)) > _AREA_DIGITS
    return len(area) <= most and not is_whole


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _parse(text: str) -> PhoneNumber:
    found = _INTERNATIONAL.match(text.strip())
    if found is None:
        return PhoneNumber("", "", _digits(text))
    prefix, country, rest = found.groups()
    national = _digits(rest)
    national = re.sub(rf"^(?:{_TRUNKS.get(country, '0')})", "", national)
    return PhoneNumber(re.sub(r"[\s-]", "", prefix), country, national)
