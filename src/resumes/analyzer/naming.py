"""What a resume is called: in a list, and as a file to download."""

import re
from typing import NamedTuple
from unicodedata import normalize
from urllib.parse import quote

MAX_FILENAME_BYTES = 120

_UNTITLED = "New Resume"

# Control, bidirectional and other invisible characters, and those that paths or common file
# systems give a meaning to.
_UNSAFE_CHARS = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r'\U000e0000-\U000e007f<>:"/\\|?*'
)
_UNSAFE = re.compile(f"[{_UNSAFE_CHARS}]")
_UNSAFE_OR_BLANK = re.compile(rf"[{_UNSAFE_CHARS}\s]")


class Names(NamedTuple):
    """What a resume says that it is called; None when absent or blank."""

    title: str | None
    name: str | None
    """`header.name`."""


def list_title(title: str | None, name: str | None) -> str:
    """What a list shows for a resume; blank counts as absent (docs/format.md, Names)."""
    if title and not title.isspace():
        return title
    if name and not name.isspace():
        return f"{name} Resume"
    return _UNTITLED


def filename(title: str | None, name: str | None) -> str:
    """A file name for downloads that is safe everywhere: `AdaLovelaceResume.pdf`.

    Made from the name, else from the title, else `Resume.pdf`; NFC, at most 120 bytes of UTF-8
    (docs/format.md, Names).
    """
    if name and (stem := _without(_UNSAFE_OR_BLANK, name)):
        return _cut(stem, "Resume.pdf")
    if title and (stem := _without(_UNSAFE, " ".join(title.split()))):
        return _cut(stem, ".pdf")
    return "Resume.pdf"


def attachment(name: str) -> str:
    """Return the Content-Disposition of a file for download, of any name (RFC 6266)."""
    plain = name if name.isascii() and name.isprintable() and '"' not in name else "Resume.pdf"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def is_filename(text: str) -> bool:
    """Whether `filename` may have made it, so that it is safe everywhere."""
    return (
        text.endswith(".pdf")
        and not text.startswith((".", " "))
        and len(text.encode()) <= MAX_FILENAME_BYTES
        and not _UNSAFE.search(text)
    )


def _without(unwanted: re.Pattern[str], text: str) -> str:
    # Leaving characters out can bring a letter and its accent together, hence NFC once more.
    return normalize("NFC", unwanted.sub("", normalize("NFC", text))).strip(" ").lstrip(". ")


def _cut(stem: str, suffix: str) -> str:
    room_bytes = MAX_FILENAME_BYTES - len(suffix)
    return stem.encode()[:room_bytes].decode(errors="ignore").rstrip(" ") + suffix
