"""One resume beside a list, or on a page of its own: it is shown what to show."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from tui.notices import Failure
from tui.screens.resumes.views import Shown, View
from tui.text import joined, safe
from tui.widgets.text_pane import Paragraph, TextPane

VIEWS = tuple(View)


class ViewLine(Static):
    """The views there are, and which this is."""

    DEFAULT_CSS = """
    ViewLine { height: 1; padding: 0 1; text-wrap: nowrap; }
    """

    def show(self, view: View) -> None:
        """The line marks this view."""
        self.update(view_tabs(view))


def view_tabs(current: View) -> Content:
    """The names of the views, the current one reversed."""
    return joined(
        [safe(f" {view} ", "bold reverse" if view is current else "dim") for view in View]
    )


class ResumePane(Vertical):
    """A resume in one of its views."""

    DEFAULT_CSS = """
    ResumePane { width: 1fr; height: 1fr; }
    """

    def __init__(self, *, can_focus_text: bool) -> None:
        super().__init__()
        self.view = View.TEXT
        self._shown: Shown | None = None
        self._text = TextPane()
        self._text.can_focus = can_focus_text

    def compose(self) -> ComposeResult:
        line = ViewLine()
        line.show(self.view)
        yield line
        yield self._text

    @property
    def shown(self) -> Shown | None:
        """What is shown; None when it is nothing, or a failure."""
        return self._shown

    def turn(self, views: int) -> None:
        """That many views further, round and round; what was shown stays until the new one is."""
        self.view = VIEWS[(VIEWS.index(self.view) + views) % len(VIEWS)]
        self.query_one(ViewLine).show(self.view)

    def show(self, shown: Shown) -> None:
        """The resume is shown; from its start, unless it was there before."""
        if shown == self._shown:
            return
        before = self._shown
        stays = before is not None and (before.entry.id, before.view) == (
            shown.entry.id,
            shown.view,
        )
        self._shown = shown
        self._text.show(shown.paragraphs, from_start=not stays)

    def show_failure(self, failure: Failure) -> None:
        """The failure stands where the resume would."""
        self._shown = None
        self._text.show([Paragraph(failure.content)])

    def show_nothing(self, line: str = "") -> None:
        """There is no resume to show."""
        self._shown = None
        self._text.show([Paragraph(safe(line, "dim"))])

    def scroll_pages(self, pages: int) -> None:
        """The text is that many screens further down."""
        self._text.action_scroll_pages(pages)
