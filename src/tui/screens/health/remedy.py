"""What the row with the cursor says in full, and what to do about it."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from resumes.health.findings import Finding
from tui.screens.health.signs import SIGNS
from tui.text import joined, safe
from tui.widgets.lines import Note

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
