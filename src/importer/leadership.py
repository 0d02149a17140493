"""Leadership: if a folder has several importers, one works, and the others stand by until its slot is free."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from importer.job import Job
from importer.notices import Notices
from resumes import watched_folder
from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.store.importers import ImporterState
from resumes.watched_folder import shown_root

STAND_BY_INTERVAL_S = 0.5
"""How often an importer that stands by asks for the folder."""


class Leadership:
    """Whether this importer works in the folder: whether it holds slot 0."""

    def __init__(self, job: Job, notices: Notices, *, let_go: Callable[[], None]) -> None:
        """`let_go` forgets all work in progress; it is called when the folder is lost."""
        self._job = job
        self._root = Path(job.root)
        self._notices = notices
        self._let_go = let_go
        self.due = job.monotonic()
        """When to try to take the slot again."""
        self.stands_by = False
        """Whether another importer works in the folder."""
        self._has_led = False

    @property
    def is_held(self) -> bool:
        """Whether the slot is held; false too if that cannot be checked."""
        with contextlib.suppress(OSError):
            return self._job.slot.is_held
        return False

    def take(self) -> bool:
        """Return whether this importer holds the folder's slot; try to take it when that is due."""
        if self._job.slot.is_held:
            return True
        if self._job.monotonic() < self.due:
            return False
        self.due = self._job.monotonic() + STAND_BY_INTERVAL_S
        if self._has_led:  # the whole folder was emptied or replaced
            self.check_owner()
            self._let_go()
            watched_folder.set_owner(self._root, watched_folder.owner_of(self._job.store))
        self.stands_by = not self._job.slot.take()
        if self.stands_by:
            self._notices(
                "standby",
                f"Another importer is running in {shown_root(self._root)}. This one is on standby, "
                "and takes over when that one stops",
            )
            return False
        self._notices.resolve("standby")
        self._has_led = True
        return True

    def check_owner(self) -> None:
        """Give the folder up if another store has adopted it, or another folder is in its place.

        Raises StoreUnavailable then.
        """
        try:
            watched_folder.check_owner(self._root, watched_folder.owner_of(self._job.store))
        except InvalidArgument as error:
            self._notices.find("owner", ImporterState.DEGRADED, error.message)
            self._let_go()
            self._job.slot.leave()
            raise StoreUnavailable(f"{shown_root(self._root)} belongs to another store") from None
        self._notices.clear("owner")

    def leave(self) -> None:
        """Release the slot, so that another importer can take it."""
        self._job.slot.leave()
