"""Convert the fields of JSON Resume entries to fields of analyzer items, and back.

Each property converts fields of an entry to fields of an item, and back. It writes only
shown fields: texts that are not empty, and lists with at least one entry that is not blank.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from resumes.analyzer.findings import printable
from resumes.analyzer.jsonresume.dates import WRITTEN_DATE, find_date, find_written_date, is_ongoing
from resumes.analyzer.jsonresume.entries import NO_PLACE, EntryReader
from resumes.analyzer.kinds import MAX_LIST_ENTRIES, MAX_TEXT_CHARS

# The first row with a word in the text determines the level, so "limited professional" is 3.
_LEVELS: Final = (
    (5, {"native", "bilingual", "c2"}),
    (4, {"fluent", "c1"}),
    (3, {"limited", "intermediate", "b1"}),
    (4, {"professional", "b2"}),
    (2, {"basic", "elementary", "a2"}),
    (1, {"beginner", "a1"}),
)

FLUENCIES: Final = {5: "Native", 4: "Fluent", 3: "Intermediate", 2: "Basic", 1: "Beginner"}
"""The words for each language level."""


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
"""The icon of a social network by its name in lower case."""


_SEPARATOR: Final = ", "

# The codes of ISO 3166-1 alpha-2, one per line.
_COUNTRIES: Final = frozenset(Path(__file__).with_name("countries.txt").read_text("ascii").split())
# The countries whose code is also the code of a US state.
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
    """Return the place on one line, or no text if no part of it is known."""
    if country and not region and country in _NAMES:
        if len(city or "") + len(_SEPARATOR) + len(_NAMES[country]) > MAX_TEXT_CHARS:
            return _SEPARATOR.join((city or "", "", country))
        country = _NAMES[country]
    return _SEPARATOR.join(word for word in (city, region, country) if word)


def parse_place(line: str) -> Mapping[str, str]:
    """Return the `city`, `region` and `countryCode` that the line contains.

    The position determines the part, and parts can be empty: `Paris, Île-de-France, FR` is city,
    region and country. The second of two parts is the country only if it cannot be a region. After
    a city, `CA` is read as California, so `place_line` writes out the name of Canada.
    """
    words: list[str] = []
    is_third = False
    for position, word in enumerate(line.split(_SEPARATOR)):
        if word and not word.isspace():
            words.append(word)
            is_third = position > 1
    country = None
    if words:
        is_country = words[-1] in _COUNTRIES and (is_third or words[-1] not in _NAMES)
        country = words[-1] if is_country else _CODES.get(words[-1])
    if country is not None:
        words.pop()
    # A single part could be any of them. Treat it as a city.
    region = words.pop() if len(words) > 1 else ""
    place = {"city": _SEPARATOR.join(words), "region": region, "countryCode": country or ""}
    return {name: word for name, word in place.items() if word}


Fields = Mapping[str, Any]
PARAGRAPH_BREAK = "\n\n"


class Property:
    """A mapping between an item and an entry, by default of one text.

    `fields` are the names of the item's fields, and `names` the names of the entry's fields; both
    are separated by spaces. A value that is None or empty counts as missing.
    """

    def __init__(self, fields: str, names: str) -> None:
        self.fields = fields.split()
        self.names = names.split()

    def read(self, entry: EntryReader, /) -> Fields:
        """Return the first text in the entry's fields as the first field of an item."""
        return {self.fields[0]: entry.find_text(*self.names)}

    def write(self, item: Fields, /) -> Fields:
        """Return the item's first field as the first field of an entry."""
        return {self.names[0]: item.get(self.fields[0])}


class Paragraphs(Property):
    r"""The texts of several items, which are one text in a JSON Resume, separated by "\n\n"."""

    def join(self, items: Iterable[Fields]) -> str:
        """Join the texts of all items."""
        texts = [text for item in items if (text := item.get(self.fields[0], "")).strip()]
        joined = PARAGRAPH_BREAK.join(texts)
        if len(joined) > MAX_TEXT_CHARS:
            # Strip the texts, so that `divide` finds a break between two texts or within a text.
            joined = PARAGRAPH_BREAK.join(map(str.strip, texts))
        return joined

    def divide(self, text: str) -> list[Fields]:
        """Return an item with the text, or several items if the text is too long for one.

        A text that `join` returned is divided into texts of allowed length.
        """
        parts = [text]
        while len(rest := parts[-1]) > MAX_TEXT_CHARS:
            end = rest.rfind(PARAGRAPH_BREAK, 1, MAX_TEXT_CHARS + len(PARAGRAPH_BREAK))
            if end < 0:
                break
            parts[-1:] = [rest[:end], rest[end + len(PARAGRAPH_BREAK) :]]
        return [{self.fields[0]: part} for part in parts if part.strip()]


class Texts(Property):
    """A list of texts."""

    def read(self, entry: EntryReader, /) -> Fields:
        return {self.fields[0]: entry.texts(self.names[0])}

    def write(self, item: Fields, /) -> Fields:
        return {self.names[0]: [text for text in item.get(self.fields[0]) or () if text]}


class Highlights(Texts):
    """A list of texts. A list of keywords, joined by commas, is added as another text."""

    def read(self, entry: EntryReader, /) -> Fields:
        highlights, keywords = map(entry.texts, self.names)
        joined = ", ".join(keywords)
        if joined and len(joined) <= MAX_TEXT_CHARS and len(highlights) < MAX_LIST_ENTRIES:
            highlights.append(joined)
        elif joined:
            entry.findings.warn(self.names[1], f"has no room in {self.names[0]}: left out")
        return {self.fields[0]: highlights}


class Keywords(Texts):
    """A list of texts, which is one text joined by commas in the analyzer format.

    A text with too many commas is written as a single entry, since the list of its words would have
    more entries than a list may have.
    """

    def read(self, entry: EntryReader, /) -> Fields:
        return {self.fields[0]: ", ".join(entry.texts(self.names[0]))}

    def write(self, item: Fields, /) -> Fields:
        text = item.get(self.fields[0], "")
        words = [word for word in text.split(", ") if word]
        return {self.names[0]: words if len(words) <= MAX_LIST_ENTRIES else [text]}


class Joined(Property):
    """Several texts, which are one text in the analyzer format: `Bachelor, Physics`."""

    SEPARATOR: ClassVar = ", "

    def read(self, entry: EntryReader, /) -> Fields:
        texts = [entry.find_text(name) for name in self.names]
        return {self.fields[0]: self.SEPARATOR.join(filter(None, texts))}

    def write(self, item: Fields, /) -> Fields:
        return dict(zip(self.names, self.split(item.get(self.fields[0], "")), strict=True))

    def split(self, text: str) -> Sequence[str]:
        """Return one text for each name; missing texts are empty."""
        first, _, rest = text.partition(self.SEPARATOR)
        # Do not split a text that begins with a separator: joining it would drop the separator.
        return (first, rest) if first.strip() else (text, "")


class Issuer(Joined):
    """An issuer with an optional date at the end: `CNCF, 2021-05`."""

    def split(self, text: str) -> Sequence[str]:
        issuer, _, date = text.rpartition(self.SEPARATOR)
        return (issuer, date) if WRITTEN_DATE.fullmatch(date) else (text, "")


class Award(Joined):
    """An awarder, a date and a summary: `Time - 2014-11-01 - For physics`.

    The first date separates the parts. Without a date, the text is only a summary: a dash in it can
    mean anything.
    """

    SEPARATOR = " - "

    def split(self, text: str) -> Sequence[str]:
        words = text.split(self.SEPARATOR)
        for at, word in enumerate(words):
            if WRITTEN_DATE.fullmatch(word):
                before, after = words[:at], words[at + 1 :]
                return self.SEPARATOR.join(before), word, self.SEPARATOR.join(after)
        return "", "", text


class Score(Property):
    """A grade, which is written with the highest possible grade if that is known: `3.7/4.0`.

    The text is read as a grade without a maximum, unless it is too long for that.
    """

    def read(self, entry: EntryReader, /) -> Fields:
        score = entry.find_text(*self.names) or ""
        slash = score.rfind("/", 1, MAX_TEXT_CHARS + 1)
        if len(score) > MAX_TEXT_CHARS and slash != -1:
            return {"gpa": score[:slash], "maxGpa": score[slash + 1 :]}
        return {"gpa": score}

    def write(self, item: Fields, /) -> Fields:
        grade, highest = item.get("gpa"), item.get("maxGpa")
        return {"score": f"{grade}/{highest}" if grade and highest else grade}


class Location(Property):
    """A place on one line. An object with city, region and country, or an address, is also read."""

    def read(self, entry: EntryReader, /) -> Fields:
        if type(entry.left.get("location")) is not dict:
            return super().read(entry)
        with entry.inner("location") as place:
            words = [place.find_text(name) for name in ("city", "region", "countryCode")]
            line = place_line(*words) or place.find_text("address")
        return {"location": line}


class Home(Location):
    """A place that a JSON Resume contains as an object with city, region and country."""

    def write(self, item: Fields, /) -> Fields:
        return {"location": parse_place(item.get("location", ""))}


class DateSpan(Property):
    """A period. A JSON Resume has no end date if the period is ongoing.

    In the analyzer format, a period may have no end without being ongoing, and only its beginning
    is shown. It is written with an end that equals the beginning.
    """

    def read(self, entry: EntryReader, /) -> Fields:
        span = _read_date(entry, "startDate", "from")
        end = entry.left.get("endDate")
        if (type(end) is str and is_ongoing(end)) or (span and end is None):
            entry.left.pop("endDate", None)
            span["isOngoing"] = True
        else:
            span |= _read_date(entry, "endDate", "to")
        return {"dateRange": span}

    def write(self, item: Fields, /) -> Fields:
        start, end = find_written_date(item, "from"), find_written_date(item, "to")
        end = None if (item.get("dateRange") or {}).get("isOngoing") else end or start
        return {"startDate": start, "endDate": end}


class Release(Property):
    """A single date. It is the beginning of a date range that is not ongoing."""

    def read(self, entry: EntryReader, /) -> Fields:
        return {"dateRange": _read_date(entry, "releaseDate", "from")}

    def write(self, item: Fields, /) -> Fields:
        date = find_written_date(item, "from") or find_written_date(item, "to")
        return {"releaseDate": date}


def _read_date(entry: EntryReader, name: str, end: str) -> dict[str, Any]:
    """Return the fields for the beginning ("from") or end ("to") of a `dateRange`.

    A text that cannot be read as a date causes a warning.
    """
    text = entry.find_text(name)
    if text is None:
        return {}
    found = find_date(text)
    if found is None:
        entry.findings.warn(name, f'"{printable(text)}" cannot be read as a date: left out')
        return {}
    if not found.is_whole:
        entry.findings.warn(
            name, f'"{printable(text)}" does not say which month: only the year is used'
        )
    month = {} if found.month is None else {f"{end}Month": found.month}
    return {f"{end}Year": found.year, **month}


class Fluency(Property):
    """A language level. Its words are read unchanged, and also as a number if they are known.

    Without words, `FLUENCIES` determines the words to write for the level.
    """

    def read(self, entry: EntryReader, /) -> Fields:
        fluency = entry.find_text("fluency") or ""
        words = set(re.findall(r"[a-z0-9]+", fluency.lower()))
        level = next((level for level, known in _LEVELS if words & known), None)
        return {"levelText": fluency, "level": level}

    def write(self, item: Fields, /) -> Fields:
        return {"fluency": item.get("levelText") or FLUENCIES.get(item.get("level", 0))}


class Network(Property):
    """A social network. Its name is the title and determines the icon, which is not written."""

    def read(self, entry: EntryReader, /) -> Fields:
        network = entry.find_text("network") or ""
        icon = NETWORK_ICONS.get(network.strip().lower())
        return {"title": network, "icon": icon}


class Link(Property):
    """The address of a profile, or the username if there is no address.

    If both exist, the username is omitted, with a warning unless the address contains it. A link
    that cannot be an address is written as a username.
    """

    def read(self, entry: EntryReader, /) -> Fields:
        address = entry.find_text("url", "website")
        username = entry.find_text("username")
        if address is None:
            return {"link": username}
        if username and username.strip("@").lower() not in address.lower():
            entry.findings.warn("username", NO_PLACE)
        return {"link": address}

    def write(self, item: Fields, /) -> Fields:
        link = item.get("link", "")
        return {"url" if any(mark in link for mark in "/.:") else "username": link}
