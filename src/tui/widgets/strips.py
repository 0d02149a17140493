"""From `Content` to the lines that Textual's line API draws."""

from collections.abc import Sequence

from rich.segment import Segment
from textual.content import Content
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from tui.widgets.columns import GAP_CELLS, MARGIN_CELLS


def line_strip(widget: Widget, content: Content, style: Style) -> Strip:
    """The content on a line of the widget's width; what does not fit is cut."""
    return _whole_line(widget, _segments(widget, content, style), style)


def cells_strip(widget: Widget, cells: Sequence[tuple[Content, int]], style: Style) -> Strip:
    """Cells side by side, each in its width; one that does not fit ends in an ellipsis."""
    segments = [Segment(" " * MARGIN_CELLS, style.rich_style)]
    for content, width in cells:
        segments += _segments(widget, content.truncate(width, ellipsis=True, pad=True), style)
        segments.append(Segment(" " * GAP_CELLS, style.rich_style))
    return _whole_line(widget, segments, style)


def _segments(widget: Widget, content: Content, style: Style) -> list[Segment]:
    parse = widget.app.stylesheet.parse_style
    return [
        Segment(text, (style + part).rich_style)
        for text, part in content.render(style, end="", parse_style=parse)
    ]


def _whole_line(widget: Widget, segments: list[Segment], style: Style) -> Strip:
    return Strip(segments).adjust_cell_length(widget.size.width, style.rich_style)
