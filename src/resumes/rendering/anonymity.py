"""Anonymous resumes: what is left out, and the name, which is replaced everywhere."""

import re
from collections.abc import Mapping
from typing import Final
from unicodedata import normalize

_LEFT_OUT: Final = frozenset({"findMeOnline", "references"})
MIN_WORD_CHARS: Final = 3
"""Words of the name that are shorter are too common to be replaced on their own."""

MAX_NAME_CHARS: Final = 200
"""How much of a name is looked for."""

_UNSPACED: Final = (
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7af\uf900-\ufaff]"
)
"""What has no blanks between words, and says more with each character."""

_UNSPACED_PART: Final = re.compile(rf"(?:{_UNSPACED}){{2,}}")
_MARKS: Final = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    r"\u064b-\u065f\u0670\u06d6-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u07fd\u0816-\u082d"
    r"\u0859-\u085b\u0897-\u089f\u08ca-\u0963\u0966-\u0dff"
)
"""Vowel signs, accents and the like, which are parts of words but no letters to `re`; and what is
among them, as most of the scripts of India."""

_WORD: Final = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")


def alias_of(resume_id: str) -> str:
    """Return the replacement for a name: `Candidate 7E2`."""
    return f"Candidate {resume_id[-3:].upper()}"


class Anonymizer:
    """Replaces the name and the contacts of a header, as a page shows them."""

    def __init__(self, header: Mapping[str, str], resume_id: str) -> None:
        self.alias = alias_of(resume_id)
        name = normalize("NFC", header.get("name") or "").replace("\u00ad", "")[:MAX_NAME_CHARS]
        contacts = [
            re.sub(r"^https?://(www\.)?|/$", "", normalize("NFC", header.get(field) or "").strip())
            for field in ("email", "phone", "website")
        ]
        whole = r"\s*".join(map(re.escape, name.split()))
        known = [
            *(_apart(re.escape(one), one) for one in contacts if len(one) >= MIN_WORD_CHARS),
            _apart(whole, name.strip()) if whole else "",
            *map(re.escape, _UNSPACED_PART.findall(name)),
        ]
        self._known = re.compile("|".join(filter(None, known)) or r"(?!)", re.IGNORECASE)
        words = _WORD.findall(name)
        self._words = {word.casefold() for word in words if len(word) >= MIN_WORD_CHARS}
        alias = re.escape(self.alias)
        self._repeated = re.compile(rf"{alias}(?:\s+{alias})+")

    def leaves_out(self, section_type: str) -> bool:
        """Return whether sections of the type identify somebody on their own."""
        return section_type in _LEFT_OUT

    def replace(self, text: str) -> str:
        """Return the text with the alias for the name, each longer word of it, and the contacts."""
        text = normalize("NFC", text).replace("\u00ad", "")
        # Word by word in a set: a name of many words would take a pattern too long to try.
        replaced = _WORD.sub(
            lambda found: self.alias if found[0].casefold() in self._words else found[0],
            self._known.sub(self.alias, text),
        )
        return self._repeated.sub(self.alias, replaced)


def _apart(pattern: str, text: str) -> str:
    """Return the pattern of a text where it is not part of another word."""
    before = "" if re.match(_UNSPACED, text) else rf"(?<![^\W_])(?<![{_MARKS}])"
    after = "" if re.match(_UNSPACED, text[-1:]) else rf"(?![^\W_]|[{_MARKS}])"
    return f"{before}{pattern}{after}"
