"""From when to when: two dates in a JSON Resume, a `dateRange` in the analyzer format."""

from typing import Any

from resumes.analyzer.jsonresume.dates import find_written, is_ongoing
from resumes.analyzer.jsonresume.entries import Entry
from resumes.analyzer.jsonresume.parts import Fields, present


class Span:
    """From when to when. Without an end it goes on.

    A span of the analyzer format that neither ends nor goes on reads as its beginning alone, so
    it is written as one that ends where it begins.
    """

    fields = ("dateRange",)
    names = ("startDate", "endDate")

    def read(self, entry: Entry, /) -> Fields:
        span: dict[str, Any] = {}
        if start := entry.find_moment("startDate"):
            span |= {"fromYear": start.year, "fromMonth": start.month}
        is_open = start is not None and not entry.has("endDate")
        if is_open or entry.holds("endDate", is_ongoing):
            entry.pass_over("endDate")
            span["isOngoing"] = True
        elif end := entry.find_moment("endDate"):
            span |= {"toYear": end.year, "toMonth": end.month}
        return present("dateRange", _without_none(span))

    def write(self, item: Fields, /) -> Fields:
        span = item.get("dateRange") or {}
        start = find_written(span.get("fromYear"), span.get("fromMonth"))
        end = find_written(span.get("toYear"), span.get("toMonth"))
        end = None if span.get("isOngoing") else end or start
        return {**present("startDate", start), **present("endDate", end)}


class Release:
    """A single date, which is where a date range begins; nothing goes on."""

    fields = ("dateRange",)
    names = ("releaseDate",)

    def read(self, entry: Entry, /) -> Fields:
        moment = entry.find_moment("releaseDate")
        if moment is None:
            return {}
        return {"dateRange": _without_none({"fromYear": moment.year, "fromMonth": moment.month})}

    def write(self, item: Fields, /) -> Fields:
        span = item.get("dateRange") or {}
        start = find_written(span.get("fromYear"), span.get("fromMonth"))
        end = find_written(span.get("toYear"), span.get("toMonth"))
        return present("releaseDate", start or end)


def _without_none(fields: Fields) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
