"""Jobs: the state that the parts of an importing process share."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from importer.claims import Claim, File
from importer.files import Folders
from importer.notices import FileReport, Notices
from importer.options import Options
from importer.slots import Slot
from resumes.store import Store


class Step(StrEnum):
    """A completed step that changed a disk or the store. A process may be killed at any step."""

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
    """Do nothing. Tests use observers that act at a step or kill the process."""


RETRY_INTERVAL_S = 5.0
"""The pause before a file that cannot be read or moved, or an unreachable account, is retried."""


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
    """The folders that are currently open."""
    departures: list[File] = field(default_factory=list)
    """The files that have left the pipeline and that the loop has not processed yet."""
    paused_until: dict[str, float] = field(default_factory=dict)
    """By account ID, the time at which an unreachable account is tried again."""

    def __post_init__(self) -> None:
        self.folders = Folders(self.root)

    def depart(self, files: Iterable[File]) -> bool:
        """Remove these files from the slot's note. Return whether no other file is under way."""
        departed = [*files]
        for file in departed:
            file.close()
            file.result = None
        self.departures += departed
        return bool(departed) and self.slot.end(file.claim.id for file in departed)

    def pause(self, claim: Claim) -> None:
        """Pause all files of the claim's account, because its shard does not respond."""
        self.paused_until[claim.account_id] = self.monotonic() + RETRY_INTERVAL_S
        self.tell_unreachable(claim)

    def tell_unreachable(self, claim: Claim) -> None:
        """Report once that the files of the claim's account have to wait."""
        text = f"The store does not answer for the account {claim.account}; its files have to wait"
        self.notices(f"unreachable {claim.account_id}", text)
