"""Looking through the watched folder: which files there are, and whose.

The directory is the truth; events only say that a look is worth while. Nothing is opened here.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from importer.names import escaped, find_extension
from importer.reading import Signature, signature_of
from importer.telling import Remark
from resumes.file_names import SYSTEM_FOLDERS as SYSTEM_FOLDERS
from resumes.file_names import TEMPORARY as TEMPORARY
from resumes.file_names import is_outcome as is_outcome
from resumes.file_names import is_passed_over as is_passed_over


class Seen(NamedTuple):
    """A name in an inbox: its path, and its path below ROOT, both as text with surrogates.

    `signature` is None for what is never imported.
    """

    path: str
    name: str
    signature: Signature | None


def iter_inbox(folder: str, *, below: str, remark: Remark) -> Iterator[Seen]:
    """What lies in an inbox, in no order, folder by folder; nothing more is in memory.

    `below` leads the names, and is empty for ROOT itself, whose folders are inboxes of their own.
    """
    waiting = [(folder, below)]
    while waiting:
        path, name = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if not name and is_outcome(entry.name):
                        continue
                    inner = f"{name}/{entry.name}" if name else entry.name
                    if not is_folder(entry):
                        if (seen := _seen(entry, inner)) is not None:
                            yield seen
                    elif below:
                        waiting.append((entry.path, inner))
        except FileNotFoundError:
            pass
        except OSError as error:
            shown = escaped(name) or "the watched folder"
            remark(
                f"unlisted {shown}", f"Cannot look into {shown}: {error.strerror}. Its files wait"
            )


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether to look into it: not through links, nor into what poses as a file."""
    name = entry.name
    return (
        entry.is_dir(follow_symlinks=False)
        and not is_passed_over(name)
        and find_extension(name) is None
    )


def _seen(entry: os.DirEntry[str], below: str) -> Seen | None:
    """What the entry is; None when it vanished between two looks."""
    name = entry.name
    is_candidate = find_extension(name) is not None and not is_passed_over(name)
    if not is_candidate or not entry.is_file(follow_symlinks=False):
        return Seen(entry.path, below, None)
    try:
        return Seen(entry.path, below, signature_of(entry.stat(follow_symlinks=False)))
    except FileNotFoundError:
        return None


def find_inboxes(root: str) -> list[str]:
    """The parts of ROOT: its own files, under the empty name, and each folder in it that may bear
    an account's name. Raises OSError."""
    with os.scandir(root) as entries:
        names = sorted(
            entry.name for entry in entries if not is_outcome(entry.name) and is_folder(entry)
        )
    return ["", *names]
