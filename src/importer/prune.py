"""Remove old done files. Only this module deletes files in a watched folder because of their age.

Only imported files are removed, from the folders and under the names that the importer gives them.
Other files and their folders stay. Folders are opened by descriptor and never through links, so
nothing outside ROOT can be reached.
"""

import contextlib
import itertools
import math
import os
import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType

from importer.notices import Remark
from resumes.clock import timestamp
from resumes.store.accounts import NAME
from resumes.watched_folder import DONE, FOLDER_FLAGS, opened
from resumes.watched_names import DOCUMENTS, EXTENSIONS, REPORT

_ENDING = "|".join(map(re.escape, (*EXTENSIONS, *DOCUMENTS, REPORT)))
_OURS = re.compile(rf".+-(?:[0-9a-f]{{8}}|[0-9a-f]{{24}})(?:{_ENDING})", re.DOTALL)
"""The names of filed files and their reports, which end with all or part of a claim's ID."""


def prune(
    root: Path,
    keep_days: int | None,
    now_us: int,
    at_most: int = 1_000,
    *,
    remark: Remark,
    by_folder: Mapping[str, int] = MappingProxyType({}),
) -> int:
    """Remove done files that are more than `keep_days` days old. Return how many were removed.

    None keeps all files. `by_folder` contains shorter periods for the folders of some accounts.
    Days are the dates in `_done`, in UTC; 0 keeps only today's files. `at_most` limits a call, so
    that the importer can soon continue. A file that cannot be removed stays, and is reported.
    """
    today = date.fromisoformat(timestamp(now_us)[:10])
    most = math.inf if keep_days is None else keep_days
    removed = 0
    with _remarking(DONE, remark), opened(root / DONE, FOLDER_FLAGS) as done:
        for name in _list_folders(done):
            if (day := _find_day(name)) is None:
                continue
            age_days, place = (today - day).days, f"{DONE}/{name}"
            if removed >= at_most or age_days <= min([most, *by_folder.values()]):
                break
            with _remarking(place, remark), opened(name, FOLDER_FLAGS, dir_fd=done) as folder:
                for account in filter(NAME.fullmatch, _list_folders(folder)):
                    if age_days > min(most, by_folder.get(account, math.inf)):
                        left = at_most - removed
                        removed += _prune_folder(
                            account, folder, f"{place}/{account}", left, remark
                        )
            # Early versions filed files directly in a day's folder.
            left = at_most - removed if age_days > most else 0
            removed += _prune_folder(name, done, place, left, remark)
    return removed


def _prune_folder(name: str, parent: int, place: str, at_most: int, remark: Remark) -> int:
    """Remove the importer's files, and then the folder if it is empty. Return their number."""
    removed = 0
    with _remarking(place, remark), opened(name, FOLDER_FLAGS, dir_fd=parent) as folder:
        # List all entries first: scandir's behavior is undefined if the folder changes.
        with os.scandir(folder) as entries:
            ours = (
                entry.name
                for entry in entries
                if _OURS.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
            )
            names = list(itertools.islice(ours, at_most))
        for file_name in names:
            with _remarking(place, remark):
                os.unlink(file_name, dir_fd=folder)
                removed += 1
    with contextlib.suppress(OSError):  # not empty
        os.rmdir(name, dir_fd=parent)
    return removed


def _list_folders(folder: int) -> list[str]:
    """Return the names of the folders in it, sorted, so that dates are in order."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


def _find_day(name: str) -> date | None:
    with contextlib.suppress(ValueError):
        day = date.fromisoformat(name)
        return day if day.isoformat() == name else None
    return None


@contextlib.contextmanager
def _remarking(place: str, remark: Remark) -> Iterator[None]:
    """Report an OSError instead of raising it, and ignore files that another process removed."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        remark(
            f"unpruned {place} {error.errno}",
            f"Cannot delete old files in {place}: {error.strerror}. They stay there, and "
            "deleting them will be retried; give the user that runs the importer write access",
        )
