"""Parse telephone numbers as people write them."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

MIN_DIGITS: Final = 5
MAX_DIGITS: Final = 15
"""The maximum number of digits with a country code (ITU-T E.164)."""

MAX_CHARS: Final = 40
"""The maximum length of a text that is parsed as a single number."""

UNSEEN: Final = re.compile(r"[\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
"""The invisible characters that address books insert around a number."""

LIKE_DASHES: Final = "\u2212\u2043\u2500\u2501\u30fc\u4e00"
"""Characters that people use as dashes between digits: the minus sign, a bullet, box-drawing lines,
the Japanese long vowel mark and the Chinese character for one."""

_DASH: Final = re.compile(f"[{LIKE_DASHES}]")
_BETWEEN_NUMBERS: Final = re.compile(r"[^\d\s()./+-]+|[\r\n\t]+|(?<=[\d\s)/])(?=\+)")
_NUMBER: Final = re.compile(r"[\s(]*\+?[\d\s()./-]+")
_ZERO_WITHIN: Final = re.compile(r"\d\D*\(\s*0\s*\)")
_PARTS: Final = re.compile(r"\s*/\s*|\s+-+\s+")
"""A separator between two numbers, or between an area code and the rest of a number."""

_COUNTRY: Final = r"1|7|2[07]|3[0-469]|38(?=\D+0)|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|[1-9]\d\d"
"""Ukrainians often write the 0 of their country code 380 with the area code: `+38 (044) …`."""

_INTERNATIONAL: Final = re.compile(
    rf"\(?\s*(\+[\s(]*|00(?!11)[\s(]*|011[\s-]+(?=(?:\D*\d){{10}}))({_COUNTRY})(.*)", re.DOTALL
)
_TRUNKS: Final = {
    "1": r"[01](?=\d{10})", "7": r"0|8(?=\d{10})", "36": "06?", "38": "", "241": r"0(?=\d{8})",
    "375": r"80?(?=\d{9})|0", **dict.fromkeys(("370", "993"), r"[08](?=\d{8})"),
    **dict.fromkeys(("39", "225", "226", "229", "242", "378", "992"), ""),
}  # fmt: skip
"""The prefix for domestic calls by country code; for all other countries it is 0. It is empty where
callers from abroad also dial a leading 0. Where it is 8 or 1, other digits tell it from an area
code that begins with the same digit."""

MAX_DOMESTIC_DIGITS: Final = 11
"""The maximum length of a number without a country code or leading 0. A longer one has a country
code without the +."""

_AREA_DIGITS: Final = 4
"""The maximum length of an area code; with a country code or a 0 before it, one digit more."""

MIN_LOCAL_DIGITS: Final = 6
"""The minimum length of a number in a text with several numbers; fewer digits are only a group."""

_LONG: Final = re.compile(rf"\d{{{MIN_LOCAL_DIGITS},}}")
_YEAR: Final = r"(?:19|20)\d\d"
_DATE: Final = re.compile(
    rf"(?:\d{{1,2}} *[-/.] *){{1,2}}{_YEAR}|{_YEAR}(?: *[-/.] *\d{{1,2}}){{1,2}}|{_YEAR} *[-/] *{_YEAR}"
)


class _Plain(dict[int, str]):
    """A table for `str.translate` that maps digits, dashes, brackets and apostrophes of any script,
    and characters of another width, to one plain character each."""

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
    """The `+`, `00` or `011` before the country code; empty if there is no country code."""
    country: str
    national: str
    """The other digits. After a country code, the prefix for domestic calls is removed."""

    @property
    def dialed(self) -> str:
        return f"{self.prefix}{self.country}{self.national}"


def find_number(text: str) -> PhoneNumber | None:
    """Return the number if the text is unambiguously one phone number, otherwise None."""
    shown = _plain(text[:MAX_CHARS]).strip()
    if len(text) > MAX_CHARS or not _NUMBER.fullmatch(shown) or _DATE.fullmatch(shown):
        return None
    parts = [*_iter_parts(shown)]
    if len(parts) != 1:
        return None
    number = _parse(parts[0])
    if not number.country and _lacks_country(shown, number.national):
        return None
    return number if MIN_DIGITS <= len(number.country + number.national) <= MAX_DIGITS else None


def _lacks_country(shown: str, digits: str) -> bool:
    """Return whether a number has an unknown country code, or perhaps one without the +."""
    is_long = len(digits) > MAX_DOMESTIC_DIGITS and not digits.startswith("0")
    return is_long or "+" in shown or bool(_ZERO_WITHIN.search(shown))


def iter_numbers(text: str) -> Iterator[PhoneNumber]:
    """Yield the numbers that a text may contain."""
    for part in _iter_parts(_plain(text)):
        yield _parse(part)


def _plain(text: str) -> str:
    """Convert digits, dashes and spaces to ASCII."""
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
    """Yield the numbers in a part in which only spaces separate them."""
    for gap in re.finditer(r"\s+", part):
        before, after = part[: gap.start()], part[gap.end() :]
        begins = after[0] in "(0" or (_LONG.match(after) and _LONG.search(before))
        if begins and min(len(_parse(before).national), len(_digits(after))) >= MIN_LOCAL_DIGITS:
            yield before
            yield from _iter_groups(after)
            return
    yield part


def _is_area(first: str, second: str) -> bool:
    """Return whether `first` is the area code for `second`, not a separate number."""
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
    return PhoneNumber(re.sub(r"[\s(-]", "", prefix), country, national)
