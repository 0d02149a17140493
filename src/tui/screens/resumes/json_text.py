"""The stored JSON as text that is still JSON: what cannot be drawn is written as an escape."""

from typing import Any

import orjson

from resumes.text import escaped_json
from tui.text import safe
from tui.widgets.text_pane import Paragraph


def json_paragraphs(document: Any) -> list[Paragraph]:
    """A paragraph for each line of the indented document, in the order of its keys."""
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    # Line ends are JSON's own here: those inside strings are escapes already.
    return [_line(line) for line in text.split("\n")]


def _line(line: str) -> Paragraph:
    text = line.lstrip(" ")
    return Paragraph(safe(escaped_json(text)), mark=" " * (len(line) - len(text)))
