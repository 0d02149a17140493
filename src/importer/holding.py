"""Files that wait for a place in their account's quota.

    ROOT/_held/<account>/<claim id>-<account id>-<safe name>.json

The claim's id is the arrival number: it leads the name and is kept over every return, so files
are released in the order they came. The account's id says whose they are, whoever bears the
account's name now.
"""

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from importer import reports
from importer.claims import Claim
from importer.filing import HELD, report_path
from importer.names import escaped_before

RELEASE_FILES = 500
"""Files released in one round, so that the others are not kept waiting."""

_HELD_NAME = re.compile(r"([0-9a-f]{24})-([0-9a-f]{16})-(.+)\.json")


@dataclass(frozen=True, slots=True)
class Held:
    """A file that waits for a place."""

    path: Path
    claim_id: str
    account_id: str


def find_held(root: Path) -> dict[str, list[Held]]:
    """By account id, the files that wait, in the order of arrival."""
    by_account: dict[str, list[Held]] = {}
    for path in _paths(root / HELD):
        match = _HELD_NAME.fullmatch(path.name)
        if match is not None and not path.name.endswith(reports.SUFFIX):
            by_account.setdefault(match[2], []).append(Held(path, match[1], match[2]))
    for held in by_account.values():
        held.sort(key=lambda one: one.claim_id)
    return by_account


def _paths(folder: Path) -> list[Path]:
    paths: list[Path] = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for account in folder.iterdir():
            with contextlib.suppress(NotADirectoryError, FileNotFoundError):
                paths.extend(account.iterdir())
    return paths


def claim_of(held: Held, root: Path, folder: Path, *, now_us: int) -> Claim:
    """The claim that takes a held file up again, under the id that it had."""
    report_file = report_path(held.path)
    report = reports.find_report(report_file) or {}
    return Claim(
        id=held.claim_id,
        folder=folder,
        account=escaped_before(held.path.parent.name),
        name=escaped_before(str(report.get("file") or held.path.name)),
        claimed_at_us=now_us,
        reports=(str(report_file.relative_to(root)),),
    )


def split(held: list[Held], free_places: int | None) -> tuple[list[Held], list[Held]]:
    """Those whose turn it is, as many as there are free places, and those who wait on.

    At most 500 at a time; None free places are no further limit.
    """
    count = RELEASE_FILES if free_places is None else min(free_places, RELEASE_FILES)
    return held[:count], held[count:]
