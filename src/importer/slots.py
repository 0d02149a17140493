"""Slots: which processes work in a watched folder, and on which files.

    ROOT/.importer/0.lock   0.files    the importer's own
    ROOT/.importer/1.lock   1.files    of the first process that helps it, and so on

A lock (`flock`) is held for as long as its process lives, however that ends, and is the sole
authority: no process id is read. The process that holds slot 0 is the folder's importer, and others
stand by (pitfalls I8). A process's work in progress is in its slot's other file, a note of lines
that is only appended to, and emptied when nothing is under way; the outcomes are in the ledger.
A line that was cut off by a kill is ignored.
"""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from importer import files
from importer.claims import CLAIM_ID, Claim
from importer.files import Signature, escaped_before
from resumes.store.identifiers import ACCOUNT_ID
from resumes.watched_names import OWN

MAX_BYTES = 64 * 1024 * 1024
"""The maximum size of a note that is read; a larger one is not ours."""
LONG_BYTES = 1024 * 1024
"""A note that has grown to this size is rewritten with what is still in progress."""
_SLOT_FILE = re.compile(r"([0-9]{1,4})\.(?:lock|files)")
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOTE_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class SlotEntry(NamedTuple):
    """A note's entry about a file that was under way."""

    claim: Claim
    signature: Signature | None = None
    """The signature of what was read; None if the file was not read, or that killed a process."""
    digest: bytes | None = None
    is_begun: bool = False
    """Whether it was being read alone."""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    files: list[tuple[Claim, tuple[str, str, str] | None, str | None, bool]] = []
    """The entries of files that are under way from now on, or new facts about them. A claim's source is
    hexadecimal, since a path need not be text, and a signature is text, since the times of some file
    systems, in nanoseconds, exceed the integers of JSON."""
    ended: list[str] = []


class Slot:
    """The slot with this number; it may belong to another process until `take` succeeds."""

    def __init__(self, root: Path, number: int) -> None:
        self.number = number
        self._folder = root / OWN
        self._lock_path = f"{self._folder}/{number}.lock"
        self._path = f"{self._folder}/{number}.files"
        self._lock: int | None = None
        self._note: int | None = None
        self._bytes = 0
        self._entries: dict[str, SlotEntry] = {}

    def take(self) -> bool:
        """Take the slot, unless another process holds it; return whether it is ours. Raises OSError. The
        entries of the previous process stay in the note until `load` reads them."""
        self._close()
        self._folder.mkdir(exist_ok=True)
        self._lock = os.open(self._lock_path, _LOCK_FLAGS, 0o600)
        try:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Another process may have removed the file between our two steps.
                if self.is_held:
                    self._note = os.open(self._path, _NOTE_FLAGS, 0o600)
                    self._bytes = os.fstat(self._note).st_size
        finally:
            if self._note is None:
                self._close()
        return self._note is not None

    @property
    def is_held(self) -> bool:
        """Whether the lock that is held is still the one that others find. Raises OSError."""
        if self._lock is None:
            return False
        found = files.find_signature(self._lock_path)
        return found is not None and found.inode == os.fstat(self._lock).st_ino

    def load(self) -> list[SlotEntry]:
        """Return what the previous process had under way; it stays in the note until `end`. Raises OSError."""
        self._entries = _load(self._path)
        if not self._entries:
            self.end(())  # empty a note without a valid entry
        return list(self._entries.values())

    def note(self, claims: Iterable[Claim]) -> None:
        """Note files that are about to be opened, or their changed claims. Raises OSError. The other fields
        of an existing entry are kept."""
        known = self._entries
        self.adopt(known.get(claim.id, SlotEntry(claim))._replace(claim=claim) for claim in claims)

    def adopt(self, entries: Iterable[SlotEntry], *, must_last: bool = True) -> None:
        """Note entries as they are. Raises OSError if they `must_last` and cannot be written."""
        noted = {entry.claim.id: entry for entry in entries}
        if noted:
            try:
                self._append({"files": [*map(_noted, noted.values())]})
            except OSError:
                if must_last:
                    raise
            self._entries |= noted

    def note_read(self, read: Iterable[tuple[str, Signature, bytes | None]]) -> None:
        """Note what was read, and that no process died of it."""
        # If this is lost, the files are only read alone without need.
        entries = (
            self._entries[claim_id]._replace(signature=signature, digest=digest)
            for claim_id, signature, digest in read
        )
        self.adopt(entries, must_last=False)

    def begin_alone(self, claim: Claim, signature: Signature | None = None) -> None:
        """Note that a file is about to be read alone, or unpacked if its `signature` is given: until
        `end_alone` or `end`, the death of this process counts as an attempt. Raises OSError."""
        entry = self._entries[claim.id]
        read = signature or entry.signature
        self.adopt([entry._replace(claim=claim, is_begun=True, signature=read)])

    def end_alone(self, claim_id: str) -> None:
        """Note that the process survived reading the file."""
        entry = self._entries[claim_id]._replace(is_begun=False)
        self.adopt([entry], must_last=False)  # if lost, only one attempt too many is counted

    def end(self, claim_ids: Iterable[str]) -> bool:
        """Note that these files are finished; return whether no file at all is under way."""
        claim_ids = list(claim_ids)
        for claim_id in claim_ids:
            self._entries.pop(claim_id, None)
        with contextlib.suppress(OSError):  # recovery of a finished file has the same outcome
            if self._entries:
                self._append({"ended": claim_ids})
            elif self._note is not None and self._bytes:
                os.ftruncate(self._note, 0)
                self._bytes = 0
        return not self._entries

    def leave(self) -> None:
        """Release the slot. Safe to call twice."""
        with contextlib.suppress(OSError):  # in an unreachable folder it is free anyway
            if self.is_held and not self._bytes:
                Path(self._path).unlink(missing_ok=True)
                Path(self._lock_path).unlink()
        self._close()

    def _close(self) -> None:
        for descriptor in (self._note, self._lock):
            if descriptor is not None:
                with contextlib.suppress(OSError):  # on a detached disk; it is closed nevertheless
                    os.close(descriptor)
        self._note = self._lock = None
        self._bytes = 0
        self._entries.clear()

    def _append(self, line: dict[str, list[Any]]) -> None:
        content = b"\n%b\n" % _encode(line)  # a line that was cut off before ends here
        assert self._note is not None
        try:
            if self._bytes > LONG_BYTES:
                self._rewrite()
            left = memoryview(content)
            while left:
                left = left[os.write(self._note, left) :]
        except OSError as error:
            error.filename = self._path  # so that the message says which disk is full
            raise
        self._bytes += len(content)

    def _rewrite(self) -> None:
        path = f"{self._path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108  (text, as in all of the hot path)
        descriptor = os.open(path, _NOTE_FLAGS | os.O_EXCL, 0o600)
        content = _encode({"files": [*map(_noted, self._entries.values())]})
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
    """Return the numbers of all slots, of living and dead processes. Raises OSError."""
    names = map(_SLOT_FILE.fullmatch, os.listdir(root / OWN))  # noqa: PTH208
    return sorted({int(name[1]) for name in names if name})


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


def _noted(entry: SlotEntry) -> tuple[object, ...]:
    """Return the entry in the form that a line has."""
    claim, signature, digest, is_begun = entry
    source = os.fsencode(claim.source).hex()
    read = None if signature is None else tuple(map(str, signature))
    return (*claim[:4], source, *claim[5:]), read, digest and digest.hex(), is_begun


def _entry(
    claim: Claim, read: tuple[str, str, str] | None, digest: str | None, is_begun: bool
) -> SlotEntry:
    """Return a line's entry. Raises ValueError if the importer cannot have written it."""
    source = bytes.fromhex(claim.source)
    if not (CLAIM_ID.fullmatch(claim.id) and ACCOUNT_ID.fullmatch(claim.account_id)):
        raise ValueError
    if claim.first_month not in (None, 0, 1):
        raise ValueError
    if 0 in source or {b"", b".", b".."}.intersection(source.split(b"/")):
        raise ValueError  # it leads out of ROOT
    signature = None if read is None else Signature(*map(int, read))
    sha256 = None if digest is None else bytes.fromhex(digest)
    claim = claim._replace(
        account=escaped_before(claim.account),
        name=escaped_before(claim.name),
        source=os.fsdecode(source),
    )
    return SlotEntry(claim, signature, sha256, is_begun)


def _load(path: str) -> dict[str, SlotEntry]:
    entries: dict[str, SlotEntry] = {}
    with contextlib.suppress(FileNotFoundError):  # it may have been removed by hand
        for line in files.load(path, MAX_BYTES).body.splitlines():
            # Lines that were cut off or edited are ignored.
            with contextlib.suppress(ValueError):
                said = _decode(line)
                entries |= {file[0].id: _entry(*file) for file in said.files}
                for claim_id in said.ended:
                    entries.pop(claim_id, None)
    return entries
