"""The stored JSON as text that is still JSON: what cannot be drawn is written as an escape."""

import re
from typing import Any, Final

import orjson

from tui.text import UNSAFE, safe
from tui.widgets.text_pane import Paragraph

_UNSAFE: Final = re.compile(f"[{''.join(map(re.escape, map(chr, UNSAFE)))}]")


def json_paragraphs(document: Any) -> list[Paragraph]:
    """A paragraph for each line of the indented document, in the order of its keys."""
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    # Line ends are JSON's own here: those inside strings are escapes already.
    return [_line(line) for line in text.split("\n")]


def _line(line: str) -> Paragraph:
    text = line.lstrip(" ")
    return Paragraph(safe(_UNSAFE.sub(_escape, text)), mark=" " * (len(line) - len(text)))


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
