"""What is well, what is not, and what to do about it."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from resumes.health.findings import Finding
from resumes.health.metrics import QueryCache
from resumes.store.store import Store
from tui import clipboard
from tui.actions import Place, bindings
from tui.screens.health.dialog import FindingDialog
from tui.screens.health.gauges import GaugeLines
from tui.screens.health.reading import read_health
from tui.screens.health.remedy import RemedyPane
from tui.screens.health.signs import mark_cell, tally
from tui.screens.list_screen import ListScreen, PageRead
from tui.session import Session
from tui.text import NONE, joined, safe
from tui.toasts import tell
from tui.widgets.columns import Column, text_cell
from tui.widgets.paged_list import PagedList

COLUMNS: tuple[Column[Finding], ...] = (
    Column("", 1, mark_cell),
    Column("ABOUT", 8, lambda finding: text_cell(finding.subject)),
    Column("FINDING", 0, lambda finding: text_cell(finding.text)),
    Column("WHAT TO DO", 0, lambda finding: text_cell(finding.remedy or NONE), 140),
)


class HealthScreen(ListScreen[Finding]):
    """All findings, the worst first, under the figures of the installation."""

    MODE = "health"
    REFRESH_S = 5.0
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.HEALTH)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._cache = QueryCache()
        self._gauges = GaugeLines()
        self._remedy = RemedyPane()

    def body(self) -> Iterable[Widget]:
        yield self._gauges
        yield self.list
        yield self._remedy

    def columns(self) -> Sequence[Column[Finding]]:
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
