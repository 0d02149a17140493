"""An imported file as it is shown beside the list and on a page of its own."""

from textual.app import ComposeResult
from textual.containers import Container

from tui.notices import Failure
from tui.screens.imports.file_text import file_paragraphs
from tui.screens.imports.reading import FileRead
from tui.screens.imports.source_pane import SourcePane
from tui.screens.imports.source_text import SourceText
from tui.text import safe
from tui.widgets.text_pane import Paragraph, TextPane


class FileView(Container):
    """What became of a file, and below it its source at the fault."""

    DEFAULT_CSS = """
    FileView { width: 1fr; height: 1fr; layout: vertical; }
    FileView > TextPane { height: 2fr; }
    FileView > SourcePane { height: 3fr; border-top: hkey $panel; }
    """

    def __init__(self, *, can_focus_text: bool) -> None:
        super().__init__()
        self._text = TextPane()
        self._source = SourcePane()
        self._text.can_focus = self._source.lines.can_focus = can_focus_text
        self.read: FileRead | None = None
        """What is shown; None when it is nothing, or a failure."""

    def compose(self) -> ComposeResult:
        yield self._text
        yield self._source

    def show(self, read: FileRead) -> None:
        """The file is shown; from its start, unless it was there before."""
        before = self.read
        if read == before:
            return
        self.read = read
        is_same = before is not None and before.file.claim_id == read.file.claim_id
        self._text.show(file_paragraphs(read), from_start=not is_same)
        if before is None or not is_same or before.source != read.source:
            self._show_source(read.source)

    def show_failure(self, failure: Failure) -> None:
        """The failure stands where the file would."""
        self._show_line(Paragraph(failure.content))

    def show_nothing(self) -> None:
        """There is no file to show."""
        self._show_line(Paragraph(safe("")))

    def _show_line(self, line: Paragraph) -> None:
        self.read = None
        self._text.show([line])
        self._show_source(None)

    def _show_source(self, source: SourceText | None) -> None:
        self._source.show(source)
        self.set_class(source is not None, "-two-parts")

    def scroll_text(self, pages: int) -> None:
        """The text, or the source where there is one, is that many screens further down."""
        shown = self._source.lines if self._source.display else self._text
        shown.action_scroll_pages(pages)

    def focus_text(self) -> None:
        """The keys that scroll are those of the text."""
        self._text.focus()

    def focus_other(self) -> bool:
        """The keys that scroll are those of the other part; False when there is none."""
        if not self._source.display:
            return False
        other = self._source.lines if self._text.has_focus else self._text
        other.focus()
        return True
