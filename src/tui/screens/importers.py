"""The overview above the imports: importers, files waiting, files by outcome."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from textual import work
from textual.content import Content
from textual.widgets import Static

from resumes.durations import span
from resumes.health.findings import installation_of
from resumes.store import import_history, importers
from resumes.store.import_history import ORDER, FileCount
from resumes.store.importers import ImporterState, SeenImporter
from resumes.store.store import Store
from resumes.text import counted
from tui.screens.file_views import SIGNS, find_account_id
from tui.session import UiSession
from tui.store_calls import Failure, call, is_running
from tui.text import joined, safe, stacked

MIN_BACKLOG: Final = 10
"""No progress is shown below this many files: they are imported before a count can be read."""

BAR_CELLS: Final = 20
MAX_IMPORTERS: Final = 3
"""Importers with a line of their own."""

HEALTHY: Final = {ImporterState.OK: "$text-success", ImporterState.POLLING: "$text-success"}


def importer_lines(seen: Sequence[SeenImporter], start: str) -> Iterator[Content]:
    """Yield the state of each importer; if none is live, `start` is the command to start one."""
    live = [importer for importer in seen if importer.is_live]
    watched = {importer.root for importer in live}
    silent = [importer for importer in seen if not importer.is_live]
    shown = [*live, *(importer for importer in silent if importer.root not in watched)]
    for importer in shown[:MAX_IMPORTERS]:
        if not importer.is_live:
            text = f"○ {importer.root}: importer has not responded for {span(importer.age_s)}"
            yield safe(text, "$text-warning")
            continue
        is_healthy = importer.state in HEALTHY
        sign, style = "●" if is_healthy else "!", HEALTHY.get(importer.state, "")
        waits = counted(importer.waiting, "file") if importer.waiting else "no files"
        parts = [
            safe(f"{sign} watching {importer.root}", style),
            safe(f"last seen {int(importer.age_s)} s ago", "dim"),
            safe(f"{waits} waiting"),
        ]
        yield joined(parts, by=" · ")
        for finding in importer.findings[:1]:
            style = "dim" if is_healthy else "$text-warning"
            yield safe(f"  {importer.state}: {finding.sentence}", style)
    if len(shown) > MAX_IMPORTERS:
        yield safe(f"and {counted(len(shown) - MAX_IMPORTERS, 'more importer')}", "dim")
    if not live:
        yield safe(f"○ Importer not running. Start it with `{start}`.", "bold $text-warning")


TALLY_EVERY_S: Final = 2.0
"""How often files are counted while counting is fast."""

TALLY_TIMES: Final = 50
"""Counting slows as the ledger grows; it may take at most 1/TALLY_TIMES of the time."""


class Overview(Static):
    """Shows the running importers, the files by outcome, and the progress of waiting files."""

    DEFAULT_CSS = """
    Overview { height: auto; max-height: 9; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(
        self, session: UiSession, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(safe("…", "dim"), classes="panel -thin")
        self.border_title = safe("Importers")
        self._session = session
        self._monotonic = monotonic
        self._most = 0
        """The most files that were waiting at once since none were."""

        self._watching: tuple[Sequence[SeenImporter], str] | None = None
        self._tallies: Sequence[FileCount] | None = None
        self._tally_due_s = 0.0
        self._is_outdated = False

    def restart(self, account: str | None) -> None:
        """Start over with the files of another account."""
        self.workers.cancel_node(self)
        self._tallies = None
        self.read(account, recounts=True)

    def read(self, account: str | None, *, recounts: bool = False) -> None:
        """Read the importers, and count files again when due; with `recounts`, immediately."""
        self._is_outdated |= recounts
        # Asking again would discard the call in progress.
        if not is_running(self, self._read_importers):
            self._read_importers()
        is_due = self._is_outdated or self._monotonic() >= self._tally_due_s
        if is_due and not is_running(self, self._read_tallies):
            self._is_outdated = False
            self._read_tallies(account)

    # Failures are shown by the list, which is read at the same time.

    @work
    async def _read_importers(self) -> None:
        with suppress(Failure):
            self._watching = await call(self._session.store, read_watching, session=self._session)
            self._draw()

    @work
    async def _read_tallies(self, account: str | None) -> None:
        begin_s = self._monotonic()
        try:
            self._tallies = await call(self._session.store, read_tallies, account=account)
        except Failure:
            self._is_outdated = True
            return
        now_s = self._monotonic()
        self._tally_due_s = now_s + max(TALLY_EVERY_S, TALLY_TIMES * (now_s - begin_s))
        self._draw()

    def _draw(self) -> None:
        """Show `✗ 19 failed   ‖ 2 held   = 1 duplicate   ✓ 1,204 done`; then the importers."""
        # The counts come first: on a low terminal the last importers are cut off.
        counts = list[Content]()
        for outcome in ORDER if self._tallies is not None else ():
            files = sum(tally.files for tally in self._tallies or () if tally.outcome is outcome)
            sign, style = SIGNS[outcome]
            counts.append(safe(f"{sign} {files:,} {outcome}", style if files else "dim"))
        lines = [joined(counts, by="   ") if counts else safe("counting…", "dim")]
        if self._watching is not None:
            seen, start = self._watching
            waiting = importers.count_waiting(seen)
            self._most = max(self._most, waiting) if waiting else 0
            if waiting and self._most >= MIN_BACKLOG:
                filled = BAR_CELLS * (self._most - waiting) // self._most
                bar = "█" * filled + "░" * (BAR_CELLS - filled)
                lines.append(safe(f"{bar} {waiting:,} waiting"))
            lines += importer_lines(seen, start)
        self.update(stacked(lines))


def read_watching(store: Store, *, session: UiSession) -> tuple[Sequence[SeenImporter], str]:
    """Return the importers seen within a day, and the command to start one on the inbox."""
    installation = installation_of(store, session.settings, session.program)
    return importers.list_importers(store), installation.command_line("up")


def read_tallies(store: Store, *, account: str | None) -> Sequence[FileCount]:
    """Count the files of the account, or of all, by outcome."""
    return import_history.count_files(store, account_id=find_account_id(store, account))
