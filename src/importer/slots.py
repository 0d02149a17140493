"""Slots: the processes that work in a watched folder, and the files that they have under way.

    ROOT/.importer/0.lock   0.files    the importer's slot
    ROOT/.importer/1.lock   1.files    the slot of its first helper process, and so on

A process holds its lock (`flock`) until it ends, however it ends. Only the lock is authoritative;
process IDs are not used. The process that holds slot 0 is the folder's importer, and other
importers stand by (pitfalls I8). The slot's other file is a note of the process's work in progress.
Lines are only appended to it, and it is emptied when nothing is under way; the outcomes are in the
ledger. A line that was cut off when a process was killed is ignored.
"""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from importer import files
from importer.claims import CLAIM_ID, Claim, File
from importer.files import UNREAD, Signature, escaped_before
from resumes.store.identifiers import ACCOUNT_ID
from resumes.watched_names import OWN

MAX_BYTES = 64 * 1024 * 1024
"""The maximum size of a note that is read. The importer writes no larger note."""
LONG_BYTES = 1024 * 1024
"""When a note has grown to this size, it is rewritten with the files that are still in progress."""
_SLOT_FILE = re.compile(r"([0-9]{1,4})\.(?:lock|files)")
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOTE_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    files: list[tuple[Claim, Signature | None, str | None, bool]] = []
    """Files that are now under way, or new information about them: the claim, the signature of the
    content that was read, its digest, and whether only this file is being read (`File.is_begun`). A
    claim's source is in hexadecimal, since a path need not be text."""
    ended: list[str] = []


class Slot:
    """The slot with this number. It may belong to another process until `take` succeeds."""

    def __init__(self, root: Path, number: int) -> None:
        self.number = number
        self._folder = root / OWN
        self._lock_path = f"{self._folder}/{number}.lock"
        self._path = f"{self._folder}/{number}.files"
        self._lock: int | None = None
        self._note: int | None = None
        self._bytes = 0
        self._files: dict[str, File] = {}

    def take(self) -> bool:
        """Take the slot unless another process holds it, and return whether this process holds it
        now. `load` reads the previous process's entries in the note. Raises OSError."""
        self._close()
        self._folder.mkdir(exist_ok=True)
        self._lock = os.open(self._lock_path, _LOCK_FLAGS, 0o600)
        try:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Another process may have removed the file between these two steps.
                if self.is_held:
                    self._note = os.open(self._path, _NOTE_FLAGS, 0o600)
                    self._bytes = os.fstat(self._note).st_size
        finally:
            if self._note is None:
                self._close()
        return self._note is not None

    @property
    def is_held(self) -> bool:
        """Whether the lock that is held is still at its path. Raises OSError."""
        if self._lock is None:
            return False
        found = files.find_signature(self._lock_path)
        return found is not None and found.inode == os.fstat(self._lock).st_ino

    def load(self) -> list[File]:
        """Return the previous process's files; `end` removes them from the note. Raises OSError."""
        self._files = _load(self._path)
        if not self._files:
            self.end(())  # empty a note without a valid entry
        return list(self._files.values())

    def note(self, files: Iterable[File], *, must_last: bool = True) -> None:
        """Note files that are now under way, or what has changed about them. Raises OSError
        if the note `must_last` and cannot be written."""
        noted = {file.claim.id: file for file in files}
        if noted:
            try:
                self._append({"files": [*map(_noted, noted.values())]})
            except OSError:
                if must_last:
                    raise
            self._files |= noted

    def end(self, claim_ids: Iterable[str]) -> bool:
        """Note that these files are finished. Return whether no other file is under way."""
        claim_ids = list(claim_ids)
        for claim_id in claim_ids:
            self._files.pop(claim_id, None)
        with contextlib.suppress(OSError):  # recovery of a finished file has the same outcome
            if self._files:
                self._append({"ended": claim_ids})
            elif self._note is not None and self._bytes:
                os.ftruncate(self._note, 0)
                self._bytes = 0
        return not self._files

    def leave(self) -> None:
        """Release the slot. This can be called twice."""
        with contextlib.suppress(OSError):  # in an unreachable folder, the slot is free anyway
            if self.is_held and not self._bytes:
                Path(self._path).unlink(missing_ok=True)
                Path(self._lock_path).unlink()
        self._close()

    def _close(self) -> None:
        for descriptor in (self._note, self._lock):
            if descriptor is not None:
                with contextlib.suppress(OSError):  # on a detached disk; it is closed anyway
                    os.close(descriptor)
        self._note = self._lock = None
        self._bytes = 0
        self._files.clear()

    def _append(self, line: dict[str, list[Any]]) -> None:
        content = b"\n%b\n" % _encode(line)  # ends a line that was cut off earlier
        assert self._note is not None
        try:
            if self._bytes > LONG_BYTES:
                self._rewrite()
            left = memoryview(content)
            while left:
                left = left[os.write(self._note, left) :]
        except OSError as error:
            error.filename = self._path  # so that the message identifies the full disk
            raise
        self._bytes += len(content)

    def _rewrite(self) -> None:
        path = f"{self._path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108  (text, as in all of the hot path)
        descriptor = os.open(path, _NOTE_FLAGS | os.O_EXCL, 0o600)
        content = _encode({"files": [*map(_noted, self._files.values())]})
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(content)
            os.replace(path, self._path)  # noqa: PTH105
        except OSError:
            os.close(descriptor)
            raise
        assert self._note is not None
        os.close(self._note)
        self._note, self._bytes = descriptor, len(content)


def list_numbers(root: Path) -> list[int]:
    """Return the numbers of all slots, including those of dead processes. Raises OSError."""
    names = map(_SLOT_FILE.fullmatch, os.listdir(root / OWN))  # noqa: PTH208
    return sorted({int(name[1]) for name in names if name})


_encode = msgspec.json.Encoder().encode
# Not strict, because earlier versions wrote the numbers of a signature as text.
_decode = msgspec.json.Decoder(_Line, strict=False).decode


def _noted(file: File) -> tuple[object, ...]:
    """Return the file in the format of a line."""
    claim, digest = file.claim, file.digest
    source = os.fsencode(claim.source).hex()
    is_begun = file.is_begun
    return (*claim[:4], source, *claim[5:]), file.signature, digest and digest.hex(), is_begun


def _file(claim: Claim, signature: Signature | None, digest: str | None, is_begun: bool) -> File:
    """Return a line's file. Raises ValueError if the importer cannot have written the line."""
    source = bytes.fromhex(claim.source)
    if not (CLAIM_ID.fullmatch(claim.id) and ACCOUNT_ID.fullmatch(claim.account_id)):
        raise ValueError
    if claim.first_month not in (None, 0, 1):
        raise ValueError
    if 0 in source or {b"", b".", b".."}.intersection(source.split(b"/")):
        raise ValueError  # the path leads out of ROOT
    claim = claim._replace(
        account=escaped_before(claim.account),
        name=escaped_before(claim.name),
        source=os.fsdecode(source),
    )
    return File(
        claim,
        signature=signature or UNREAD,
        digest=None if digest is None else bytes.fromhex(digest),
        is_begun=is_begun,
    )


def _load(path: str) -> dict[str, File]:
    found: dict[str, File] = {}
    with contextlib.suppress(FileNotFoundError):  # the note may have been removed by hand
        for line in files.load(path, MAX_BYTES).body.splitlines():
            # Ignore lines that were cut off or edited.
            with contextlib.suppress(ValueError):
                said = _decode(line)
                found |= {noted[0].id: _file(*noted) for noted in said.files}
                for claim_id in said.ended:
                    found.pop(claim_id, None)
    return found
