"""Any bytes, as text on its way to a terminal, a log, a report or a file name."""

import json
import os
import re
from typing import Final

from cli import output as cli_text
from importer import files
from resumes.analyzer.view import filename, list_title
from resumes.text import escaped, escaped_json, is_harmless
from tests.fuzz.declared import bounded
from tui import text as tui_text

MAX_STEM_BYTES: Final = 120
MAX_CELLS: Final = 40

_ESCAPED: Final = re.compile(
    r"\\(?:\\|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))|([^\\]+)", re.DOTALL
)


def check_shown_text(data: bytes) -> None:
    """No character that does anything gets through, and nothing that is said gets lost."""
    text = data.decode(errors="surrogateescape")
    with bounded(len(data)):
        _check_escaped(text)
        _check_terminal(text)
        _check_columns(text)
        _check_json(text)
        _check_file_name(text)
        _check_download(data.decode(errors="replace"))


def _check_escaped(text: str) -> None:
    shown = escaped(text)
    assert is_harmless(shown)
    assert not set("\x1b\x9b\n\r\t\u202e\u2028") & set(shown)
    assert escaped(shown) == shown
    shown.encode()
    assert not is_harmless(text) or shown == text


def _check_terminal(text: str) -> None:
    shown = tui_text.safe_text(text)
    assert is_harmless(shown)
    assert tui_text.safe_text(shown) == shown
    content = tui_text.safe(text)
    assert (content.plain, content.spans) == (shown, [])
    lines = tui_text.safe_lines(text)
    assert lines
    assert all(map(is_harmless, lines))


def _check_columns(text: str) -> None:
    safe = cli_text.safe_text(text)
    cells = len(text) % MAX_CELLS + 1
    cut = cli_text.cut(safe, cells)
    assert cli_text.width(cut) <= cells
    for to_the_right in (False, True):
        padded = cli_text.pad(cut, cells, to_the_right=to_the_right)
        assert cli_text.width(padded) == cells
        assert padded.strip(" ") == cut.strip(" ")


def _check_json(text: str) -> None:
    """A value with the text in it stays that value, as JSON that does nothing to a terminal."""
    value = {"text": text}
    shown = escaped_json(json.dumps(value, indent=2, ensure_ascii=False))
    assert json.loads(shown) == value
    assert all(map(is_harmless, shown.split("\n")))


def _check_file_name(text: str) -> None:
    name = text.replace("\0", "").replace("/", "")
    shown = files.escaped(name)
    assert is_harmless(shown)
    assert _unescaped(shown) == os.fsencode(name)
    assert files.escaped_before(shown) == shown[-4 * files.MAX_NAME_CHARS :]
    stem = files.safe_stem(shown)
    assert 1 <= len(stem.encode()) <= MAX_STEM_BYTES
    assert is_harmless(stem)
    assert "/" not in stem
    assert stem[0] not in ".-"


def _unescaped(shown: str) -> bytes:
    """The bytes of the name that is shown so."""
    parts = []
    for found in _ESCAPED.finditer(shown):
        byte, short, long, plain = found.groups()
        if byte:
            parts.append(bytes.fromhex(byte))
        elif short or long:
            parts.append(chr(int(short or long, 16)).encode(errors="surrogatepass"))
        else:
            parts.append((plain or "\\").encode())
    return b"".join(parts)


def _check_download(text: str) -> None:
    for title, name in ((text, None), (None, text), (text, text)):
        made = filename(title, name)
        assert len(made.encode()) <= MAX_STEM_BYTES
        assert made.endswith(".pdf")
        assert made[0] != "."
        assert is_harmless(made) or not is_harmless(text)
        assert list_title(title, name).strip()
