"""How much there is of everything: the figures above the findings."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from resumes.health.files import count_files, oldest_request_age_s
from resumes.health.slow import SlowAnswers
from resumes.store import accounts, importers
from resumes.store.database import Size
from resumes.store.engine import Store
from resumes.store.ledger import FileOutcome


@dataclass(frozen=True, slots=True)
class Gauges:
    """What an installation holds. `files` has every outcome.

    `free_bytes` is the room on the store's disk; None where that cannot be looked at, as on a
    database server.
    `live_importers` were heard of within the last minute; `waiting_files` is how many files wait
    in their inboxes. `oldest_request_s` is how long something asked of an importer waits at
    most; None when nothing was asked.
    """

    size: Size
    free_bytes: int | None
    accounts: int
    resumes: int
    files: Mapping[FileOutcome, int]
    live_importers: int
    waiting_files: int
    oldest_request_s: float | None


def read_gauges(store: Store, slow: SlowAnswers) -> Gauges:
    """The figures now; those of files as old as `slow` keeps them. Raises StoreError."""
    known = accounts.list_accounts(store)
    seen = importers.list_importers(store)
    return Gauges(
        size=store.database.measure(),
        free_bytes=None if store.path is None else _free_bytes(store.path.parent),
        accounts=len(known),
        resumes=sum(account.resume_count for account in known),
        files=count_files(slow.file_tallies.get(store)),
        live_importers=sum(one.is_live for one in seen),
        waiting_files=importers.count_waiting(seen),
        oldest_request_s=oldest_request_age_s(store),
    )


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
