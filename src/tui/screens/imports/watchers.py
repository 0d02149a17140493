"""The lines above the list: how many files came to which end, who watches, and how far they are."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from resumes.durations import rate, span, time_left
from resumes.store.import_ledger import ORDER, FileCount, FileOutcome
from resumes.store.importers import SeenImporter, State
from resumes.text import counted
from tui.screens.imports.backlog import Outlook
from tui.screens.imports.rows import SIGNS
from tui.text import joined, safe
from tui.widgets.strips import line_strip

BAR_CELLS: Final = 20
MOST_IMPORTERS: Final = 3
"""Importers that have a line of their own."""

WELL: Final = {State.OK: "$text-success", State.POLLING: "$text-success"}


class WatcherLines(Widget):
    """How importing goes, in as many lines as there is to say."""

    DEFAULT_CSS = """
    WatcherLines { height: auto; max-height: 7; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: Sequence[Content] = [safe("…", "dim")]

    def show(self, lines: Sequence[Content]) -> None:
        """The lines read so; each ends in an ellipsis where it does not fit."""
        has_as_many = len(lines) == len(self._lines)
        self._lines = lines
        self.refresh(layout=not has_as_many)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines)

    def render_line(self, y: int) -> Strip:
        line = self._lines[y] if y < len(self._lines) else safe("")
        line = line.truncate(max(1, self.size.width), ellipsis=True)
        return line_strip(self, line, self.visual_style)


def tally_line(tallies: Iterable[FileCount]) -> Content:
    """`✗ 19 failed   ‖ 2 held   = 1 duplicate   ✓ 1,204 done`; what there is none of is dim."""
    counts = dict.fromkeys(ORDER, 0)
    for tally in tallies:
        counts[tally.outcome] += tally.files
    return joined([_count(outcome, files) for outcome, files in counts.items()], by="   ")


def _count(outcome: FileOutcome, files: int) -> Content:
    sign, style = SIGNS[outcome]
    return safe(f"{sign} {files:,} {outcome}", style if files else "dim")


def importer_lines(seen: Sequence[SeenImporter], start: str) -> Iterator[Content]:
    """Who watches which folder, and how that goes; `start` is the command when nobody does."""
    live = [one for one in seen if one.is_live]
    watched = {one.importer.root for one in live}
    told = [*live, *(one for one in seen if not one.is_live and one.importer.root not in watched)]
    for one in told[:MOST_IMPORTERS]:
        yield from _importer(one)
    if len(told) > MOST_IMPORTERS:
        yield safe(f"and {counted(len(told) - MOST_IMPORTERS, 'more importer')}", "dim")
    if not live:
        yield safe(f"○ No importer is running: `{start}` starts one.", "bold $text-warning")


def _importer(seen: SeenImporter) -> Iterator[Content]:
    importer = seen.importer
    if not seen.is_live:
        text = f"○ {importer.root}: nothing was heard of its importer for {span(seen.age_s)}"
        yield safe(text, "$text-warning")
        return
    is_well = importer.state in WELL
    parts = [
        safe(f"{'●' if is_well else '!'} watching {importer.root}", WELL.get(importer.state, "")),
        safe(f"heard of {int(seen.age_s)} s ago", "dim"),
        safe(_waiting(importer.waiting)),
    ]
    yield joined(parts, by=" · ")
    for finding in importer.findings[:1]:
        style = "dim" if is_well else "$text-warning"
        yield safe(f"  {importer.state}: {finding.sentence}", style)


def _waiting(files: int | None) -> str:
    return "nothing waits" if not files else f"{counted(files, 'file')} waiting"


def backlog_line(outlook: Outlook) -> Content:
    """`███████░░░░░░ 12,000 waiting · 3,400 files/s · a few seconds left`."""
    filled = BAR_CELLS * (outlook.most - outlook.waiting) // max(1, outlook.most)
    parts = [safe(f"{'█' * filled}{'░' * (BAR_CELLS - filled)} {outlook.waiting:,} waiting")]
    if outlook.files_per_s is not None:
        parts.append(safe(rate(outlook.files_per_s)))
    if outlook.left_s is not None:
        parts.append(safe(time_left(outlook.left_s)))
    return joined(parts, by=" · ")
