"""Decide by name which files in a watched folder are imported, and why others are skipped."""

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
"""The endings of files to import. A longer ending comes before its own suffix."""

ENDINGS: Final = ".json, .ndjson, .jsonl, .gz or .zip"
"""EXTENSIONS in words; `.gz` stands for all files that are compressed with gzip."""

DOCUMENTS: Final = (".pdf", ".doc", ".docx", ".odt", ".rtf", ".txt")
"""The endings of files that are imported if the user has an analyzer."""

DOCUMENT_ENDINGS: Final = ".pdf, .doc, .docx, .odt, .rtf or .txt"
"""DOCUMENTS in words."""

TEMPORARY: Final = (".part", ".tmp", "~", ".crdownload", ".filepart", ".download", ".uploading")
OFFICE_LOCK: Final = "~$"
"""The beginning of the name of a file that Microsoft Office keeps next to an open document."""

SYSTEM_FOLDERS: Final = (
    # Synology, Asustor; TerraMaster, Thecus; QNAP; Buffalo, Netgear
    "#recycle", "#snapshot", "@eaDir", "@tmp", "@sharebin", "@sharesnap", "_NAS_Recycle_",
    "@Recycle", "@Recently-Snapshot", "@Transcode", "Network Recycle Bin",
    "trashbox", "Recycle Bin",
    # Samba, Unraid; NetApp, ZFS, snapper; Nextcloud, ownCloud
    ".recycle", ".Recycle.Bin", "@GMT-", ".snapshot", "~snapshot", ".zfs", ".snapshots",
    "files_trashbin", "files_versions",
    # Windows
    "$RECYCLE.BIN", "RECYCLER", "RECYCLED", "System Volume Information", "DfsrPrivate",
    # macOS
    "__MACOSX", ".Trash", ".Trashes", ".TemporaryItems", "Network Trash Folder", "Temporary Items",
    # Linux
    "lost+found", ".Trash-",
)  # fmt: skip
"""Folders of file servers and operating systems: recycle bins, snapshots, thumbnails. Case is
ignored. More characters follow a name that ends in `-` or `_`, such as the time of a snapshot.

A resume that was deleted on the share, or is in an old snapshot, must not be imported (pitfalls I19).
"""
_SYSTEM_FOLDERS: Final = frozenset(name.lower() for name in SYSTEM_FOLDERS)
_BEGINNINGS: Final = tuple(name for name in _SYSTEM_FOLDERS if name.endswith(("-", "_")))

REPORT: Final = ".report.json"
"""The ending of the importer's reports."""

OWN: Final = ".importer"
"""The folder below ROOT for the importers' own files."""


class SkipReason(StrEnum):
    """The reason why a file is not imported."""

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
    """Return the ending in lower case if a file with this name is imported, otherwise None."""
    lowered = name.lower()
    if not lowered.endswith(EXTENSIONS):
        return None
    return next(ending for ending in EXTENSIONS if lowered.endswith(ending))


def is_document(name: str) -> bool:
    """Return whether a file with this name is given to the user's analyzer, if there is one."""
    return name.lower().endswith(DOCUMENTS)


def find_filed_extension(name: str) -> str | None:
    """Return the ending in lower case if an importer may have filed a file with this name.

    This includes files for the analyzer, even if there is no analyzer now."""
    if is_document(name):
        return name[name.rindex(".") :].lower()
    return find_extension(name)


def is_temporary(name: str) -> bool:
    """Return whether programs use such a name for a file while they write it."""
    if name.endswith("~") and _is_undecoded(name[-2:-1]):
        return False  # this can be the second byte of a character in Shift-JIS, Big5 and GBK
    return name.startswith(OFFICE_LOCK) or name.lower().endswith(TEMPORARY)


def _is_undecoded(char: str) -> bool:
    return "\udc80" <= char <= "\udcff"


def is_system_folder(name: str) -> bool:
    """Return whether this is the name of a system folder of a file server or operating system."""
    lowered = name.lower()
    return lowered in _SYSTEM_FOLDERS or (
        lowered.startswith(_BEGINNINGS) and find_filed_extension(name) is None
    )


def is_hidden(name: str) -> bool:
    """Return whether a file or folder with this name is hidden or belongs to a system."""
    return name.startswith(".") or is_system_folder(name)


def is_hidden_or_temporary(name: str) -> bool:
    """Return whether a file or folder with this name is hidden or temporary."""
    return is_hidden(name) or is_temporary(name)


def may_be_folder(name: str) -> bool:
    """Return whether a folder with this name is scanned."""
    return find_extension(name) is None and not is_hidden_or_temporary(name)


def is_outcome(name: str) -> bool:
    """Return whether a name directly in ROOT is reserved for the importer or its later versions."""
    return name.startswith("_") or name == OWN
