"""What values of a JSON Resume mean: dates, how well a language is spoken, networks, places."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from resumes.analyzer.fields import MAX_TEXT_CHARS
from resumes.analyzer.schema import MONTHS

# Dates are a year, and perhaps a month and a day, which has no place in the analyzer format. Years
# are those that the schema of JSON Resume knows, so that what was read can be written again.
_YEAR_FIRST = re.compile(
    r"([12][0-9]{3})(?:[-/.](0?[1-9]|1[0-2])(?:[-/.][0-3]?[0-9](?:T.*)?)?)?", re.ASCII
)
_MONTH_FIRST = re.compile(r"(0?[1-9]|1[0-2])[-/.]([12][0-9]{3})", re.ASCII)
_MONTH_NAMED = re.compile(r"([A-Za-z]{3,9})\.?,? ([12][0-9]{3})", re.ASCII)
_MONTHS_BY_BEGINNING: Final = {month[:3].lower(): number for number, month in enumerate(MONTHS)}
_ONGOING: Final = frozenset({"present", "current", "now", "today", "ongoing"})

WRITTEN_DATE: Final = re.compile(r"[12][0-9]{3}(?:-[01][0-9](?:-[0-3][0-9])?)?", re.ASCII)
"""A date as JSON Resume writes it, and text that is nothing else."""


class Moment(NamedTuple):
    """A month of a year; `month` counts from 0, None when only the year is known."""

    year: int
    month: int | None


def find_moment(text: str) -> Moment | None:
    """The month that a text names; None when it cannot be read.

    Read are `2020`, `2020-01`, `2020-01-31`, the same with `/` or `.`, a time of day after it,
    `01/2020` and `January 2020`.
    """
    text = text.strip()
    if dated := _YEAR_FIRST.fullmatch(text):
        return Moment(int(dated[1]), int(dated[2]) - 1 if dated[2] else None)
    if dated := _MONTH_FIRST.fullmatch(text):
        return Moment(int(dated[2]), int(dated[1]) - 1)
    if dated := _MONTH_NAMED.fullmatch(text):
        month = _MONTHS_BY_BEGINNING.get(dated[1][:3].lower())
        if month is not None and MONTHS[month].lower().startswith(dated[1].lower()):
            return Moment(int(dated[2]), month)
    return None


def is_ongoing(end: Any) -> bool:
    """Whether an end says that there is none yet: `Present`, `current`."""
    return type(end) is str and end.strip().lower() in _ONGOING


def find_written_date(year: Any, month: Any) -> str | None:
    """The month as JSON Resume writes it, `2020-01`; None without a year that it can write.

    Both are numbers or None; `month` counts from 0, and what is no month is left out.
    """
    if year is None or year != int(year) or not 1000 <= year <= 2999:
        return None
    if month not in range(len(MONTHS)):
        return str(int(year))
    return f"{int(year)}-{int(month) + 1:02}"


# The first row of which a word is in the text counts, so "limited professional" is 3.
_LEVELS: Final = (
    (5, {"native", "bilingual", "c2"}),
    (4, {"fluent", "c1"}),
    (3, {"limited", "intermediate", "b1"}),
    (4, {"professional", "b2"}),
    (2, {"basic", "elementary", "a2"}),
    (1, {"beginner", "a1"}),
)

FLUENCIES: Final = {5: "Native", 4: "Fluent", 3: "Intermediate", 2: "Basic", 1: "Beginner"}
"""How well a language is spoken in words, by level."""


def find_level(fluency: str) -> int | None:
    """The level that the words mean; None when they are not known."""
    words = set(re.findall(r"[a-z0-9]+", fluency.lower()))
    return next((level for level, known in _LEVELS if words & known), None)


NETWORK_ICONS: Final = {
    "angellist": "angellist", "behance": "34-behance", "discord": "discord-logo",
    "dribbble": "dribble", "facebook": "25-free-facebook", "figma": "figma", "flickr": "flickr",
    "github": "35-github", "instagram": "28-instagram", "kaggle": "kaggle-brands",
    "linkedin": "26-linkedin", "medium": "medium", "pinterest": "27-pinterest-1",
    "quora": "quora", "reddit": "reddit", "skype": "skype", "slideshare": "slideshare",
    "soundcloud": "soundcloud", "spotify": "spotify", "stack overflow": "stack-overflow",
    "stackoverflow": "stack-overflow", "tumblr": "tumblr", "twitter": "29-twitter",
    "vimeo": "vimeo", "vk": "vk", "weibo": "weibo", "whatsapp": "whatsapp", "x": "29-twitter",
    "youtube": "30-youtube",
}  # fmt: skip
"""The icon of a social network by its name in small letters."""


_SEPARATOR: Final = ", "

# ISO 3166-1 alpha-2, a code a line.
_COUNTRIES: Final = frozenset(Path(__file__).with_name("countries.txt").read_text("ascii").split())
# The countries whose code is that of a US state too.
_NAMES: Final = {
    "AL": "Albania", "AR": "Argentina", "AZ": "Azerbaijan", "CA": "Canada", "CO": "Colombia",
    "DE": "Germany", "GA": "Gabon", "ID": "Indonesia", "IL": "Israel", "IN": "India",
    "KY": "Cayman Islands", "LA": "Laos", "MA": "Morocco", "MD": "Moldova", "ME": "Montenegro",
    "MN": "Mongolia", "MO": "Macao", "MS": "Montserrat", "MT": "Malta", "NC": "New Caledonia",
    "NE": "Niger", "PA": "Panama", "SC": "Seychelles", "SD": "Sudan", "TN": "Tunisia",
    "VA": "Vatican City",
}  # fmt: skip
_CODES: Final = {name: code for code, name in _NAMES.items()}


def place_line(city: str | None, region: str | None, country: str | None) -> str:
    """The place on one line, empty when nothing of it is known."""
    if country and not region and country in _NAMES:
        if len(city or "") + len(_SEPARATOR) + len(_NAMES[country]) > MAX_TEXT_CHARS:
            return _SEPARATOR.join((city or "", "", country))
        country = _NAMES[country]
    return _SEPARATOR.join(word for word in (city, region, country) if word)


def parse_place(line: str) -> Mapping[str, str]:
    """What of `city`, `region` and `countryCode` the line says; nothing between two separators
    stands for nothing.

    By position: `Paris, Île-de-France, FR` is city, region and country. Of two words the second is
    the country when it can be nothing else. `CA` can: after a city it is taken for California, so
    Canada is written out there.
    """
    words: list[str] = []
    is_third = False
    for position, word in enumerate(line.split(_SEPARATOR)):
        if word and not word.isspace():
            words.append(word)
            is_third = position > 1
    country = _find_country(words[-1], is_third=is_third) if words else None
    if country is not None:
        words.pop()
    # Of a single word nobody can tell; a city it is.
    region = words.pop() if len(words) > 1 else ""
    place = {"city": _SEPARATOR.join(words), "region": region, "countryCode": country or ""}
    return {name: word for name, word in place.items() if word}


def _find_country(word: str, *, is_third: bool) -> str | None:
    if word in _COUNTRIES and (is_third or word not in _NAMES):
        return word
    return _CODES.get(word)
