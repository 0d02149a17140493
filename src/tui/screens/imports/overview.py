"""What stands above the list: read beside it, so that the list waits for none of it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from resumes.health.findings import installation_of
from resumes.store import accounts, import_ledger, importers
from resumes.store.import_ledger import FileCount
from resumes.store.importers import SeenImporter
from resumes.store.store import Store
from tui.notices import Failure
from tui.screens.imports.backlog import Backlog, last_said
from tui.screens.imports.watchers import WatcherLines, backlog_line, importer_lines, tally_line
from tui.session import Session
from tui.store_client import StoreClient
from tui.text import safe

IMPORTERS: Final = "importers"
TALLIES: Final = "tallies"

TALLY_EVERY_S: Final = 2.0
"""How often files are counted, as long as that is quick."""

TALLY_TIMES: Final = 50
"""It takes time that grows with the ledger: at most one part in so many goes into it."""


@dataclass(frozen=True, slots=True)
class Tallied:
    """How many files there are, and how long counting them took."""

    tallies: Sequence[FileCount]
    took_s: float


@dataclass(frozen=True, slots=True)
class Watching:
    """The importers, and the command that starts one on the inbox."""

    seen: Sequence[SeenImporter]
    start: str


class Overview:
    """Who watches, how many files came to which end, and how far those are that wait."""

    def __init__(
        self,
        session: Session,
        client: StoreClient,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lines = WatcherLines()
        self._session = session
        self._client = client
        self._monotonic = monotonic
        self._backlog = Backlog(monotonic)
        self._watching: Watching | None = None
        self._is_reading_importers = False
        self._tallies: Sequence[FileCount] | None = None
        self._tally_due_s = 0.0
        self._is_tallying = False

    def restart(self, account: str | None) -> None:
        """The files of another account are counted."""
        self._client.drop(TALLIES)
        self._backlog.forget_pace()
        self._tallies = None
        self._is_tallying = False
        self._tally_due_s = 0.0
        self.read(account)

    def read(self, account: str | None) -> None:
        """What has changed is being read; files are counted again when it is time."""
        self._read_importers()
        if self._is_tallying or self._monotonic() < self._tally_due_s:
            return
        self._is_tallying = True
        self._client.read(
            TALLIES,
            partial(read_tallies, account=account, monotonic=self._monotonic),
            then=self._tallied,
            failed=self._failed_to_tally,
        )

    def _read_importers(self) -> None:
        # Asked again, the call that is under way would be for nothing.
        if self._is_reading_importers:
            return
        self._is_reading_importers = True
        self._client.read(
            IMPORTERS,
            partial(read_watching, session=self._session),
            then=self._watched,
            failed=self._failed_to_watch,
        )

    def _watched(self, watching: Watching) -> None:
        self._is_reading_importers = False
        self._watching = watching
        self._backlog.note_waiting(importers.count_waiting(watching.seen), last_said(watching.seen))
        self._draw()

    def _tallied(self, tallied: Tallied) -> None:
        self._is_tallying = False
        pause_s = max(TALLY_EVERY_S, TALLY_TIMES * tallied.took_s)
        self._tally_due_s = self._monotonic() + pause_s
        self._tallies = tallied.tallies
        self._backlog.note_ended(sum(tally.files for tally in tallied.tallies))
        self._draw()

    # The list, which is read at the same time, says what is wrong.

    def _failed_to_watch(self, _: Failure) -> None:
        self._is_reading_importers = False

    def _failed_to_tally(self, _: Failure) -> None:
        self._is_tallying = False

    def _draw(self) -> None:
        # What must be seen comes first: on a low terminal the last importers are cut off.
        tallies = self._tallies
        lines = [safe("counting…", "dim") if tallies is None else tally_line(tallies)]
        outlook = self._backlog.find_outlook()
        if outlook is not None:
            lines.append(backlog_line(outlook))
        if self._watching is not None:
            lines += importer_lines(self._watching.seen, self._watching.start)
        self.lines.show(lines)


def read_watching(store: Store, *, session: Session) -> Watching:
    """The importers that were heard of within a day, and how to start one."""
    installation = installation_of(store, session.settings, session.program)
    return Watching(importers.list_importers(store), installation.start_line())


def read_tallies(
    store: Store, *, account: str | None, monotonic: Callable[[], float] = time.monotonic
) -> Tallied:
    """The files of the account, or of all, counted by what became of them."""
    begin = monotonic()
    account_id = None if account is None else accounts.get_account(store, account).id
    found = import_ledger.count_files(store, account_id=account_id)
    return Tallied(found, monotonic() - begin)
