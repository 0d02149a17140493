"""What `import` and `validate` are given: files, folders, `-` for standard input."""

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from resumes.errors import TooLarge

STANDARD_INPUT = "-"
SUFFIX = ".json"
"""What files in a folder end in; files that are named themselves may end in anything."""

UNREADABLE = "unreadable"
"""The reason for a file that cannot be read, as the importer gives it."""

PATH = click.Path(exists=True, allow_dash=True, path_type=str)


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, or standard input."""

    path: str

    @property
    def name(self) -> str:
        """What to call it."""
        return "standard input" if self.path == STANDARD_INPUT else self.path

    def read(self, *, max_bytes: int) -> bytes:
        """Its bytes. Raises TooLarge over the limit, having read no more, and InvalidArgument."""
        from importer import reading

        if self.path != STANDARD_INPUT:
            return reading.read(self.path, max_bytes)
        content = sys.stdin.buffer.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise TooLarge(limit_bytes=max_bytes)
        return content


def iter_sources(paths: Iterable[str]) -> Iterator[Source]:
    """The files behind the paths, in the order given; of folders the `.json` files, by name.

    In folders hidden names, symbolic links and the importer's own `_…` folders are left out.
    """
    for path in paths:
        if path != STANDARD_INPUT and Path(path).is_dir():
            yield from _iter_folder(path)
        else:
            yield Source(path)


def _iter_folder(folder: str) -> Iterator[Source]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith("_"):
                yield from _iter_folder(entry.path)
        elif entry.is_file(follow_symlinks=False) and entry.name.lower().endswith(SUFFIX):
            yield Source(entry.path)
