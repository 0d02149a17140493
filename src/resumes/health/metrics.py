"""How much there is of everything: the figures above the findings."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from resumes.health.fonts import read_names
from resumes.health.import_checks import count_by_outcome, oldest_request_age_s
from resumes.store import accounts, import_ledger, importers
from resumes.store.accounts import ResumeCounter
from resumes.store.import_ledger import FileCount, FileOutcome
from resumes.store.store import Size, Store

T = TypeVar("T")

KEEP_TIMES = 50
"""So many times as long as asking took, an answer counts: at most one part in 50 goes into asking."""


class Kept(Generic[T]):
    """The answer to one question of a store. Threads may share it; at worst two of them ask."""

    def __init__(self, ask: Callable[[Store], T], monotonic: Callable[[], float]) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._last: tuple[T, float] | None = None
        """The answer, and until when it counts."""

    def get(self, store: Store) -> T:
        """The answer, not older than `KEEP_TIMES` says. Raises what asking raises."""
        last = self._last
        begin = self._monotonic()
        if last is not None and begin < last[1]:
            return last[0]
        answer = self._ask(store)
        end = self._monotonic()
        self._last = (answer, end + KEEP_TIMES * (end - begin))
        return answer

    def forget(self) -> None:
        """The next answer is a new one."""
        self._last = None


class SlowAnswers:
    """What takes time in proportion to what the store holds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.wrong_counters: Kept[Sequence[ResumeCounter]] = Kept(accounts.list_wrong, monotonic)
        self.file_tallies: Kept[Sequence[FileCount]] = Kept(import_ledger.count_files, monotonic)
        self.names: Kept[Sequence[str]] = Kept(read_names, monotonic)

    def forget(self) -> None:
        """Everything is asked again when it is wanted next."""
        self.wrong_counters.forget()
        self.file_tallies.forget()
        self.names.forget()


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
        size=store.measure(),
        free_bytes=None if store.path is None else _free_bytes(store.path.parent),
        accounts=len(known),
        resumes=sum(account.resume_count for account in known),
        files=count_by_outcome(slow.file_tallies.get(store)),
        live_importers=sum(one.is_live for one in seen),
        waiting_files=importers.count_waiting(seen),
        oldest_request_s=oldest_request_age_s(store),
    )


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
