"""A resume without who it is: what is left out, and the name replaced wherever it stands."""

import re
from typing import Final

_LEFT_OUT: Final = frozenset({"findMeOnline", "references"})
LONG_CHARS: Final = 3
"""Words of the name that are shorter are too common to be replaced by themselves."""


def alias_of(resume_id: str) -> str:
    """Return what somebody is called who is not named: `Candidate 7E2`."""
    return f"Candidate {resume_id[-3:].upper()}"


class Hidden:
    """Hides the person of this name, who is called after the end of the resume's id instead."""

    def __init__(self, name: str | None, resume_id: str) -> None:
        self.alias = alias_of(resume_id)
        words = (name or "").split()
        known = [
            r"\s+".join(map(re.escape, words)),
            *(re.escape(one) for one in words if len(one) >= LONG_CHARS),
        ]
        found = [one for one in known if one]
        self._known = (
            re.compile(rf"(?<!\w)(?:{'|'.join(found)})(?!\w)", re.IGNORECASE) if found else None
        )

    def leaves_out(self, section_type: str) -> bool:
        """Return whether sections of the type say by themselves who somebody is."""
        return section_type in _LEFT_OUT

    def replace(self, text: str) -> str:
        """Return the text with the alias for the name and for each longer word of it."""
        if self._known is None:
            return text
        replaced = self._known.sub(self.alias, text)
        return re.sub(
            rf"{re.escape(self.alias)}(?:\s+{re.escape(self.alias)})+", self.alias, replaced
        )
