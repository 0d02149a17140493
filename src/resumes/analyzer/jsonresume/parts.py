"""How a field of an analyzer item goes with fields of a JSON Resume entry, both ways.

Each part reads the fields of one entry into fields of one item, and writes them back. Writing is
given shown fields only: texts that are not empty, lists with an entry that counts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from resumes.analyzer.fields import MAX_LIST_ENTRIES, MAX_TEXT_CHARS
from resumes.analyzer.jsonresume.entries import NO_PLACE, Entry
from resumes.analyzer.jsonresume.values import (
    FLUENCIES,
    NETWORK_ICONS,
    WRITTEN_DATE,
    Moment,
    find_level,
    find_written_date,
    is_ongoing,
    parse_place,
    place_line,
)

Fields = Mapping[str, Any]
PARAGRAPH_BREAK = "\n\n"


class Part(Protocol):
    """One correspondence. Fields without a value are left out of what is read and written."""

    @property
    def names(self) -> Sequence[str]:
        """The fields of the entry."""

    @property
    def fields(self) -> Sequence[str]:
        """The fields of the item."""

    def read(self, entry: Entry, /) -> Fields: ...

    def write(self, item: Fields, /) -> Fields: ...


def present(name: str, value: Any) -> Fields:
    """The one field, or none when its value is None or empty."""
    return {name: value} if value else {}


class Text:
    """A text. Read from the first of the names that has one, written to the first."""

    def __init__(self, field: str, *names: str) -> None:
        self.fields = (field,)
        self.names = names

    def read(self, entry: Entry, /) -> Fields:
        return present(self.fields[0], entry.find_text(*self.names))

    def write(self, item: Fields, /) -> Fields:
        return present(self.names[0], item.get(self.fields[0]))


class Paragraphs(Text):
    r"""The texts of several items that are one text in a JSON Resume, "\n\n" between them."""

    def join(self, items: Iterable[Fields]) -> Fields:
        """Write all items."""
        texts = [text for item in items if (text := item.get(self.fields[0], "")).strip()]
        joined = PARAGRAPH_BREAK.join(texts)
        if len(joined) > MAX_TEXT_CHARS:
            # What `divide` looks for is then between texts, or in one, and never half of each.
            joined = PARAGRAPH_BREAK.join(map(str.strip, texts))
        return present(self.names[0], joined)

    def divide(self, item: Fields) -> list[Fields]:
        """Return the item that was read, or several where its text is longer than one may be.

        Whatever was joined of texts that are not too long is divided into such.
        """
        parts = [item.get(self.fields[0], "")]
        while len(rest := parts[-1]) > MAX_TEXT_CHARS:
            end = rest.rfind(PARAGRAPH_BREAK, 1, MAX_TEXT_CHARS + len(PARAGRAPH_BREAK))
            if end < 0:
                break
            parts[-1:] = [rest[:end], rest[end + len(PARAGRAPH_BREAK) :]]
        return [{self.fields[0]: part} for part in parts if part.strip()]


class Texts:
    """A list of texts."""

    def __init__(self, field: str, name: str) -> None:
        self.fields = (field,)
        self.names = (name,)

    def read(self, entry: Entry, /) -> Fields:
        return present(self.fields[0], entry.texts(self.names[0]))

    def write(self, item: Fields, /) -> Fields:
        return present(self.names[0], [text for text in item.get(self.fields[0]) or () if text])


class Keywords(Texts):
    """A list of texts that is one text in the analyzer format, with commas.

    A text of many commas is written as a single one: a list of each word would be longer than a
    JSON Resume may be.
    """

    def read(self, entry: Entry, /) -> Fields:
        return present(self.fields[0], ", ".join(entry.texts(self.names[0])))

    def write(self, item: Fields, /) -> Fields:
        text = item.get(self.fields[0], "")
        words = [word for word in text.split(", ") if word]
        return present(self.names[0], words if len(words) <= MAX_LIST_ENTRIES else [text])


class Joined:
    """Several texts that are one in the analyzer format, in the order of the names.

    `taken_apart` gives the texts back, one for each name, empty where there is none.
    """

    def __init__(
        self,
        field: str,
        names: Sequence[str],
        separator: str,
        taken_apart: Callable[[str], Sequence[str]],
    ) -> None:
        self.fields = (field,)
        self.names = names
        self._separator = separator
        self._taken_apart = taken_apart

    def read(self, entry: Entry, /) -> Fields:
        texts = [entry.find_text(name) for name in self.names]
        return present(self.fields[0], self._separator.join(filter(None, texts)))

    def write(self, item: Fields, /) -> Fields:
        texts = self._taken_apart(item.get(self.fields[0], ""))
        return {name: text for name, text in zip(self.names, texts, strict=True) if text}


def study_and_area(degree: str) -> tuple[str, str]:
    """A degree at its first comma: `Bachelor, Physics`."""
    study, _, area = degree.partition(", ")
    return study, area


def issuer_and_date(text: str) -> tuple[str, str]:
    """A text that ends in a date, at its last comma: `CNCF, 2021-05`; else all of it and no date."""
    issuer, _, date = text.rpartition(", ")
    return (issuer, date) if WRITTEN_DATE.fullmatch(date) else (text, "")


def award_parts(text: str) -> tuple[str, str, str]:
    """Awarder, date and summary around the first date: `Time - 2014-11-01 - For physics`.

    A text without a date is all summary: nobody can tell what else a dash in it means.
    """
    words = text.split(" - ")
    for at, word in enumerate(words):
        if WRITTEN_DATE.fullmatch(word):
            return " - ".join(words[:at]), word, " - ".join(words[at + 1 :])
    return "", "", text


class Score:
    """A grade; written with the highest possible one, if that is known: `3.7/4.0`.

    Read as a grade alone, unless that would be too long for one.
    """

    fields = ("gpa", "maxGpa")
    names = ("score", "gpa")

    def read(self, entry: Entry, /) -> Fields:
        score = entry.find_text(*self.names) or ""
        slash = score.rfind("/", 0, MAX_TEXT_CHARS + 1)
        if len(score) > MAX_TEXT_CHARS and slash > 0:
            return {"gpa": score[:slash], "maxGpa": score[slash + 1 :]}
        return present("gpa", score)

    def write(self, item: Fields, /) -> Fields:
        grade, highest = item.get("gpa"), item.get("maxGpa")
        return present("score", f"{grade}/{highest}" if grade and highest else grade)


class Place:
    """A place on one line; an object of city, region and country is read as well."""

    fields = ("location",)
    names: tuple[str, ...] = ("location",)

    def read(self, entry: Entry, /) -> Fields:
        if type(entry.get("location")) is not dict:
            return present("location", entry.find_text("location"))
        with entry.inner("location") as place:
            words = [place.find_text(name) for name in ("city", "region", "countryCode")]
        return present("location", place_line(*words))

    def write(self, item: Fields, /) -> Fields:
        return present("location", item.get("location"))


class Home(Place):
    """A place that is an object of city, region and country in a JSON Resume."""

    def write(self, item: Fields, /) -> Fields:
        return present("location", parse_place(item.get("location", "")))


class Span:
    """From when to when. Without an end it goes on.

    A span of the analyzer format that neither ends nor goes on reads as its beginning alone, so
    it is written as one that ends where it begins.
    """

    fields = ("dateRange",)
    names = ("startDate", "endDate")

    def read(self, entry: Entry, /) -> Fields:
        start = entry.find_moment("startDate")
        span = _end_of_span("from", start)
        if is_ongoing(entry.get("endDate")) or (start and not entry.has("endDate")):
            entry.pass_over("endDate")
            span["isOngoing"] = True
        else:
            span |= _end_of_span("to", entry.find_moment("endDate"))
        return present("dateRange", span)

    def write(self, item: Fields, /) -> Fields:
        start, end = _written_span(item)
        end = None if (item.get("dateRange") or {}).get("isOngoing") else end or start
        return {**present("startDate", start), **present("endDate", end)}


class Release:
    """A single date, which is where a date range begins; nothing goes on."""

    fields = ("dateRange",)
    names = ("releaseDate",)

    def read(self, entry: Entry, /) -> Fields:
        return present("dateRange", _end_of_span("from", entry.find_moment("releaseDate")))

    def write(self, item: Fields, /) -> Fields:
        start, end = _written_span(item)
        return present("releaseDate", start or end)


def _end_of_span(end: str, moment: Moment | None) -> dict[str, Any]:
    """The fields of a `dateRange` that say when it begins ("from") or ends ("to")."""
    if moment is None:
        return {}
    month = {} if moment.month is None else {f"{end}Month": moment.month}
    return {f"{end}Year": moment.year, **month}


def _written_span(item: Fields) -> tuple[str | None, str | None]:
    span = item.get("dateRange") or {}
    return (
        find_written_date(span.get("fromYear"), span.get("fromMonth")),
        find_written_date(span.get("toYear"), span.get("toMonth")),
    )


class Fluency:
    """How well a language is spoken: the words as they are, and the level that they mean, if known.

    Written are the words, or such as mean the level when there are none.
    """

    fields = ("levelText", "level")
    names = ("fluency",)

    def read(self, entry: Entry, /) -> Fields:
        fluency = entry.find_text("fluency") or ""
        return {**present("levelText", fluency), **present("level", find_level(fluency))}

    def write(self, item: Fields, /) -> Fields:
        return present("fluency", item.get("levelText") or FLUENCIES.get(item.get("level", 0)))


class Network:
    """A social network: its name is the title; the icon goes by it and is not written."""

    fields = ("title", "icon")
    names = ("network",)

    def read(self, entry: Entry, /) -> Fields:
        network = entry.find_text("network") or ""
        icon = NETWORK_ICONS.get(network.strip().lower())
        return {**present("title", network), **present("icon", icon)}

    def write(self, item: Fields, /) -> Fields:
        return present("network", item.get("title"))


class Link:
    """The address of a profile, or without one the user's name.

    A name beside an address has no place; nothing is told when the address says it too. A link
    that can be no address is written as a name.
    """

    fields = ("link",)
    names = ("url", "website", "username")

    def read(self, entry: Entry, /) -> Fields:
        address = entry.find_text("url", "website")
        username = entry.find_text("username")
        if address is None:
            return present("link", username)
        if username and username.strip("@").lower() not in address.lower():
            entry.tell("username", NO_PLACE)
        return {"link": address}

    def write(self, item: Fields, /) -> Fields:
        link = item.get("link", "")
        return present("url" if any(mark in link for mark in "/.:") else "username", link)
