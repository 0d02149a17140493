"""What is above the list of imports: the importers, their backlog, the counts of files."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from textual import work
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from resumes.durations import Pace, rate, span, time_left
from resumes.health.findings import installation_of
from resumes.store import accounts, import_history, importers
from resumes.store.import_history import ORDER, FileCount
from resumes.store.import_ledger import FileOutcome
from resumes.store.importers import ImporterState, SeenImporter
from resumes.store.store import Store
from resumes.text import counted
from tui.screens.import_rows import SIGNS
from tui.session import UiSession
from tui.store_calls import Failure, call, is_running
from tui.text import joined, safe
from tui.widgets.paged_list import line_strip

PACE_S: Final = 60.0
"""The pace is that of the last minute: importers say only now and then how many files wait."""

FEW: Final = 10
"""Fewer files are through before anybody has read how long they take."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """How many files wait, and the most that did since none did. `files_per_s` None: unknown."""

    waiting: int
    most: int
    files_per_s: float | None

    @property
    def left_s(self) -> float | None:
        """How long it takes at this pace; None when that is not known."""
        return None if self.files_per_s is None else self.waiting / self.files_per_s


class Backlog:
    """What waits, and how fast files come to their ends."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._pace = Pace(PACE_S)
        self._waiting = self._most = 0
        self._said_at = ""
        self._ended: int | None = None
        self._ended_before: int | None = None
        """How many files had come to their ends when it was said how many wait."""

    def note_waiting(self, waiting: int, said_at: str) -> None:
        """Note how many files waited when importers last reported."""
        if said_at != self._said_at:
            self._said_at, self._ended_before = said_at, self._ended
        self._waiting = waiting
        self._most = max(self._most, waiting) if waiting else 0

    def note_ended(self, files: int) -> None:
        """Note how many files the ledger has now."""
        self._ended = files
        if self._ended_before is None:
            self._ended_before = files
        self._pace.note(self._monotonic(), files)

    def forget_pace(self) -> None:
        """Forget the pace: the next counts are of another ledger, or another part of it."""
        self._pace = Pace(PACE_S)
        self._ended = self._ended_before = None

    def find_outlook(self) -> Outlook | None:
        """Return the outlook, with what ended since the last report; None while few files wait."""
        waiting = max(0, self._waiting - (self._ended or 0) + (self._ended_before or 0))
        if not waiting or self._most < FEW:
            return None
        return Outlook(waiting, self._most, self._pace.per_s(self._monotonic()))


def last_said(seen: Sequence[SeenImporter]) -> str:
    """Return when a live importer was last seen; empty if none was."""
    return max((one.seen_at for one in seen if one.is_live), default="")


BAR_CELLS: Final = 20
MAX_IMPORTERS: Final = 3
"""Importers that have a line of their own."""

WELL: Final = {ImporterState.OK: "$text-success", ImporterState.POLLING: "$text-success"}


def tally_line(tallies: Iterable[FileCount]) -> Content:
    """Return `✗ 19 failed   ‖ 2 held   = 1 duplicate   ✓ 1,204 done`; zeros are dim."""
    counts = dict.fromkeys(ORDER, 0)
    for tally in tallies:
        counts[tally.outcome] += tally.files
    return joined([_count(outcome, files) for outcome, files in counts.items()], by="   ")


def _count(outcome: FileOutcome, files: int) -> Content:
    sign, style = SIGNS[outcome]
    return safe(f"{sign} {files:,} {outcome}", style if files else "dim")


def importer_lines(seen: Sequence[SeenImporter], start: str) -> Iterator[Content]:
    """Yield the state of each importer; `start` is the command to start one if none is live."""
    live = [one for one in seen if one.is_live]
    watched = {one.importer.root for one in live}
    told = [*live, *(one for one in seen if not one.is_live and one.importer.root not in watched)]
    for one in told[:MAX_IMPORTERS]:
        yield from _importer(one)
    if len(told) > MAX_IMPORTERS:
        yield safe(f"and {counted(len(told) - MAX_IMPORTERS, 'more importer')}", "dim")
    if not live:
        yield safe(f"○ Importer not running. Start it with `{start}`.", "bold $text-warning")


def _importer(seen: SeenImporter) -> Iterator[Content]:
    importer = seen.importer
    if not seen.is_live:
        text = f"○ {importer.root}: importer not responding for {span(seen.age_s)}"
        yield safe(text, "$text-warning")
        return
    is_well = importer.state in WELL
    parts = [
        safe(f"{'●' if is_well else '!'} watching {importer.root}", WELL.get(importer.state, "")),
        safe(f"last seen {int(seen.age_s)} s ago", "dim"),
        safe(_waiting(importer.waiting)),
    ]
    yield joined(parts, by=" · ")
    for finding in importer.findings[:1]:
        style = "dim" if is_well else "$text-warning"
        yield safe(f"  {importer.state}: {finding.sentence}", style)


def _waiting(files: int | None) -> str:
    return "no files waiting" if not files else f"{counted(files, 'file')} waiting"


def backlog_line(outlook: Outlook) -> Content:
    """Return `███████░░░░░░ 12,000 waiting · 3,400 files/s · a few seconds left`."""
    filled = BAR_CELLS * (outlook.most - outlook.waiting) // max(1, outlook.most)
    parts = [safe(f"{'█' * filled}{'░' * (BAR_CELLS - filled)} {outlook.waiting:,} waiting")]
    if outlook.files_per_s is not None:
        parts.append(safe(rate(outlook.files_per_s)))
    if outlook.left_s is not None:
        parts.append(safe(time_left(outlook.left_s)))
    return joined(parts, by=" · ")


IMPORTERS: Final = "importers"
TALLIES: Final = "tallies"

TALLY_EVERY_S: Final = 2.0
"""How often files are counted, as long as that is quick."""

TALLY_TIMES: Final = 50
"""Counting slows down as the ledger grows: at most 1/TALLY_TIMES of the time goes into it."""


@dataclass(frozen=True, slots=True)
class Watching:
    """The importers, and the command that starts one on the inbox."""

    seen: Sequence[SeenImporter]
    start: str


class Overview(Widget):
    """Who watches, how many files came to which end, and how far those are that wait."""

    DEFAULT_CSS = """
    Overview { height: auto; max-height: 9; }
    """

    def __init__(
        self, session: UiSession, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self.add_class("panel", "-thin")
        self.border_title = safe("Importers")
        self._session = session
        self._monotonic = monotonic
        self._backlog = Backlog(monotonic)
        self._watching: Watching | None = None
        self._tallies: Sequence[FileCount] | None = None
        self._tally_due_s = 0.0
        self._lines: Sequence[Content] = [safe("…", "dim")]

    def restart(self, account: str | None) -> None:
        """Count the files of another account."""
        self.workers.cancel_group(self, TALLIES)
        self._backlog.forget_pace()
        self._tallies = None
        self._tally_due_s = 0.0
        self.read(account)

    def read(self, account: str | None) -> None:
        """Read what has changed, and count files again when it is time."""
        # Asked again, the call that is under way would be for nothing.
        if not is_running(self, IMPORTERS):
            self._read_importers()
        if self._monotonic() >= self._tally_due_s and not is_running(self, TALLIES):
            self._read_tallies(account)

    # Of a failure the list says what is wrong, which is read at the same time.

    @work(group=IMPORTERS)
    async def _read_importers(self) -> None:
        with suppress(Failure):
            watching = await call(self._session.store, read_watching, session=self._session)
            self._watching, seen = watching, watching.seen
            self._backlog.note_waiting(importers.count_waiting(seen), last_said(seen))
            self._draw()

    @work(group=TALLIES)
    async def _read_tallies(self, account: str | None) -> None:
        with suppress(Failure):
            begin_s = self._monotonic()
            tallies = await call(self._session.store, read_tallies, account=account)
            now_s = self._monotonic()
            self._tally_due_s = now_s + max(TALLY_EVERY_S, TALLY_TIMES * (now_s - begin_s))
            self._tallies = tallies
            self._backlog.note_ended(sum(tally.files for tally in tallies))
            self._draw()

    def _draw(self) -> None:
        # What must be seen comes first: on a low terminal the last importers are cut off.
        tallies = self._tallies
        lines = [safe("counting…", "dim") if tallies is None else tally_line(tallies)]
        outlook = self._backlog.find_outlook()
        if outlook is not None:
            lines.append(backlog_line(outlook))
        if self._watching is not None:
            lines += importer_lines(self._watching.seen, self._watching.start)
        has_as_many = len(lines) == len(self._lines)
        self._lines = lines
        self.refresh(layout=not has_as_many)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines)

    def render_line(self, y: int) -> Strip:
        line = self._lines[y] if y < len(self._lines) else safe("")
        line = line.truncate(max(1, self.size.width), ellipsis=True)
        return line_strip(self, line, self.visual_style)


def read_watching(store: Store, *, session: UiSession) -> Watching:
    """Return the importers seen within a day, and how to start one."""
    installation = installation_of(store, session.settings, session.program)
    return Watching(importers.list_importers(store), installation.command_line("up"))


def read_tallies(store: Store, *, account: str | None) -> Sequence[FileCount]:
    """Count the files of the account, or of all, by what became of them."""
    account_id = None if account is None else accounts.get_account(store, account).id
    return import_history.count_files(store, account_id=account_id)
