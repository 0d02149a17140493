"""Files that wait for a place in their account's quota.

    ROOT/_held/<account>/<claim id>-<account id>-<safe name>.json

The claim's id is the arrival number: it leads the name and is kept over every return, so files
are released in the order they came. The account's id says whose they are, whoever bears the
account's name now.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from importer import contents, reading, reports
from importer.batch import Candidate
from importer.claims import Claim
from importer.filing import report_path
from importer.names import escaped_before, find_extension
from resumes.file_names import REPORT
from resumes.watched_folder import HELD, HELD_NAME

RELEASE_FILES = 500
"""Files released at a time, so that the others are not kept waiting."""

FRESH_NS = 2_000_000_000
"""A folder that changed so short a time before it was listed may have changed once more within
the same tick of the file system's clock."""


class Held(NamedTuple):
    """A file that waits for a place."""

    claim_id: str
    account_id: str
    path: str


class _Listing(NamedTuple):
    mtime_ns: int
    is_fresh: bool
    files: list[Held]


class HeldFiles:
    """The files that wait below one ROOT, listed again when their folders change."""

    def __init__(self, root: Path, *, time_ns: Callable[[], int] = time.time_ns) -> None:
        self._folder = root / HELD
        self._time_ns = time_ns
        self._listings: dict[str, _Listing] = {}

    def find(self) -> dict[str, list[Held]]:
        """By account id, the files that wait, in the order of arrival."""
        names = _folders(self._folder)
        self._listings = {name: self._refresh(name) for name in names}
        by_account: dict[str, list[Held]] = {}
        for listing in self._listings.values():
            for held in listing.files:
                by_account.setdefault(held.account_id, []).append(held)
        if len(self._listings) > 1:  # an account renamed its folder, or somebody moved files
            for files in by_account.values():
                files.sort()
        return by_account

    def _refresh(self, name: str) -> _Listing:
        path = f"{self._folder}/{name}"
        known = self._listings.get(name)
        try:
            mtime_ns = os.stat(path).st_mtime_ns  # noqa: PTH116  (text, as names are)
        except OSError:
            return _Listing(0, False, [])
        if known is not None and known.mtime_ns == mtime_ns and not known.is_fresh:
            return known
        is_fresh = abs(self._time_ns() - mtime_ns) < FRESH_NS
        return _Listing(mtime_ns, is_fresh, _list(path))


def _folders(folder: Path) -> list[str]:
    # A folder that cannot be listed for now keeps its files, and nobody else waits for it.
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    return []


def _list(path: str) -> list[Held]:
    files = []
    with contextlib.suppress(OSError):
        for name in os.listdir(path):  # noqa: PTH208  (names are all that is asked for)
            match = HELD_NAME.fullmatch(name)
            is_file = match is not None and find_extension(name) is not None
            if match and is_file and not name.endswith(REPORT):
                files.append(Held(match[1], match[2], f"{path}/{name}"))
    return sorted(files)


def as_return(held: Held, root: Path, *, now_us: int) -> Candidate:
    """What takes a held file up again, under the id that it had."""
    return returned(Path(held.path), held.claim_id, held.account_id, root, now_us=now_us)


def returned(path: Path, claim_id: str, account_id: str, root: Path, *, now_us: int) -> Candidate:
    """What takes up a file again that was put away, under the id that it had; by whom is open."""
    report_file = report_path(path)
    report = reports.find_report(report_file) or {}
    place = str(report_file.relative_to(root))
    claim = Claim(
        id=claim_id,
        account_id=account_id,
        account=escaped_before(str(report.get("account") or path.parent.name)),
        name=escaped_before(str(report.get("file") or path.name)),
        source=str(path.relative_to(root)),
        claimed_at_us=now_us,
        reports=(place,) if is_text(place) else (),
        is_return=True,
    )
    return Candidate(claim)


def is_as_reported(path: Path, claim_id: str) -> bool:
    """Whether the file is what the report beside it speaks of, byte for byte."""
    report = reports.find_report(report_path(path))
    if report is None or report.get("claim_id") != claim_id:
        return False
    return report.get("sha256") in (None, reading.find_sha256(path))


def is_text(name: str) -> bool:
    """Whether the name is UTF-8, so that a note can name it."""
    return all(not 0xD800 <= ord(char) <= 0xDFFF for char in name)


def split(held: list[Held], free_places: int | None) -> tuple[list[Held], list[Held]]:
    """Those whose turn it is, as many as there are free places, and those who wait on.

    At most 500 at a time; None free places are no further limit. A file of several resumes goes
    alone: it takes places slice by slice, and none that came later may be quicker.
    """
    count = RELEASE_FILES if free_places is None else min(free_places, RELEASE_FILES)
    first_bundle = next(
        (place for place, one in enumerate(held[:count]) if _is_of_several(one)), count
    )
    count = min(count, max(1, first_bundle))
    return held[:count], held[count:]


def _is_of_several(held: Held) -> bool:
    """Whether the file may hold several resumes, by its name or by how it begins."""
    return not held.path.endswith(".json") or contents.is_several(reading.find_head(held.path))


def without(held: list[Held], claim_ids: Iterable[str]) -> list[Held]:
    """Those that are not under way already."""
    under_way = set(claim_ids)
    return [one for one in held if one.claim_id not in under_way] if under_way else held
