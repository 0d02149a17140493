"""The health screen: metrics, findings, and what to do about each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from resumes.durations import span
from resumes.health.checks import iter_findings
from resumes.health.findings import Finding, Severity, installation_of
from resumes.health.metrics import InstallationMetrics, QueryCache, read_metrics
from resumes.settings import Settings
from resumes.store.import_ledger import FileOutcome
from resumes.store.store import Size, Store
from resumes.text import counted, in_bytes
from tui import clipboard
from tui.keys import Place, bindings
from tui.screens.base import ListScreen, PageRead
from tui.session import UiSession
from tui.text import NONE, joined, safe, tell
from tui.widgets.bars import KeyLine, Note, TitleLine
from tui.widgets.paged_list import MARGIN_CELLS, ListColumn, PagedList, cells_strip, text_cell
from tui.widgets.text_pane import Paragraph, TextPane


class Sign(NamedTuple):
    """What stands for a state. `style` is one of Textual's."""

    mark: str
    word: str
    style: str


SIGNS = {
    Severity.ERROR: Sign("✗", "wrong", "bold $text-error"),
    Severity.WARNING: Sign("!", "to look at", "bold $text-warning"),
    Severity.OK: Sign("✓", "well", "$text-success"),
}
"""By state, the worst first."""

SEVERITY = {state: number for number, state in enumerate(SIGNS)}


def mark_cell(finding: Finding) -> Content:
    """The mark alone, for a column of one cell."""
    sign = SIGNS[finding.severity]
    return safe(sign.mark, sign.style)


def tally(findings: Sequence[Finding]) -> Content:
    """`✗ 1 wrong · ! 2 to look at · ✓ 10 well`, without what there is none of."""
    counts = {state: sum(finding.severity is state for finding in findings) for state in SIGNS}
    parts = [
        safe(f"{sign.mark} {counts[state]} {sign.word}", sign.style)
        for state, sign in SIGNS.items()
        if counts[state]
    ]
    return joined(parts, by=" · ")


NOTHING_TO_DO = "Nothing needs to be done."


def remedy_line(finding: Finding) -> Content:
    """What to do, or that there is nothing to do."""
    if finding.remedy is None:
        return safe(NOTHING_TO_DO, "dim")
    return joined([safe("→ ", SIGNS[finding.severity].style), safe(finding.remedy, "bold")])


def finding_line(finding: Finding) -> Content:
    """What was found, under its sign."""
    sign = SIGNS[finding.severity]
    subject = safe(f"{sign.mark} {finding.subject}", sign.style)
    return joined([subject, safe(finding.text)], by="  ")


class RemedyPane(Vertical):
    """Shows one finding in full."""

    DEFAULT_CSS = """
    RemedyPane { height: auto; min-height: 5; max-height: 12; border-top: solid $primary; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._found = Note(safe(""))
        self._remedy = Note(safe(""))

    def compose(self) -> ComposeResult:
        yield self._found
        yield self._remedy

    def show(self, finding: Finding | None) -> None:
        """The pane is about this finding; None leaves it empty."""
        self._found.update(safe("") if finding is None else finding_line(finding))
        self._remedy.update(safe("") if finding is None else remedy_line(finding))


@dataclass(frozen=True, slots=True)
class Health:
    """The findings, the worst first, and the figures above them."""

    findings: Sequence[Finding]
    metrics: InstallationMetrics


def read_health(store: Store, *, settings: Settings, program: str, cache: QueryCache) -> Health:
    """How things stand now. Raises StoreError when the store is away, whatever else is found."""
    metrics = read_metrics(store, cache)
    found = iter_findings(installation_of(store, settings, program), cache)
    # Sorting is stable: within a state the order in which one check builds on the other stays.
    return Health(sorted(found, key=lambda finding: SEVERITY[finding.severity]), metrics)


LABEL_CELLS = 10
GAUGE_CELLS = 39
"""Two beside each other fit into 80 cells."""


def gauge_texts(gauges: InstallationMetrics) -> list[tuple[str, str]]:
    """Each gauge: what it is called, and how it stands."""
    files, age_s = gauges.files, gauges.oldest_request_s
    free = NONE if gauges.free_bytes is None else f"{in_bytes(gauges.free_bytes)} free"
    return [
        ("Store", _size_text(gauges.size)),
        ("Resumes", f"{gauges.resumes:,} in {counted(gauges.accounts, 'account')}"),
        ("Disk", free),
        ("Importers", f"{gauges.live_importers} live, {gauges.waiting_files:,} files waiting"),
        (
            "Files",
            f"{files[FileOutcome.DONE]:,} done, {files[FileOutcome.FAILED]:,} failed, "
            f"{files[FileOutcome.HELD]:,} held",
        ),
        ("Requests", "none waits" if age_s is None else f"oldest waits for {span(age_s)}"),
    ]


def gauge_lines(gauges: InstallationMetrics, width_cells: int) -> list[Content]:
    """The gauges in as few lines as the width allows, and in even ones."""
    cells = [_gauge(label, value) for label, value in gauge_texts(gauges)]
    lines = ceil(len(cells) / max(1, width_cells // GAUGE_CELLS))
    columns = ceil(len(cells) / lines)
    return [joined(cells[at : at + columns]) for at in range(0, len(cells), columns)]


def _gauge(label: str, value: str) -> Content:
    gauge = joined([safe(f"{label:<{LABEL_CELLS}}", "dim"), safe(value)])
    return gauge.truncate(GAUGE_CELLS - 1, ellipsis=True, pad=True) + safe(" ")


class GaugeLines(Widget):
    """Shows the figures last read."""

    DEFAULT_CSS = """
    GaugeLines { height: 3; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._gauges: InstallationMetrics | None = None
        self._lines: list[Content] = []

    def show(self, gauges: InstallationMetrics) -> None:
        """The lines say how things stand."""
        self._gauges = gauges
        self._arrange()

    def on_resize(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        if self._gauges is not None:
            self._lines = gauge_lines(self._gauges, self.size.width - 2 * MARGIN_CELLS)
            self.styles.height = len(self._lines)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        line = self._lines[y] if y < len(self._lines) else safe("")
        return cells_strip(self, [(line, self.size.width - 2 * MARGIN_CELLS)], self.visual_style)


def _size_text(size: Size) -> str:
    log = "" if size.log_bytes is None else f" + {in_bytes(size.log_bytes)} log"
    return in_bytes(size.data_bytes) + log


class FindingDialog(ModalScreen[None]):
    """Shows what was found, what to do and the command for it, until it is closed."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self._finding = finding

    def compose(self) -> ComposeResult:
        sign = SIGNS[self._finding.severity]
        with Vertical(classes="dialog tall"):
            yield TitleLine(safe(f"{self._finding.subject}: {sign.word}", "bold"))
            yield TextPane(list(iter_paragraphs(self._finding)))
        yield KeyLine()

    def action_cancel(self) -> None:
        """The dialog is closed."""
        self.dismiss()


def iter_paragraphs(finding: Finding) -> Iterator[Paragraph]:
    """The finding as a text to read."""
    yield Paragraph(safe(""))
    yield Paragraph(finding_line(finding))
    yield Paragraph(safe(""))
    yield Paragraph(remedy_line(finding))
    if finding.command is not None:
        yield Paragraph(safe(""))
        yield Paragraph(safe("In a shell (c on the list copies it):", "dim"))
        yield Paragraph(safe(finding.command), mark="  ")


COLUMNS: tuple[ListColumn[Finding], ...] = (
    ListColumn("", 1, mark_cell),
    ListColumn("ABOUT", 8, lambda finding: text_cell(finding.subject)),
    ListColumn("FINDING", 0, lambda finding: text_cell(finding.text)),
    ListColumn("WHAT TO DO", 0, lambda finding: text_cell(finding.remedy or NONE), 140),
)


class HealthScreen(ListScreen[Finding]):
    """All findings, the worst first, under the figures of the installation."""

    MODE = "health"
    REFRESH_S = 5.0
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.HEALTH)

    def __init__(self, session: UiSession) -> None:
        super().__init__(session)
        self._cache = QueryCache()
        self._gauges = GaugeLines()
        self._remedy = RemedyPane()

    def body(self) -> Iterable[Widget]:
        yield self._gauges
        yield self.list
        yield self._remedy

    def columns(self) -> Sequence[ListColumn[Finding]]:
        return COLUMNS

    def row_key(self, row: Finding) -> str:
        return f"{row.subject} {row.about}"

    def reading(self, cursor: str) -> Callable[[Store], PageRead[Finding]]:
        session, cache = self.session, self._cache

        def read(store: Store) -> PageRead[Finding]:
            health = read_health(
                store, settings=session.settings, program=session.program, cache=cache
            )
            return PageRead(health.findings, about=health.metrics)

        return read

    def page_arrived(self, read: PageRead[Finding]) -> None:
        self._gauges.show(read.about)

    def heading(self) -> Content:
        pages = self.list.pages
        rows = [pages.peek(number) for number in range(pages.count)]
        found = tally([row for row in rows if isinstance(row, Finding)])
        return joined([safe("Health", "bold"), found], by=" · ") if rows else safe("Looking…")

    @on(PagedList.Changed)
    def show_remedy(self) -> None:
        """The remedy of the row with the cursor stands under the list."""
        self._remedy.show(self.list.current)

    @on(PagedList.Chosen)
    def open_finding(self, chosen: PagedList.Chosen) -> None:
        """The finding is shown in full."""
        self.app.push_screen(FindingDialog(chosen.row))

    def action_reload(self) -> None:
        """Everything is being looked at again, what takes long too."""
        self._cache.clear()
        super().action_reload()

    def action_copy_command(self) -> None:
        """The terminal was asked to put the remedy's command on the clipboard; it gives no answer."""
        finding = self.list.current
        if finding is None or finding.remedy is None:
            tell(self, "There is nothing to put right here.")
        elif finding.command is None:
            tell(self, "What to do here is no command that could be copied.")
        else:
            clipboard.send(self, finding.command, what="command")
