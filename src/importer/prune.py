"""Remove old done files: the only code that deletes a file of the watched folder.

It removes only imported files, in the folders and under the names that the importer gives them. Other
files stay, and so do their folders. Folders are opened by descriptor and never through links, so
nothing outside of ROOT can be reached.
"""

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from types import MappingProxyType

from importer.notices import Remark
from resumes.clock import timestamp
from resumes.store.accounts import NAME
from resumes.watched_folder import DONE, FOLDER_FLAGS, opened
from resumes.watched_names import DOCUMENTS, EXTENSIONS, REPORT

_ENDING = "|".join(map(re.escape, (*EXTENSIONS, *DOCUMENTS, REPORT)))
_OURS = re.compile(rf".+-(?:[0-9a-f]{{8}}|[0-9a-f]{{24}})(?:{_ENDING})", re.DOTALL)
"""The names of filed files and their reports: they end with a claim's id, in part or whole."""


def prune(
    root: Path,
    keep_days: int | None,
    now_us: int,
    at_most: int = 1_000,
    *,
    remark: Remark,
    by_folder: Mapping[str, int] = MappingProxyType({}),
) -> int:
    """Remove done files of more than `keep_days` days ago; return how many were removed.

    None keeps all. `by_folder` has fewer days for the folders of some accounts. Days are those of
    `_done`, in UTC; 0 keeps only today's. `at_most` bounds a call, so that the importer continues
    after a short time. A file that cannot be removed stays, and is reported.
    """
    today = date.fromisoformat(timestamp(now_us)[:10])
    limits = [days for days in (keep_days, *by_folder.values()) if days is not None]
    removed = 0

    def is_old(age_days: int, account: str) -> bool:
        kept = [days for days in (keep_days, by_folder.get(account)) if days is not None]
        return bool(kept) and age_days > min(kept)

    with _remarking(DONE, remark), opened(root / DONE, FOLDER_FLAGS) as done:
        for name in _list_folders(done):
            if (day := _find_day(name)) is None:
                continue
            age_days = (today - day).days
            if removed >= at_most or age_days <= min(limits, default=age_days):
                break
            old = partial(is_old, age_days)
            removed += _prune_folder(name, done, f"{DONE}/{name}", at_most - removed, remark, old)
    return removed


def _prune_folder(
    name: str,
    parent: int,
    place: str,
    at_most: int,
    remark: Remark,
    is_old: Callable[[str], bool] | None = None,
) -> int:
    """Remove our files from a day's folder, or an account's folder in it; then the folder, if empty. For a
    day, `is_old` says which accounts' files to remove; "" stands for files of no account's folder."""
    removed = 0
    with _remarking(place, remark), opened(name, FOLDER_FLAGS, dir_fd=parent) as folder:
        for account in filter(NAME.fullmatch, _list_folders(folder) if is_old else ()):
            if is_old is not None and is_old(account):
                removed += _prune_folder(
                    account, folder, f"{place}/{account}", at_most - removed, remark
                )
        # Early versions filed directly in a day's folder. All entries are listed before any is removed,
        # since what scandir yields for a folder that changes is undefined.
        with os.scandir(folder) as entries:
            ours = (
                entry.name
                for entry in entries
                if (is_old is None or is_old(""))
                and _OURS.fullmatch(entry.name)
                and entry.is_file(follow_symlinks=False)
            )
            names = list(itertools.islice(ours, at_most - removed))
        for file_name in names:
            with _remarking(place, remark):
                os.unlink(file_name, dir_fd=folder)
                removed += 1
    with contextlib.suppress(OSError):  # not empty
        os.rmdir(name, dir_fd=parent)
    return removed


def _list_folders(folder: int) -> list[str]:
    """Return the names of the folders in it, sorted, so that days are in order."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


def _find_day(name: str) -> date | None:
    with contextlib.suppress(ValueError):
        day = date.fromisoformat(name)
        return day if day.isoformat() == name else None
    return None


@contextlib.contextmanager
def _remarking(place: str, remark: Remark) -> Iterator[None]:
    """Report an OSError instead of raising it; ignore files that another process removed."""
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
