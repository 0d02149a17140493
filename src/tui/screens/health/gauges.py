"""The figures above the findings."""

from math import ceil

from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget

from resumes.durations import span
from resumes.health.metrics import InstallationMetrics
from resumes.store.import_ledger import FileOutcome
from resumes.store.store import Size
from resumes.text import counted, in_bytes
from tui.text import NONE, joined, safe
from tui.widgets.columns import MARGIN_CELLS
from tui.widgets.strips import cells_strip

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
