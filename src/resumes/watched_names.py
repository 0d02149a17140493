"""Which names in a watched folder are of files to import. Nobody is asked, and nothing is opened."""

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
"""What the names of files to import end in, longer ones before those that they end in."""

TEMPORARY: Final = (".part", ".tmp", "~", ".crdownload", ".filepart", ".download", ".uploading")
SYSTEM_FOLDERS: Final = frozenset({"@eaDir", "__MACOSX"})

REPORT: Final = ".report.json"
"""What the names of the importer's reports end in."""

WORK: Final = ".work"
"""The folder below ROOT where claimed files are while they are worked on."""

OWN: Final = ".importer"
"""The folder below ROOT for what importers note of ROOT itself."""


def find_extension(name: str) -> str | None:
    """What the name ends in, in lower case, if a file of this name is to be imported."""
    lowered = name.lower()
    if lowered.endswith(EXTENSIONS):
        for ending in EXTENSIONS:
            if lowered.endswith(ending):
                return ending
    return None


def is_temporary(name: str) -> bool:
    """Whether the name is one that programs give to a file while they write it."""
    return name.lower().endswith(TEMPORARY)


def is_hidden(name: str) -> bool:
    """Whether the file or folder is hidden, or some system's own."""
    return name.startswith(".") or name in SYSTEM_FOLDERS


def is_passed_over(name: str) -> bool:
    """Whether a file or folder of this name is hidden, temporary, or some system's own."""
    return is_hidden(name) or is_temporary(name)


def is_outcome(name: str) -> bool:
    """Whether a name directly in ROOT is one of ours, now or in a later version."""
    return name.startswith("_") or name in (WORK, OWN)
