"""Files in an inbox that no importer ever takes, because of what they are or are called."""

import heapq
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from resumes import file_names

MOST_NAMES: Final = 20_000
EXAMPLES: Final = 3

UNDER_WAY_S: Final = 3_600
"""So long a file may keep the name that it has while it is written."""


class PassedOver(NamedTuple):
    """How many files of a folder are passed over. `folder` is its name, empty for the inbox itself.

    `examples` are the first by name, each with the reason.
    """

    folder: str
    files: int
    examples: list[tuple[str, str]]


def find_passed_over(
    inbox: Path,
    *,
    now_s: Callable[[], float] = time.time,
    most_names: int = MOST_NAMES,
    examples: int = EXAMPLES,
) -> list[PassedOver]:
    """The folders of the inbox that have such files, by name; what cannot be listed is left out.

    Hidden files are never meant to be taken, and are not among them. Not more than `most_names`
    are looked at, since it comes again and again while somebody watches.
    """
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for folder, name, entry in islice(_iter_entries(inbox, most_names), most_names):
        why = _find_reason(entry, is_of_nobody=not folder, now_s=now_s)
        if why is not None:
            counts[folder] += 1
            found[folder] = heapq.nsmallest(examples, [*found[folder], (name, why)])
    return [PassedOver(folder, counts[folder], found[folder]) for folder in sorted(found)]


def _iter_entries(inbox: Path, most_names: int) -> Iterator[tuple[str, str, os.DirEntry[str]]]:
    """The account's folder, the name below it, and the entry, of all that an importer looks at."""
    waiting = [("", "", str(inbox))]
    while waiting:
        folder, below, path = waiting.pop()
        for entry in _list(path, most_names):
            if not folder and file_names.is_outcome(entry.name):
                continue
            name = f"{below}{entry.name}"
            if not _is_plain_folder(entry):
                yield folder, name, entry
            elif folder:
                waiting.append((folder, f"{name}/", entry.path))
            else:
                waiting.append((entry.name, "", entry.path))


def _list(path: str, most_names: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return list(islice(entries, most_names))
    except OSError:
        return []


def _is_plain_folder(entry: os.DirEntry[str]) -> bool:
    return (
        entry.is_dir(follow_symlinks=False)
        and not file_names.is_passed_over(entry.name)
        and file_names.find_extension(entry.name) is None
    )


def _find_reason(
    entry: os.DirEntry[str], *, is_of_nobody: bool, now_s: Callable[[], float]
) -> str | None:
    """Why the entry is passed over; None when it is not, or is meant to be."""
    if file_names.is_hidden(entry.name):
        return None
    if entry.is_symlink():
        return "a link"
    if file_names.is_temporary(entry.name):
        return "a temporary name" if _age_s(entry, now_s) > UNDER_WAY_S else None
    if not entry.is_file(follow_symlinks=False):
        return "no file"
    if file_names.find_extension(entry.name) is None:
        return "its ending"
    return "in no account's folder" if is_of_nobody else None


def _age_s(entry: os.DirEntry[str], now_s: Callable[[], float]) -> float:
    try:
        return now_s() - entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0
