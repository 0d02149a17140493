"""Letting done files go after a while: the one place where a file of the watched folder is removed.

Only what was imported, only where we put it, only what bears a name that we give. What else lies
there stays, and so does its folder. Folders are entered by their descriptors and never through
links, so nothing outside of ROOT can be reached.
"""

import contextlib
import itertools
import os
import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from importer.filing import DONE
from importer.notices import Remark
from resumes.clock import timestamp
from resumes.file_names import EXTENSIONS, REPORT
from resumes.store.accounts import NAME

FILES_AT_ONCE = 1_000
"""How many may go in one call, so that the importer soon goes on."""

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ENDING = "|".join(map(re.escape, (*EXTENSIONS, REPORT)))
_OURS = re.compile(rf".+-(?:[0-9a-f]{{8}}|[0-9a-f]{{24}})(?:{_ENDING})", re.DOTALL)
"""A name that a file or its report is put away under: a claim's id, in part or whole, is last."""


def prune(
    root: Path, keep_days: int, now_us: int, at_most: int = FILES_AT_ONCE, *, remark: Remark
) -> int:
    """Done files of more than `keep_days` days ago are gone, `at_most` so many; how many went.

    Days are those of `_done`, in UTC; 0 keeps today's alone. What cannot be removed stays and is
    told once.
    """
    today = date.fromisoformat(timestamp(now_us)[:10])
    first_kept = (today - timedelta(days=keep_days)).isoformat()
    removed = 0
    try:
        with _opened(root / DONE) as done:
            for day in _days_before(first_kept, done):
                removed += _prune_day(done, day, at_most - removed, remark)
                if removed >= at_most:
                    break
    except FileNotFoundError:
        pass
    except OSError as error:
        _tell(remark, DONE, error)
    return removed


@contextlib.contextmanager
def _opened(path: str | Path, parent: int | None = None) -> Iterator[int]:
    """The descriptor of a folder. Raises OSError for anything else, a link to one too."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _days_before(first_kept: str, done: int) -> list[str]:
    """Names of folders of past days, the oldest first. As text they sort as days do."""
    return [name for name in _folders(done) if _is_day(name) and name < first_kept]


def _folders(folder: int) -> list[str]:
    """Names of the folders in it, sorted."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


def _is_day(name: str) -> bool:
    if not _DAY.fullmatch(name):
        return False
    with contextlib.suppress(ValueError):
        date.fromisoformat(name)
        return True
    return False


def _prune_day(done: int, day: str, at_most: int, remark: Remark) -> int:
    """How many files of the day went. Its folder goes with the last, unless others are in it."""
    removed = 0
    try:
        with _opened(day, done) as folder:
            for account in filter(NAME.fullmatch, _folders(folder)):
                place = f"{DONE}/{day}/{account}"
                removed += _prune_folder(folder, account, at_most - removed, place, remark)
            # Before accounts had folders of their own their files lay here.
            removed += _remove_ours(folder, at_most - removed, f"{DONE}/{day}", remark)
    except FileNotFoundError:
        pass
    except OSError as error:
        _tell(remark, f"{DONE}/{day}", error)
    with contextlib.suppress(OSError):
        os.rmdir(day, dir_fd=done)  # refuses a folder that is not empty
    return removed


def _prune_folder(parent: int, name: str, at_most: int, place: str, remark: Remark) -> int:
    """How many files of an account's folder went; it goes with the last, as the day's does."""
    removed = 0
    try:
        with _opened(name, parent) as folder:
            removed = _remove_ours(folder, at_most, place, remark)
    except FileNotFoundError:
        pass
    except OSError as error:
        _tell(remark, place, error)
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=parent)
    return removed


def _remove_ours(folder: int, at_most: int, place: str, remark: Remark) -> int:
    # Listed before any is removed: what a listing shows that is changed meanwhile is open.
    names = list(itertools.islice(_iter_ours(folder), at_most))
    return sum(_remove(folder, name, place, remark) for name in names)


def _iter_ours(folder: int) -> Iterator[str]:
    """Names of regular files that bear a name of ours."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if _OURS.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                yield entry.name


def _remove(folder: int, name: str, place: str, remark: Remark) -> bool:
    """Whether the file went; another importer may have been quicker."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    except OSError as error:
        _tell(remark, place, error)
        return False
    return True


def _tell(remark: Remark, place: str, error: OSError) -> None:
    remark(
        f"unpruned {place} {error.errno}",
        f"Cannot remove old done files in {place}: {error.strerror}. They stay and are tried "
        "again; let the user that runs the importer write there",
    )
