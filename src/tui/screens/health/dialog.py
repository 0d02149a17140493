"""A finding in full, however long it is."""

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from resumes.health.findings import Finding
from tui.actions import Place, bindings
from tui.screens.health.remedy import finding_line, remedy_line
from tui.screens.health.signs import SIGNS
from tui.text import safe
from tui.widgets.key_line import KeyLine
from tui.widgets.lines import TitleLine
from tui.widgets.text_pane import Paragraph, TextPane


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
