"""A resume without who it is: what is left out, and the name replaced wherever it stands."""

import re
from collections.abc import Mapping
from typing import Final
from unicodedata import normalize

_LEFT_OUT: Final = frozenset({"findMeOnline", "references"})
LONG_CHARS: Final = 3
"""Words of the name that are shorter are too common to be replaced by themselves."""

_EASTERN: Final = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]"
"""What has no blanks between words, and says more with each character."""

_WITHIN: Final = re.compile(rf"(?:{_EASTERN}){{2,}}|\w{{{LONG_CHARS},}}")


def alias_of(resume_id: str) -> str:
    """Return what somebody is called who is not named: `Candidate 7E2`."""
    return f"Candidate {resume_id[-3:].upper()}"


class Hidden:
    """Hides the person of this header, who is called after the end of the resume's id instead."""

    def __init__(self, header: Mapping[str, str], resume_id: str) -> None:
        self.alias = alias_of(resume_id)
        name = normalize("NFC", header.get("name") or "")
        words = name.split()
        contacts = [
            re.sub(r"^https?://(www\.)?|/$", "", normalize("NFC", header.get(field) or "").strip())
            for field in ("email", "phone", "website")
        ]
        known = [
            *(_spoken(each) for each in contacts if len(each) >= LONG_CHARS),
            r"\s*".join(_spoken(word) for word in words) if len(name) > 1 else "",
            *(_spoken(word) for word in words if len(word) >= LONG_CHARS),
            *(_spoken(part) for part in _WITHIN.findall(name)),
        ]
        found = "|".join(each for each in known if each)
        self._known = re.compile(found, re.IGNORECASE) if found else None

    def leaves_out(self, section_type: str) -> bool:
        """Return whether sections of the type say by themselves who somebody is."""
        return section_type in _LEFT_OUT

    def replace(self, text: str) -> str:
        """Return the text with the alias for the name, each longer word of it, and the contacts."""
        if self._known is None:
            return text
        replaced = self._known.sub(self.alias, normalize("NFC", text))
        return re.sub(
            rf"{re.escape(self.alias)}(?:\s+{re.escape(self.alias)})+", self.alias, replaced
        )


def _spoken(text: str) -> str:
    """Return an expression for the text where it is no part of another word."""
    before = "" if re.match(_EASTERN, text) else r"(?<!\w)"
    after = "" if re.match(_EASTERN, text[-1:]) else r"(?!\w)"
    return f"{before}{re.escape(text)}{after}"
