"""Looking through the watched folder: which files there are, and whose.

The directory is the truth; events only say that a look is worth while. Nothing is opened here.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from importer.names import EXTENSION, WORK, escaped
from importer.reading import Signature, signature_of
from importer.telling import Remark
from resumes.store.accounts import AccountInfo

TEMPORARY = (".part", ".tmp", "~", ".crdownload", ".filepart", ".download", ".uploading")
SYSTEM_FOLDERS = frozenset({"@eaDir", "__MACOSX"})


class Seen(NamedTuple):
    """A name in an inbox. `signature` is None for what is never imported."""

    path: str
    name: str
    signature: Signature | None


@dataclass(frozen=True, slots=True)
class Found:
    """A file to try. `name` is its path below ROOT; both are text with surrogates."""

    path: str
    name: str
    account: AccountInfo
    signature: Signature


def is_passed_over(name: str) -> bool:
    """Whether a file or folder of this name is hidden, temporary, or some system's own."""
    return name.startswith(".") or name.lower().endswith(TEMPORARY) or name in SYSTEM_FOLDERS


def is_outcome(name: str) -> bool:
    """Whether a name directly in ROOT is one of ours, now or in a later version."""
    return name.startswith("_") or name == WORK


def iter_inbox(folder: str, *, below: str, is_recursive: bool, remark: Remark) -> Iterator[Seen]:
    """What lies in an inbox: of each folder the oldest files first, then the folders within.

    `below` leads the names, and is empty for ROOT itself. One folder is in memory at a time.
    """
    waiting = [(folder, below)]
    while waiting:
        path, name = waiting.pop()
        files, folders = _list_folder(path, name, remark)
        yield from files
        if is_recursive:
            waiting.extend(reversed(folders))


def _list_folder(path: str, name: str, remark: Remark) -> tuple[list[Seen], list[tuple[str, str]]]:
    files: list[Seen] = []
    folders: list[tuple[str, str]] = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if not name and is_outcome(entry.name):
                    continue
                below = f"{name}/{entry.name}" if name else entry.name
                if _is_folder(entry):
                    folders.append((entry.path, below))
                elif (seen := _seen(entry, below)) is not None:
                    files.append(seen)
    except FileNotFoundError:
        pass
    except OSError as error:
        shown = escaped(name) or "the watched folder"
        remark(f"unlisted {shown}", f"Cannot look into {shown}: {error.strerror}. Its files wait")
    files.sort(key=_by_age)
    folders.sort()
    return files, folders


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether to look into it: not through links, nor into what poses as a file."""
    name = entry.name
    return (
        entry.is_dir(follow_symlinks=False)
        and not is_passed_over(name)
        and not name.lower().endswith(EXTENSION)
    )


def _by_age(seen: Seen) -> tuple[int, str]:
    return (seen.signature.mtime_ns if seen.signature else 0, seen.name)


def _seen(entry: os.DirEntry[str], below: str) -> Seen | None:
    """What the entry is; None when it vanished between two looks."""
    name = entry.name
    is_candidate = name.lower().endswith(EXTENSION) and not is_passed_over(name)
    if not is_candidate or not entry.is_file(follow_symlinks=False):
        return Seen(entry.path, below, None)
    try:
        return Seen(entry.path, below, signature_of(entry.stat(follow_symlinks=False)))
    except FileNotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class Inbox:
    """A part of ROOT with one owner; `account` is None while nobody owns it."""

    folder: str
    below: str
    account: AccountInfo | None

    def iter_seen(self, remark: Remark) -> Iterator[Seen]:
        """What lies in it."""
        return iter_inbox(
            self.folder, below=self.below, is_recursive=bool(self.below), remark=remark
        )

    def holds_files(self) -> bool:
        """Whether there is a file to try, had it an owner."""
        return any(seen.signature for seen in self.iter_seen(lambda key, sentence: None))

    def iter_found(self, remark: Remark) -> Iterator[Found]:
        """The files to try; none while nobody owns them."""
        if self.account is None:
            return
        for path, name, signature in self.iter_seen(remark):
            if signature is not None:
                yield Found(path, name, self.account, signature)


def find_inboxes(
    root: str, accounts: Mapping[str, AccountInfo], default_account: str | None
) -> list[Inbox]:
    """ROOT's own files, and each folder in it that may bear an account's name."""
    default = accounts.get(default_account) if default_account is not None else None
    with os.scandir(root) as entries:
        names = sorted(
            entry.name for entry in entries if not is_outcome(entry.name) and _is_folder(entry)
        )
    folders = [Inbox(os.path.join(root, name), name, accounts.get(name)) for name in names]  # noqa: PTH118  (text, as names are)
    return [Inbox(root, "", default), *folders]


def in_turns(sources: list[Iterator[Found]]) -> Iterator[Found]:
    """One from each source in turn, so that no account's backlog makes the others wait."""
    while sources:
        left = []
        for source in sources:
            found = next(source, None)
            if found is not None:
                yield found
                left.append(source)
        sources = left


class Look:
    """One look through the inbox: how long it takes in itself, and whether it came to the end."""

    def __init__(self, monotonic: Callable[[], float], *, ends_at: float) -> None:
        self._monotonic = monotonic
        self._ends_at = ends_at
        self.took_s = 0.0
        self.is_complete = False

    def through(self, found: Iterator[Found]) -> Iterator[Found]:
        """What is found, until the time is over."""
        while True:
            started = self._monotonic()
            one = next(found, None)
            ended = self._monotonic()
            self.took_s += ended - started
            if one is None:
                self.is_complete = True
                return
            yield one
            if self._monotonic() >= self._ends_at + 5 * self.took_s:
                return
