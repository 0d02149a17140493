"""An import job: what the parts of one process that imports share, and what they pass on about a file."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from importer.claims import Claim
from importer.files import Folders, Known, Signature
from importer.notices import FileReport, Notices
from importer.options import Options
from importer.outcomes import Result
from importer.slots import Slot
from resumes.analyzer import Resume
from resumes.store import Store
from resumes.store.import_ledger import Analysis


class Step(StrEnum):
    """A step that was just taken, which changed a disk or the store. A process may be killed at any of them."""

    NOTED = "noted"
    READ = "read"
    COMMITTED = "committed"
    REPORT_WRITTEN = "report_written"
    SET_ASIDE = "set_aside"
    COPIED = "copied"
    """SET_ASIDE and COPIED concern a file that goes to another disk."""
    MOVED = "moved"
    MOVED_BACK = "moved_back"
    REPORTS_TIDIED = "reports_tidied"
    ENDED = "ended"
    """All files of a batch are finished."""
    RECOVERED = "recovered"


Observer = Callable[[Step], None]


def unobserved(step: Step) -> None:
    """Do nothing: the observer of the product; those of tests act at a step, or end the process."""


class Candidate(NamedTuple):
    """A file to import. `is_alone`: it may have killed a process, so it is read by itself."""

    claim: Claim
    known: Known | None = None
    is_alone: bool = False


class ReadFile(NamedTuple):
    """A file that was read. `verdict` is None for a bundle, and for a document that is not analyzed yet."""

    claim: Claim
    signature: Signature
    verdict: Resume | Result | None = None
    digest: bytes | None = None
    descriptor: int | None = None
    """The open file; None if it could not be opened, and for a bundle."""
    is_open: bool = False
    """Whether it is checked although another process has it open for writing."""
    head: bytes = b""
    """Its first 64 KiB, for the ledger (pitfalls I22); of a bundle, once it is unpacked. Of a document, all
    that the analyzer wrote."""
    analysis: Analysis | None = None
    """How the analyzer read it; None for JSON."""

    def close(self) -> None:
        if self.descriptor is not None:
            with contextlib.suppress(OSError):  # on a detached disk; it is closed nevertheless
                os.close(self.descriptor)


class Cause(StrEnum):
    """Why a file is no longer under way."""

    FILED = "filed"
    """It was imported and moved, or is gone since."""
    CHANGED = "changed"
    """It was imported, and its new content is in the inbox as a new file."""
    GONE = "gone"
    SETTLING = "settling"
    OPEN = "open"
    """Another process has it open for writing."""
    REPORT = "report"
    STUCK = "stuck"
    """The error concerns this file or its folder."""
    TROUBLE = "trouble"
    """The error concerns every file."""


class Departure(NamedTuple):
    """A file that is no longer under way. `error` is the system's; `signature` that of an unread file."""

    claim: Claim
    cause: Cause
    signature: Signature | None = None
    error: OSError | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do about it: else it is tried again."""
        return self.cause in (Cause.FILED, Cause.CHANGED, Cause.GONE)


@dataclass(slots=True)
class Job:
    """The import of files from one ROOT into one store, by the process that holds the slot."""

    store: Store
    root: str
    options: Options
    slot: Slot
    on_filed: Callable[[FileReport], None]
    notices: Notices
    observe: Observer = unobserved
    monotonic: Callable[[], float] = time.monotonic
    folders: Folders = field(init=False)
    """The folders that are open."""
    departures: list[Departure] = field(default_factory=list)
    """The files that departed since the last `take_departures`."""

    def __post_init__(self) -> None:
        self.folders = Folders(self.root)

    def depart(self, departures: Iterable[Departure]) -> bool:
        """Have these files leave the slot's note; return whether no file at all is under way."""
        departed = [*departures]
        self.departures += departed
        return bool(departed) and self.slot.end(departure.claim.id for departure in departed)

    def take_departures(self) -> list[Departure]:
        departed, self.departures = self.departures, []
        return departed
