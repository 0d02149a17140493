"""The overview above the imports: importers, waiting files, files by outcome."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Final

from textual import work
from textual.content import Content
from textual.widgets import Static

from resumes.durations import span
from resumes.health.metrics import QueryCache
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
"""The fewest files for which progress is shown: fewer are imported before they can be counted."""

BAR_CELLS: Final = 20
MAX_IMPORTERS: Final = 3
"""The most importers that are shown on a line of their own."""

HEALTHY: Final = {ImporterState.OK: "$text-success", ImporterState.POLLING: "$text-success"}


def importer_lines(seen: Sequence[SeenImporter], start: str) -> Iterator[Content]:
    """Yield the state of each importer and, if none is running, the command `start`."""
    live = [importer for importer in seen if importer.is_live]
    watched = {importer.root for importer in live}
    shown = [*live, *(importer for importer in seen if importer.root not in watched)]
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


class Overview(Static):
    """Shows the running importers, the files by outcome, and the progress of waiting files."""

    DEFAULT_CSS = """
    Overview { height: auto; max-height: 9; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, session: UiSession) -> None:
        super().__init__(safe("…", "dim"), classes="panel -thin")
        self.border_title = safe("Importers")
        self._session = session
        self._cache = QueryCache()
        self._most = 0
        """The highest number of waiting files since the last time that there were none."""

    def read(self, account: str | None, *, recounts: bool = False) -> None:
        """Read the importers and the account's file counts; `recounts` discards cached counts."""
        if recounts:
            self._cache.clear()
        # Starting the worker again would discard its read in progress.
        if recounts or not is_running(self, self._read):
            self._read(account)

    @work(exclusive=True, description="")
    async def _read(self, account: str | None) -> None:
        store = self._session.store
        # The list, which is read at the same time, shows why reading failed.
        with suppress(Failure):
            seen = await call(store, importers.list_importers)
            self._draw(seen, await call(store, partial(self._cache.get, counting(account))))

    def _draw(self, seen: Sequence[SeenImporter], tallies: Sequence[FileCount]) -> None:
        """Show `✗ 19 failed   ‖ 2 held   = 1 duplicate   ✓ 1,204 done`, then the importers."""
        # The counts come first because the last lines are cut off on a low terminal.
        counts = list[Content]()
        for outcome in ORDER:
            files = sum(tally.files for tally in tallies if tally.outcome is outcome)
            sign, style = SIGNS[outcome]
            counts.append(safe(f"{sign} {files:,} {outcome}", style if files else "dim"))
        lines = [joined(counts, by="   ")]
        waiting = importers.count_waiting(seen)
        self._most = max(self._most, waiting) if waiting else 0
        if waiting and self._most >= MIN_BACKLOG:
            filled = BAR_CELLS * (self._most - waiting) // self._most
            bar = "█" * filled + "░" * (BAR_CELLS - filled)
            lines.append(safe(f"{bar} {waiting:,} waiting"))
        start = f"{self._session.program} up"
        self.update(stacked([*lines, *importer_lines(seen, start)]))


@cache
def counting(account: str | None) -> Callable[[Store], Sequence[FileCount]]:
    """Return a function that counts files by outcome; repeated calls return the same function."""
    return lambda store: import_history.count_files(
        store, account_id=find_account_id(store, account)
    )
