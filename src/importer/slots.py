"""Slots: which processes work in a watched folder, and on which files.

    ROOT/.importer/0.lock   0.files    the importer's own
    ROOT/.importer/1.lock   1.files    of the first process that helps it, and so on

A lock (`flock`) is held for as long as its process lives, however that ends, and is the sole
authority: no process id is read. Whoever holds slot 0 is the folder's importer, and others stand
by (pitfalls I8). What a process has under way stands in its slot's other file, a note of lines
that is only added to, and emptied when nothing is under way; the ledger says what became of it.
A line that was cut off by a kill says nothing.
"""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from importer import files
from importer.claims import CLAIM_ID, Claim, source_hex
from importer.files import Signature, escaped_before
from resumes.file_names import OWN
from resumes.store.identifiers import ACCOUNT_ID

MAX_BYTES = 64 * 1024 * 1024
"""Of a note that is read back; more is none of ours."""

LONG_BYTES = 1024 * 1024
"""A note as long as this is written anew with what is still under way."""

_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOTE_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Entry(NamedTuple):
    """What a note says of a file that was under way."""

    claim: Claim
    signature: Signature | None = None
    """What was read, if it was read and no process died of that."""
    digest: bytes | None = None
    is_begun: bool = False
    """Whether it was being read alone."""


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
        self._entries: dict[str, Entry] = {}

    def take(self) -> bool:
        """Have the slot, unless another process holds it; return whether it is ours. Raises OSError.

        What was under way is forgotten here, and still noted: `load` says what that is.
        """
        self._close()
        self._folder.mkdir(exist_ok=True)
        descriptor = os.open(self._lock_path, _LOCK_FLAGS, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = files.find_signature(self._lock_path)
            # Who leaves removes the file, perhaps between our two steps.
            if found is not None and found.inode == os.fstat(descriptor).st_ino:
                self._lock = descriptor
                self._note = os.open(self._path, _NOTE_FLAGS, 0o600)
                self._bytes = os.fstat(self._note).st_size
                return True
        except BlockingIOError:
            pass
        except OSError:
            os.close(descriptor)
            self._lock = None
            raise
        os.close(descriptor)
        return False

    @property
    def is_held(self) -> bool:
        """Whether the lock that is held is still the one that others find."""
        if self._lock is None:
            return False
        found = files.find_signature(self._lock_path)
        return found is not None and found.inode == os.fstat(self._lock).st_ino

    def load(self) -> list[Entry]:
        """What the process before this one had under way; it stays noted until it is ended.

        Raises OSError.
        """
        self._entries = {entry.claim.id: entry for entry in _load(self._path)}
        return list(self._entries.values())

    def find(self, claim_id: str) -> Claim | None:
        """The claim as it is noted; None when it is not under way."""
        entry = self._entries.get(claim_id)
        return None if entry is None else entry.claim

    def note(self, claims: Iterable[Claim]) -> None:
        """These files are under way, and about to be opened. Raises OSError; they are not then.

        Of one that is noted already, what was read of it stays known.
        """
        claims = list(claims)
        again = [claim for claim in claims if claim.id in self._entries]
        new = [claim for claim in claims if claim.id not in self._entries] if again else claims
        lines = [_line(new), _line(again, again=True)] if again else [_line(new)]
        self._append(lines)
        self._entries.update((claim.id, Entry(claim)) for claim in new)

    def note_read(self, read: Iterable[tuple[str, Signature, bytes | None]]) -> None:
        """What was read, and no process died of it."""
        read = [*read]
        for claim_id, signature, digest in read:
            self._entries[claim_id] = self._entries[claim_id]._replace(
                signature=signature, digest=digest
            )
        with contextlib.suppress(OSError):  # then they are only suspected in vain
            self._append([_read_line(read)])

    def begin_alone(self, claim: Claim, signature: Signature | None = None) -> None:
        """The file is about to be read alone, or unpacked if its `signature` is given, and counts
        as deadly until `end_alone`, or until it is ended. Raises OSError."""
        self._append([_line([claim], again=True, is_begun=True)])
        self._entries[claim.id] = self._entries[claim.id]._replace(claim=claim, is_begun=True)
        if signature is not None:
            self.note_read([(claim.id, signature, None)])

    def adopt(self, entries: Iterable[Entry]) -> None:
        """What another process had under way is noted here, before it is not there any more.

        Raises OSError.
        """
        entries = [*entries]
        if entries:
            self._append(_entry_lines(entries))
            self._entries |= {entry.claim.id: entry for entry in entries}

    def end_alone(self, claim: Claim) -> None:
        """The file was read, and the process lives."""
        with contextlib.suppress(OSError):  # then an attempt is only counted in vain
            self._append([_line([claim], again=True)])
        self._entries[claim.id] = self._entries[claim.id]._replace(claim=claim, is_begun=False)

    def replace(self, claims: Iterable[Claim]) -> None:
        """The note says of each claim what it says now. Raises OSError."""
        claims = list(claims)
        if not claims:
            return
        self._append([_line(claims, again=True)])
        for claim in claims:
            self._entries[claim.id] = self._entries[claim.id]._replace(claim=claim)

    def end(self, claim_ids: Iterable[str]) -> bool:
        """Nothing is left to do for these; return whether nothing at all is under way now."""
        claim_ids = list(claim_ids)
        for claim_id in claim_ids:
            self._entries.pop(claim_id, None)
        with contextlib.suppress(OSError):  # what is ended twice comes to the same end
            if self._entries:
                self._append([{"ended": claim_ids}])
            elif self._note is not None and self._bytes:
                os.ftruncate(self._note, 0)
                self._bytes = 0
        return not self._entries

    def leave(self) -> None:
        """Let others have the slot. Safe to call twice."""
        if self.is_held:
            with contextlib.suppress(OSError):
                if not self._entries:
                    Path(self._path).unlink(missing_ok=True)
                    Path(self._lock_path).unlink(missing_ok=True)
        self._close()

    def _close(self) -> None:
        for descriptor in (self._note, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._note = self._lock = None
        self._entries.clear()

    def _append(self, lines: Iterable[dict[str, Any]]) -> None:
        content = b"\n" + _text(lines)  # what was cut off before ends here
        if self._note is None:
            raise OSError(errno.ENOLCK, "The folder is another importer's", self._path)
        if self._bytes > LONG_BYTES:
            self._write_anew()
        left = memoryview(content)
        while left:
            left = left[os.write(self._note, left) :]
        self._bytes += len(content)

    def _write_anew(self) -> None:
        """Have the note say what is still under way, and nothing else."""
        path = f"{self._path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108  (text, as in all of the hot path)
        descriptor = os.open(path, _NOTE_FLAGS | os.O_EXCL, 0o600)
        content = _text(_entry_lines(self._entries.values()))
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
    """The slots that there are, of living processes and of those that are gone."""
    with contextlib.suppress(OSError):
        names = os.listdir(root / OWN)  # noqa: PTH208  (names are all that is asked for)
        stems = {name.partition(".")[0] for name in names if name.endswith((".lock", ".files"))}
        return sorted(int(stem) for stem in stems if stem.isdecimal() and len(stem) < 5)
    return []


def _text(lines: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)


def _entry_lines(entries: Iterable[Entry]) -> Iterator[dict[str, Any]]:
    """All that is known of files that are under way."""
    for claim, signature, digest, is_begun in entries:
        yield _line([claim], is_begun=is_begun)
        if signature is not None:
            yield _read_line([(claim.id, signature, digest)])


def _read_line(read: Iterable[tuple[str, Signature, bytes | None]]) -> dict[str, Any]:
    # As text: some file systems keep times that, in nanoseconds, no integer of JSON holds.
    return {
        "read": {
            claim_id: [*map(str, signature), None if digest is None else digest.hex()]
            for claim_id, signature, digest in read
        }
    }


def _line(
    claims: Iterable[Claim], *, again: bool = False, is_begun: bool = False
) -> dict[str, Any]:
    """A line that says what these claims are; `again`: beside what was said of them before."""
    return {"files": [_fields(claim, is_begun=is_begun) for claim in claims], "again": again}


def _fields(claim: Claim, *, is_begun: bool) -> list[Any]:
    return [
        claim.id,
        claim.account_id,
        claim.account,
        claim.name,
        source_hex(claim.source),
        claim.claimed_at_us,
        claim.attempt,
        claim.items,
        claim.reports,
        claim.is_return,
        is_begun,
    ]


def _load(path: str) -> list[Entry]:
    entries: dict[str, Entry] = {}
    for line in _iter_lines(path):
        for fields in line.get("files") or ():
            entry = _entry(fields)
            before = entries.get(entry.claim.id)
            if line.get("again") and before is not None:
                entry = before._replace(claim=entry.claim, is_begun=entry.is_begun)
            entries[entry.claim.id] = entry
        for claim_id, values in (line.get("read") or {}).items():
            if (found := entries.get(claim_id)) is not None:
                inode, size_bytes, mtime_ns, digest = values
                signature = Signature(int(inode), int(size_bytes), int(mtime_ns))
                known = None if digest is None else bytes.fromhex(digest)
                entries[claim_id] = found._replace(signature=signature, digest=known)
        for claim_id in line.get("ended") or ():
            entries.pop(claim_id, None)
    return list(entries.values())


def _iter_lines(path: str) -> Iterator[dict[str, Any]]:
    """The lines that are whole and say what lines say; anybody may have edited the rest."""
    try:
        body = files.load(path, MAX_BYTES).body
    except (FileNotFoundError, files.NotAFile):
        return
    for line in body.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            fields = orjson.loads(line)
            for one in fields.get("files") or ():
                _entry(one)
            for values in (fields.get("read") or {}).values():
                Signature(*map(int, values[:3]))
                bytes.fromhex(values[3] or "")
            if all(isinstance(one, str) for one in fields.get("ended") or ()):
                yield fields


def _entry(fields: list[Any]) -> Entry:
    """Raises ValueError or TypeError for what none of ours wrote."""
    claim_id, account_id, account, name, source, claimed_at_us, *rest = fields
    attempt, items, reports, is_return, is_begun = rest
    exact = bytes.fromhex(source)
    if not (
        CLAIM_ID.fullmatch(claim_id)
        and ACCOUNT_ID.fullmatch(account_id)
        and _is_below(exact)
        and all(isinstance(one, int) for one in (claimed_at_us, attempt, items))
    ):
        raise ValueError
    claim = Claim(
        claim_id,
        account_id,
        escaped_before(str(account)),
        escaped_before(str(name)),
        os.fsdecode(exact),
        claimed_at_us,
        attempt,
        items,
        tuple(str(report) for report in reports),
        bool(is_return),
    )
    return Entry(claim, is_begun=bool(is_begun))


def _is_below(path: bytes) -> bool:
    """Whether a path below ROOT leads nowhere else."""
    parts = path.split(b"/")
    return 0 not in path and not {b"", b".", b".."}.intersection(parts)
