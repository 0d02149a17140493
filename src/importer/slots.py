"""Slots: which processes work in a watched folder, and on which files.

    ROOT/.importer/0.lock   0.files    the importer's own
    ROOT/.importer/1.lock   1.files    of the first process that helps it, and so on

A lock (`flock`) is held for as long as its process lives, however that ends, and is the sole
authority: no process id is read. Whoever holds slot 0 is the folder's importer, and others stand
by (pitfalls I8). A process's work in progress is in its slot's other file, a note of lines
that is only added to, and emptied when nothing is under way; the ledger has its outcome.
A line that was cut off by a kill says nothing.
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
"""Of a note that is read back; more is none of ours."""

LONG_BYTES = 1024 * 1024
"""A note that has grown to this size is rewritten with what is still in progress."""

_SLOT_FILE = re.compile(r"([0-9]{1,4})\.(?:lock|files)")
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOTE_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class SlotEntry(NamedTuple):
    """What a note says of a file that was under way."""

    claim: Claim
    signature: Signature | None = None
    """What was read, if it was read and no process died of that."""
    digest: bytes | None = None
    is_begun: bool = False
    """Whether it was being read alone."""


class _Noted(NamedTuple):
    """An entry as it stands in a line. Its claim's source is in hexadecimal, since a path need not
    be text, and its signature is text: some file systems keep times that, in nanoseconds, no integer
    of JSON holds."""

    claim: Claim
    signature: tuple[str, str, str] | None
    digest: str | None
    is_begun: bool


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    files: list[_Noted] = []
    """Under way from now on, or what is known of them now."""
    ended: list[str] = []


class Slot:
    """The slot of this number, which is another's until it is taken."""

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
        """Take the slot, unless another process holds it; return whether it is ours. Raises OSError.

        What was under way is forgotten here, and still noted: `load` says what that is.
        """
        self._close()
        self._folder.mkdir(exist_ok=True)
        self._lock = os.open(self._lock_path, _LOCK_FLAGS, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A process that leaves removes the file, perhaps between our two steps.
            if self.is_held:
                self._note = os.open(self._path, _NOTE_FLAGS, 0o600)
                self._bytes = os.fstat(self._note).st_size
                return True
        except BlockingIOError:
            pass
        except OSError:
            self._close()
            raise
        self._close()
        return False

    @property
    def is_held(self) -> bool:
        """Whether the lock that is held is still the one that others find. Raises OSError."""
        if self._lock is None:
            return False
        found = files.find_signature(self._lock_path)
        return found is not None and found.inode == os.fstat(self._lock).st_ino

    def load(self) -> list[SlotEntry]:
        """Return what the process before this one had under way; it stays noted until it is ended.

        Raises OSError.
        """
        self._entries = {entry.claim.id: entry for entry in _load(self._path)}
        if not self._entries:
            self.end(())  # what says nothing is of no use
        return list(self._entries.values())

    def note(self, claims: Iterable[Claim]) -> None:
        """Note files that are about to be opened, or what their claims say now. Raises OSError.

        What is known of one that is noted already stays known.
        """
        find = self._entries.get
        self.adopt(
            SlotEntry(claim) if (entry := find(claim.id)) is None else entry._replace(claim=claim)
            for claim in claims
        )

    def adopt(self, entries: Iterable[SlotEntry], *, must_last: bool = True) -> None:
        """Note all that is known of files. Raises OSError, unless it need not last."""
        noted = {one.claim.id: one for one in entries}
        if noted:
            try:
                self._append({"files": [_noted(one) for one in noted.values()]})
            except OSError:
                if must_last:
                    raise
            self._entries |= noted

    def note_read(self, read: Iterable[tuple[str, Signature, bytes | None]]) -> None:
        """Note what was read, and that no process died of it."""
        # Else they are only suspected in vain.
        self.adopt(
            (
                self._entries[claim_id]._replace(signature=signature, digest=digest)
                for claim_id, signature, digest in read
            ),
            must_last=False,
        )

    def begin_alone(self, claim: Claim, signature: Signature | None = None) -> None:
        """Note that a file is about to be read alone, or unpacked if its `signature` is given: it
        counts as deadly until `end_alone`, or until it is ended. Raises OSError."""
        entry = self._entries[claim.id]
        read = signature or entry.signature
        self.adopt([entry._replace(claim=claim, is_begun=True, signature=read)])

    def end_alone(self, claim_id: str) -> None:
        """Note that a file was read, and the process lives."""
        entry = self._entries[claim_id]._replace(is_begun=False)
        self.adopt([entry], must_last=False)  # else an attempt is only counted in vain

    def end(self, claim_ids: Iterable[str]) -> bool:
        """Note that nothing is left to do for these; return whether nothing at all is under way."""
        claim_ids = list(claim_ids)
        for claim_id in claim_ids:
            self._entries.pop(claim_id, None)
        with contextlib.suppress(OSError):  # what is ended twice comes to the same end
            if self._entries:
                self._append({"ended": claim_ids})
            elif self._note is not None and self._bytes:
                os.ftruncate(self._note, 0)
                self._bytes = 0
        return not self._entries

    def leave(self) -> None:
        """Let others have the slot. Safe to call twice."""
        with contextlib.suppress(OSError):  # in a folder that cannot be reached it is free anyway
            if self.is_held and not self._bytes:
                Path(self._path).unlink(missing_ok=True)
                Path(self._lock_path).unlink()
        self._close()

    def _close(self) -> None:
        descriptors = self._note, self._lock
        self._note = self._lock = None
        self._bytes = 0
        self._entries.clear()
        for descriptor in descriptors:
            if descriptor is not None:
                # On a disk that is gone it is closed all the same.
                with contextlib.suppress(OSError):
                    os.close(descriptor)

    def _append(self, line: dict[str, list[Any]]) -> None:
        content = b"\n%b\n" % _encode(line)  # what was cut off before ends here
        assert self._note is not None
        try:
            if self._bytes > LONG_BYTES:
                self._write_anew()
            left = memoryview(content)
            while left:
                left = left[os.write(self._note, left) :]
        except OSError as error:
            error.filename = self._path  # it says which disk is full
            raise
        self._bytes += len(content)

    def _write_anew(self) -> None:
        """Have the note say what is still under way, and nothing else."""
        path = f"{self._path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108  (text, as in all of the hot path)
        descriptor = os.open(path, _NOTE_FLAGS | os.O_EXCL, 0o600)
        content = _encode({"files": [_noted(one) for one in self._entries.values()]})
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
    """Return the slots that there are, of living processes and of those that are gone. Raises
    OSError."""
    names = map(_SLOT_FILE.fullmatch, os.listdir(root / OWN))  # noqa: PTH208
    return sorted({int(name[1]) for name in names if name})


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


def _noted(entry: SlotEntry) -> tuple[object, ...]:
    """Return what `_Noted` reads."""
    claim, signature, digest, is_begun = entry
    source = os.fsencode(claim.source).hex()
    read = None if signature is None else tuple(map(str, signature))
    return (*claim[:4], source, *claim[5:]), read, digest and digest.hex(), is_begun


def _entry(noted: _Noted) -> SlotEntry:
    """Raises ValueError for what none of ours wrote."""
    claim, read, digest, is_begun = noted
    source = bytes.fromhex(claim.source)
    if not (CLAIM_ID.fullmatch(claim.id) and ACCOUNT_ID.fullmatch(claim.account_id)):
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


def _load(path: str) -> list[SlotEntry]:
    entries: dict[str, SlotEntry] = {}
    with contextlib.suppress(FileNotFoundError):  # somebody has removed it
        for line in files.load(path, MAX_BYTES).body.splitlines():
            # Lines that were cut off say nothing, nor do those that anybody has edited.
            with contextlib.suppress(ValueError):
                said = _decode(line)
                entries |= {one.claim.id: _entry(one) for one in said.files}
                for claim_id in said.ended:
                    entries.pop(claim_id, None)
    return list(entries.values())
