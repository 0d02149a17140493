"""The names of files to import in a watched folder, and why others are skipped. Nothing is opened."""

from enum import StrEnum
from typing import Final

EXTENSIONS: Final = (
    ".json",
    ".ndjson",
    ".jsonl",
    ".json.gz",
    ".ndjson.gz",
    ".jsonl.gz",
    ".gz",
    ".zip",
)
"""The endings of files to import, longer endings before their own suffixes."""

ENDINGS: Final = ".json, .ndjson, .jsonl, .gz or .zip"
"""These in words; `.gz` stands for all compressed files except `.zip`."""

DOCUMENTS: Final = (".pdf", ".doc", ".docx", ".odt", ".rtf", ".txt")
"""The endings of files that are imported if the user has an analyzer for them."""

DOCUMENT_ENDINGS: Final = ".pdf, .doc, .docx, .odt, .rtf or .txt"
"""These in words."""

TEMPORARY: Final = (".part", ".tmp", "~", ".crdownload", ".filepart", ".download", ".uploading")
SYSTEM_FOLDERS: Final = (
    # Synology, Asustor, TerraMaster; QNAP
    "#recycle", "#snapshot", "@eaDir", "@tmp", "@sharebin", "@sharesnap",
    "@Recycle", "@Recently-Snapshot", "@Transcode", "Network Recycle Bin",
    # Samba, Unraid; NetApp, ZFS, snapper
    ".recycle", ".Recycle.Bin", ".snapshot", "~snapshot", ".zfs", ".snapshots",
    # Windows
    "$RECYCLE.BIN", "RECYCLER", "System Volume Information", "DfsrPrivate",
    # macOS
    "__MACOSX", ".Trash", ".Trashes", ".TemporaryItems", "Network Trash Folder", "Temporary Items",
    # Linux; a user's number follows
    "lost+found", ".Trash-",
)  # fmt: skip
"""Folders of file servers and operating systems, in any case: recycle bins, snapshots, thumbnails.

A resume that was deleted on the share, or is in an old snapshot, must not be imported (pitfalls I19).
"""
_SYSTEM_FOLDERS: Final = frozenset(name.lower() for name in SYSTEM_FOLDERS)

REPORT: Final = ".report.json"
"""The ending of the importer's reports."""

OWN: Final = ".importer"
"""The folder below ROOT for the importers' own files."""


class SkipReason(StrEnum):
    """Why a file is not imported."""

    ENDING = "ending"
    HIDDEN = "hidden"
    LINK = "link"
    NO_FILE = "no_file"
    REPORT = "report"
    SYSTEM = "system"

    @property
    def sentence(self) -> str:
        """The reason as a sentence about one file."""
        return _SENTENCES[self]


_SENTENCES: Final = {
    SkipReason.ENDING: f"Not {ENDINGS}",
    SkipReason.HIDDEN: "Hidden or temporary name",
    SkipReason.LINK: "Symbolic link",
    SkipReason.NO_FILE: "Not a regular file",
    SkipReason.REPORT: "Import report",
    SkipReason.SYSTEM: "Recycle bin, snapshot or other system folder",
}


def find_extension(name: str) -> str | None:
    """Return the ending in lower case if a file with this name is to be imported, else None."""
    lowered = name.lower()
    if not lowered.endswith(EXTENSIONS):
        return None
    return next(ending for ending in EXTENSIONS if lowered.endswith(ending))


def is_document(name: str) -> bool:
    """Return whether a file with this name is given to the user's analyzer, if there is one."""
    return name.lower().endswith(DOCUMENTS)


def find_filed_extension(name: str) -> str | None:
    """Return the ending in lower case of a file that an importer may have filed, also if no analyzer is
    set by now; None for other names."""
    if is_document(name):
        return name[name.rindex(".") :].lower()
    return find_extension(name)


def is_temporary(name: str) -> bool:
    """Return whether the name is one that programs give to a file while they write it."""
    if name.endswith("~") and _is_undecoded(name[-2:-1]):
        return False  # in Shift-JIS, Big5 and GBK it is the second byte of a character
    return name.lower().endswith(TEMPORARY)


def _is_undecoded(char: str) -> bool:
    return "\udc80" <= char <= "\udcff"


def is_system_folder(name: str) -> bool:
    """Return whether this is the name of a system folder of file servers or operating systems."""
    stem = name.lower().rstrip("0123456789") if name.startswith(".") else name.lower()
    return stem in _SYSTEM_FOLDERS


def is_hidden(name: str) -> bool:
    """Return whether the file or folder is hidden, or belongs to a system."""
    return name.startswith(".") or is_system_folder(name)


def is_hidden_or_temporary(name: str) -> bool:
    """Return whether a file or folder with this name is hidden, temporary, or belongs to a system."""
    return is_hidden(name) or is_temporary(name)


def may_be_folder(name: str) -> bool:
    """Return whether a folder with this name is scanned."""
    return find_extension(name) is None and not is_hidden_or_temporary(name)


def is_outcome(name: str) -> bool:
    """Return whether a name directly in ROOT is reserved for this or later versions of the importer."""
    return name.startswith("_") or name == OWN
