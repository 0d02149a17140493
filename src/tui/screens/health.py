"""The health screen: metrics, and findings with their remedies."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import ItemGrid
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from resumes.durations import span
from resumes.health.checks import iter_findings
from resumes.health.findings import Finding, Severity, installation_of
from resumes.health.metrics import InstallationMetrics, read_metrics
from resumes.store.import_ledger import FileOutcome
from resumes.store.store import Store
from resumes.text import counted, in_bytes
from tui import clipboard
from tui.keys import Place, Target, bindings
from tui.screens.base import ListScreen
from tui.screens.dialogs import TextDialog
from tui.session import UiSession
from tui.text import NONE, joined, safe, show_message
from tui.widgets.bars import Glance
from tui.widgets.paged_list import ListColumn, PagedList, text_cell
from tui.widgets.text_pane import Paragraph, TextPane
from tui.widgets.window import PageRead

SIGNS = {
    Severity.ERROR: ("✗", "bold $text-error"),
    Severity.WARNING: ("!", "bold $text-warning"),
    Severity.OK: ("✓", "$text-success"),
}
"""The sign and style of each severity, worst first."""


def sign_of(finding: Finding) -> tuple[str, str]:
    """Return the sign and its style; a process that is not running gets a circle, not a tick."""
    return ("○", "$text-muted") if finding.is_idle else SIGNS[finding.severity]


def remedy_line(finding: Finding) -> Content:
    """Return the finding's remedy, or a note that there is nothing to do."""
    if finding.remedy is None:
        return safe("Nothing to do.", "dim")
    _, style = SIGNS[finding.severity]
    return joined([safe("→ ", style), safe(finding.remedy, "bold")])


def finding_line(finding: Finding) -> Content:
    """Return the sign and the finding."""
    sign, style = sign_of(finding)
    return joined([safe(f"{sign} {finding.subject}", style), safe(finding.text)], by="  ")


def read_health(store: Store, *, session: UiSession) -> PageRead[Finding]:
    """Return the findings, worst first; `about` holds the metrics of the installation.

    Raises StoreError if the store is unavailable.
    """
    metrics = read_metrics(store, session.cache)
    installation = installation_of(store, session.settings, session.program)
    found = iter_findings(installation, session.cache)
    # The sort is stable, so related checks stay in order.
    states = list(SIGNS)
    worst_first = sorted(found, key=lambda finding: states.index(finding.severity))
    return PageRead(worst_first, about=metrics)


def read_glance(store: Store, *, session: UiSession) -> Glance:
    """Return the content of the header. Raises StoreError if the store is unavailable."""
    health = read_health(store, session=session)
    metrics: InstallationMetrics = health.about
    to_do = [finding for finding in health.rows if finding.severity is not Severity.OK]
    worst = to_do[0].severity if to_do else Severity.OK
    sign, style = SIGNS[worst]
    state = counted(sum(row.severity is worst for row in to_do), worst) if to_do else "healthy"
    importer = (
        safe("● importer running", "$text-success")
        if metrics.live_importers
        else safe("○ no importer", "$text-warning")
    )
    return Glance(
        {
            "imports": metrics.files[FileOutcome.FAILED] + metrics.files[FileOutcome.HELD],
            "health": len(to_do),
        },
        (importer, safe(f"{sign} {state}", style)),
    )


LABEL_CELLS = 10
GAUGE_CELLS = 39
"""The width of a gauge; two gauges fit side by side into 80 cells."""


class Gauges(ItemGrid):
    """Shows the latest metrics in as few rows as the width allows, evenly distributed."""

    DEFAULT_CSS = """
    Gauges Static { padding-right: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    metrics: reactive[InstallationMetrics | None] = reactive(None, recompose=True)

    def __init__(self) -> None:
        super().__init__(min_column_width=GAUGE_CELLS, regular=True, classes="panel -thin")
        self.styles.grid_columns = str(GAUGE_CELLS)
        self.border_title = safe("Installation")

    def compose(self) -> ComposeResult:
        if (metrics := self.metrics) is None:
            return
        files, age_s, size = metrics.files, metrics.oldest_request_s, metrics.size
        log = "" if size.log_bytes is None else f" + {in_bytes(size.log_bytes)} log"
        free = NONE if metrics.free_bytes is None else f"{in_bytes(metrics.free_bytes)} free"
        live, waiting = metrics.live_importers, counted(metrics.waiting_files, "file")
        outcomes = FileOutcome.DONE, FileOutcome.FAILED, FileOutcome.HELD
        for label, value in (
            ("Store", f"{in_bytes(size.data_bytes)}{log}"),
            ("Resumes", f"{metrics.resumes:,} in {counted(metrics.accounts, 'account')}"),
            ("Disk", free),
            ("Importers", f"{live} running, {waiting} waiting" if live else "none running"),
            ("Files", ", ".join(f"{files[outcome]:,} {outcome}" for outcome in outcomes)),
            ("Pending", "none" if age_s is None else f"oldest: {span(age_s)}"),
        ):
            yield Static(joined([safe(f"{label:<{LABEL_CELLS}}", "dim"), safe(value)]))


def find_link(finding: Finding) -> Target | None:
    """Return a link to the subject of the finding, or None if no screen shows the subject."""
    match finding.subject:
        case "files" | "requests":
            is_outcome = finding.about in set(FileOutcome)
            return Target("imports", only=finding.about if is_outcome else "")
        case "quota" | "counters":
            return Target("accounts", row=finding.about)
        case "keys":
            return Target("keys", row=finding.about)
    return None


class HealthScreen(ListScreen[Finding]):
    """Shows all findings, worst first, below the metrics of the installation."""

    MODE = "health"
    REFRESH_S = 5.0
    BINDINGS = bindings(Place.HEALTH)
    DEFAULT_CSS = """
    HealthScreen > TextPane { height: auto; min-height: 5; max-height: 12; }
    """

    def __init__(self, session: UiSession) -> None:
        super().__init__(session)
        self._gauges = Gauges()
        self._remedy = TextPane()
        self._remedy.can_focus = False
        self._remedy.add_class("panel")
        self._remedy.border_title = safe("Finding")

    def body(self) -> Iterable[Widget]:
        yield self._gauges
        yield self.list
        yield self._remedy

    def columns(self) -> Sequence[ListColumn[Finding]]:
        return (
            ListColumn("", 1, lambda finding: safe(*sign_of(finding))),
            ListColumn("ABOUT", 8, lambda finding: text_cell(finding.subject)),
            ListColumn("FINDING", 0, lambda finding: text_cell(finding.text)),
            ListColumn("WHAT TO DO", 0, lambda finding: text_cell(finding.remedy or NONE), 140),
        )

    def hidden(self) -> Iterable[str]:
        if self.list.current is None or not self.list.current.command:
            yield "copy_command"

    def row_key(self, row: Finding) -> str:
        return f"{row.subject} {row.about}"

    def words(self, row: Finding) -> str:
        return f"{row.subject} {row.text}"

    def reading(self, cursor: str) -> Callable[[Store], PageRead[Finding]]:
        return partial(read_health, session=self.session)

    def page_arrived(self, read: PageRead[Finding]) -> Sequence[Content]:
        self._gauges.metrics = read.about
        return ()

    def heading(self) -> Iterable[Content]:
        """Yield `✗ 1 error`, `! 2 warnings`, `✓ 10 ok`; omit zero counts."""
        states = [finding.severity for finding in self.list.window.rows]
        if not states:
            yield safe("Checking…")
        for state, (sign, style) in SIGNS.items():
            if count := states.count(state):
                words = f"{count} {state}" if state is Severity.OK else counted(count, state)
                yield safe(f"{sign} {words}", style)

    @on(PagedList.Changed)
    def show_remedy(self) -> None:
        """Show the remedy of the row at the cursor below the list."""
        found = self.list.current
        lines = () if found is None else (finding_line(found), remedy_line(found))
        self._remedy.show(list(map(Paragraph, lines)))

    def open_row(self, row: Finding) -> None:
        """Open the subject of the finding, or show the finding in full if there is no link."""
        if (link := find_link(row)) is None:
            title = f"{row.subject}: {'idle' if row.is_idle else row.severity}"
            lines = [Paragraph(finding_line(row)), Paragraph(safe("")), Paragraph(remedy_line(row))]
            if row.command is not None:
                how = safe("Run in a shell (c in the list to copy):", "dim")
                lines += Paragraph(safe("")), Paragraph(how), Paragraph(safe(row.command), "  ")
            self.app.push_screen(TextDialog(title, lines))
        else:
            self.follow_link(link)

    def action_reload(self, *, row: str = "") -> None:
        """Repeat all checks without cached results."""
        self.session.cache.clear()
        super().action_reload(row=row)

    def action_copy_command(self) -> None:
        finding = self.list.current
        if not self.list.is_ready():
            return
        if finding is None or finding.remedy is None:
            show_message(self, "Nothing to fix here.")
        elif finding.command is None:
            show_message(self, "No command to copy for this finding.")
        else:
            clipboard.send(self, finding.command, what="command")
