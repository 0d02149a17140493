"""Folders that `import` and `validate` are given: the files in them, and what is passed over."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cli.failures import Failed
from cli.sources import STANDARD_INPUT, Source

if TYPE_CHECKING:
    from importer.dry_run import Why

MOST_NAMED = 3


@dataclass(slots=True)
class Found:
    """What the paths lead to: files in the order given, and how many others lie in the folders."""

    paths: Sequence[str]
    sources: list[Source] = field(default_factory=list)
    ignored: "Counter[Why]" = field(default_factory=Counter)

    def check(self) -> None:
        """Raises Failed when there is no file at all."""
        if not self.sources:
            named = ", ".join(self.paths[:MOST_NAMED])
            more = f" and {len(self.paths) - MOST_NAMED} more" if self.paths[MOST_NAMED:] else ""
            raise Failed(f"Nothing to read in {named}{more}. {describe(self.ignored)}".rstrip())


def find_sources(paths: Sequence[str]) -> Found:
    """The files behind the paths, in the order given; of folders those to be imported, by name.

    In folders hidden names, symbolic links and the importer's own `_…` folders are left out. Files
    that are named themselves may be called anything.
    """
    found = Found(paths)
    for path in paths:
        if path != STANDARD_INPUT and Path(path).is_dir():
            _look_into(path, found)
        else:
            found.sources.append(Source(path))
    return found


def _look_into(folder: str, found: Found) -> None:
    from importer.dry_run import find_why

    for entry in _iter_by_name(folder):
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith(("_", ".")):
                _look_into(entry.path, found)
        elif (why := find_why(entry.path)) is not None:
            found.ignored[why] += 1
        else:
            found.sources.append(Source(entry.path))


def _iter_by_name(folder: str) -> Iterator["os.DirEntry[str]"]:
    with os.scandir(folder) as entries:
        yield from sorted(entries, key=lambda entry: entry.name)


def describe(ignored: "Counter[Why]") -> str:
    """`3 files were passed over: 2 end in none of .json, …; 1 is a link.`; empty for none."""
    if not ignored:
        return ""
    were = "file was" if ignored.total() == 1 else "files were"
    parts = "; ".join(_part(why, count) for why, count in sorted(ignored.items()))
    return f"{ignored.total():,} {were} passed over: {parts}."


def _part(why: "Why", count: int) -> str:
    from importer.dry_run import ENDINGS, Why

    one, several = {
        Why.ENDING: (f"ends in none of {ENDINGS}", f"end in none of {ENDINGS}"),
        Why.HIDDEN: ("has a hidden or temporary name", "have hidden or temporary names"),
        Why.LINK: ("is a link", "are links"),
        Why.NO_FILE: ("is no regular file", "are no regular files"),
        Why.REPORT: ("is a report of the importer", "are reports of the importer"),
    }[why]
    return f"{count:,} {one if count == 1 else several}"
