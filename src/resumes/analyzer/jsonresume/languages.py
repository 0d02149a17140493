"""How well a language is spoken: words in a JSON Resume, words and a level from 0 to 5 here."""

import re
from typing import Any, Final

from resumes.analyzer.jsonresume.entries import Entry
from resumes.analyzer.jsonresume.parts import Fields

# The first row of which a word is in the text counts, so "limited professional" is 3.
_LEVELS: Final = (
    (5, {"native", "bilingual", "c2"}),
    (4, {"fluent", "c1"}),
    (3, {"limited", "intermediate", "b1"}),
    (4, {"professional", "b2"}),
    (2, {"basic", "elementary", "a2"}),
    (1, {"beginner", "a1"}),
)
_WORDS: Final = {5: "Native", 4: "Fluent", 3: "Intermediate", 2: "Basic", 1: "Beginner"}


def find_level(fluency: str) -> int | None:
    """The level that the words mean; None when they are not known."""
    words = set(re.findall(r"[a-z0-9]+", fluency.lower()))
    return next((level for level, known in _LEVELS if words & known), None)


class Fluency:
    """The words as they are, and the level that they mean, if known.

    Written are the words, or such as mean the level when there are none.
    """

    fields = ("levelText", "level")
    names = ("fluency",)

    def read(self, entry: Entry, /) -> Fields:
        fluency = entry.find_text("fluency")
        if fluency is None:
            return {}
        fields: dict[str, Any] = {"levelText": fluency}
        if level := find_level(fluency):
            fields["level"] = level
        return fields

    def write(self, item: Fields, /) -> Fields:
        fluency = item.get("levelText") or _WORDS.get(item.get("level", 0))
        return {"fluency": fluency} if fluency else {}
