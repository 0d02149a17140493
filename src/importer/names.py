"""File names as they come, and what may be shown or written of them.

A name is any bytes but NUL and slash. Within Python it is text with surrogates for what is not
UTF-8 (`os.fsdecode`); such text must reach neither the store, nor a report, nor a terminal.
"""

import re

from resumes.file_names import EXTENSIONS as EXTENSIONS
from resumes.file_names import WORK as WORK
from resumes.file_names import find_extension as find_extension
from resumes.text import replaced

MAX_STEM_BYTES = 120
"""Leaves room in 255 bytes for a claim, an account and `.report.json`."""

MAX_NAME_CHARS = 4_096
"""Of a path that is read back; more than any file system allows."""

_NOT_PLAIN = re.compile(r"[^\w ._()+,@=-]")


def escaped(name: str) -> str:
    """The name as harmless text (`resumes.text`) that still says every byte of it.

    `\\xNN` is a byte that is not UTF-8 or an ASCII control character, `\\uNNNN` another character
    that is not harmless, `\\\\` a backslash.
    """
    return replaced(name.replace("\\", "\\\\"), _byte_by_byte)


def escaped_before(name: str) -> str:
    """A name that was escaped once, from a journal or report that anybody may have edited."""
    return replaced(name, _byte_by_byte)[:MAX_NAME_CHARS]


def _byte_by_byte(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that os.fsdecode could not decode
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def safe_stem(name: str) -> str:
    """The last part of an escaped path without its extension, safe in any file system and shell.

    At most 120 bytes, letters and digits of all scripts kept, never empty, and with no dash or
    dot first.
    """
    base = name.rpartition("/")[2]
    stem = base[: len(base) - len(find_extension(base) or "")]
    kept = _NOT_PLAIN.sub("_", stem).encode()[:MAX_STEM_BYTES].decode(errors="ignore")
    return kept.lstrip("-._ ").rstrip(" .") or "file"
