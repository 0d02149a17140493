"""Which names in a watched folder are of files to import. Nothing is opened."""

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
"""Endings of files to import, longer ones before those that they end in."""

ENDINGS: Final = ".json, .ndjson, .jsonl, .gz or .zip"
"""These in words; `.gz` stands for all compressed ones but `.zip`."""

TEMPORARY: Final = (".part", ".tmp", "~", ".crdownload", ".filepart", ".download", ".uploading")
SYSTEM_FOLDERS: Final = frozenset({"@eaDir", "__MACOSX", "lost+found"})

REPORT: Final = ".report.json"
"""Ending of the importer's reports."""

OWN: Final = ".importer"
"""The folder below ROOT for what importers note about ROOT itself."""


def find_extension(name: str) -> str | None:
    """Return the ending, in lower case, if files of this name are to be imported; None if not."""
    lowered = name.lower()
    if not lowered.endswith(EXTENSIONS):
        return None
    return next(ending for ending in EXTENSIONS if lowered.endswith(ending))


def is_temporary(name: str) -> bool:
    """Return whether programs give this name to a file while they write it."""
    return name.lower().endswith(TEMPORARY)


def is_hidden(name: str) -> bool:
    """Return whether the file or folder is hidden, or some system's own."""
    return name.startswith(".") or name in SYSTEM_FOLDERS


def is_hidden_or_temporary(name: str) -> bool:
    """Return whether a file or folder of this name is hidden, temporary, or some system's own."""
    return is_hidden(name) or is_temporary(name)


def may_be_folder(name: str) -> bool:
    """Return whether a folder of this name is looked through."""
    return find_extension(name) is None and not is_hidden_or_temporary(name)


def is_outcome(name: str) -> bool:
    """Return whether a name directly in ROOT is the importer's, now or in a later version."""
    return name.startswith("_") or name == OWN
