"""What lies in a folder and is never imported, and why."""

import os
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from importer.names import EXTENSIONS, find_extension
from importer.scanning import is_passed_over

ENDINGS = ", ".join(ending for ending in EXTENSIONS if ending.count(".") == 1)
"""`.json, .ndjson, …`: what names end in, those of compressed files as `.gz`."""


class Why(StrEnum):
    """Why a file is left where it is."""

    ENDING = "ending"
    HIDDEN = "hidden"
    LINK = "link"
    NO_FILE = "no_file"
    REPORT = "report"

    @property
    def sentence(self) -> str:
        """The reason in words, of one file."""
        return _SENTENCES[self]


_SENTENCES = {
    Why.ENDING: f"Its name ends in none of {ENDINGS}",
    Why.HIDDEN: "Its name is a hidden or temporary one",
    Why.LINK: "It is a link",
    Why.NO_FILE: "It is no regular file",
    Why.REPORT: "It is a report of the importer",
}


class Ignored(NamedTuple):
    """A file that is left where it is. `name` is its path below ROOT, escaped."""

    name: str
    why: Why


def find_why(path: str) -> Why | None:
    """Why what lies there is never imported, by its name and kind; None for a file that is."""
    name = os.path.basename(path)  # noqa: PTH119  (text, as names are)
    if is_passed_over(name):
        return Why.HIDDEN
    if find_extension(name) is None:
        return Why.ENDING
    if Path(path).is_symlink():
        return Why.LINK
    return None if Path(path).is_file() else Why.NO_FILE
