"""Journals: what is known of the claims of a batch, for whoever has to go on with them.

    ROOT/.work/<importer id>/<journal id>.journal

A journal is a file of lines that is only added to; of lines on one claim the last counts. It is
on the disk before the first file of its batch is renamed, and goes with the last of them. A line
that was cut off by a kill says nothing.
"""

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from importer import reading
from importer.claims import CLAIM_ID, Claim
from importer.names import escaped_before
from importer.reading import Signature
from resumes.store.identifiers import ACCOUNT_ID

SUFFIX = ".journal"
MAX_BYTES = 64 * 1024 * 1024


class Journal:
    """The journal of claims that are not brought to their end yet."""

    def __init__(self, path: str, claims: Iterable[Claim]) -> None:
        self.path = path
        self._open_ids = {claim.id for claim in claims}

    def add(self, claims: Iterable[Claim], *, is_durable: bool = True) -> None:
        """The journal says of each what the claim says now; on the disk, if that matters."""
        claims = list(claims)
        self._open_ids.update(claim.id for claim in claims)
        self._append(b"".join(map(_line, claims)), is_durable=is_durable)

    def end_reading(self, taken: Iterable[tuple[str, Signature]] = ()) -> None:
        """Whatever kills the importer from now on, it is not the reading of one of these files;
        those that were taken had these signatures."""
        # As text: some file systems keep times that, in nanoseconds, no integer of JSON holds.
        signatures = {claim_id: [*map(str, read)] for claim_id, read in taken}
        line = {"read": True, "signatures": signatures}
        with contextlib.suppress(OSError):  # then they are only suspected in vain
            content = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
            self._append(content, is_durable=False)

    def begin(self, claim: Claim) -> None:
        """The claim's file is about to be read alone, and counts as deadly until `end`."""
        self._append(_line(claim, is_begun=True), is_durable=True)

    def end(self, claim: Claim) -> None:
        """The file was read, and the importer lives."""
        with contextlib.suppress(OSError):  # then an attempt is only counted in vain
            self._append(_line(claim), is_durable=False)

    def settle(self, claim_id: str) -> bool:
        """Nothing is left to do for the claim; whether it was the journal's last, and it is gone."""
        self._open_ids.discard(claim_id)
        if self._open_ids:
            return False
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)  # noqa: PTH108  (text, as in all of the hot path)
        return True

    def _append(self, content: bytes, *, is_durable: bool) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        try:
            left = memoryview(b"\n" + content)  # what was cut off before ends here
            while left:
                left = left[os.write(descriptor, left) :]
            if is_durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write(workspace: Path, claims: list[Claim]) -> Journal:
    """A new journal that names the claims. Raises OSError, and there is none then."""
    journal = Journal(f"{workspace}/{secrets.token_hex(12)}{SUFFIX}", claims)
    try:
        journal.add(claims)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(journal.path)  # noqa: PTH108
        raise
    return journal


def _line(claim: Claim, *, is_begun: bool = False) -> bytes:
    fields: dict[str, Any] = {
        "id": claim.id,
        "account_id": claim.account_id,
        "account": claim.account,
        "name": claim.name,
        "name_hex": claim.name_hex,
        "claimed_at_us": claim.claimed_at_us,
        "attempt": claim.attempt,
        "items": claim.items,
        "reports": claim.reports,
        "begun": is_begun,
    }
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


class Entry:
    """What a journal says of a claim."""

    __slots__ = ("claim", "is_begun", "journal", "signature")

    def __init__(
        self,
        claim: Claim,
        journal: Journal,
        *,
        is_begun: bool,
        signature: Signature | None = None,
    ) -> None:
        self.claim = claim
        self.journal = journal
        self.signature = signature
        """The file's when it was taken, if it is known."""
        self.is_begun = is_begun
        """Whether the importer ended while the file was read alone."""


def load(workspace: Path) -> tuple[dict[str, Entry], list[Entry]]:
    """The entries of all journals of a workspace, by claim; and those of batches that were still
    being read when the importer ended. A journal that says nothing is gone. Raises OSError."""
    entries: dict[str, Entry] = {}
    unread: list[Entry] = []
    for path in sorted(workspace.glob(f"*{SUFFIX}")):
        if path.is_symlink() or not path.is_file():
            continue  # nothing that an importer made
        mine, is_read = _load_one(str(path), workspace)
        entries.update(mine)
        if not mine:
            path.unlink(missing_ok=True)
        if not is_read:
            unread.extend(mine.values())
    return entries, unread


def _load_one(path: str, workspace: Path) -> tuple[dict[str, Entry], bool]:
    lines = list(_iter_lines(path))
    states = {line["id"]: line for line in lines if "id" in line}
    claims = {claim_id: _claim(fields, workspace) for claim_id, fields in states.items()}
    journal = Journal(path, claims.values())
    signatures = _signatures(lines)
    entries = {
        claim_id: Entry(
            claim,
            journal,
            is_begun=bool(states[claim_id].get("begun")),
            signature=signatures.get(claim_id),
        )
        for claim_id, claim in claims.items()
    }
    return entries, any("read" in line for line in lines)


def _signatures(lines: Iterable[dict[str, Any]]) -> dict[str, Signature]:
    """By claim, what its file was when it was taken."""
    found: dict[str, Signature] = {}
    for line in lines:
        some = line.get("signatures")
        for claim_id, values in some.items() if isinstance(some, dict) else ():
            with contextlib.suppress(TypeError, ValueError):
                inode, size_bytes, mtime_ns = map(int, values)
                found[claim_id] = Signature(inode, size_bytes, mtime_ns)
    return found


def _iter_lines(path: str) -> Iterator[dict[str, Any]]:
    """The lines that are whole and say what lines say; anybody may have edited the rest."""
    for line in reading.load(path, MAX_BYTES).body.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            fields = orjson.loads(line)
            if not isinstance(fields, dict) or ("id" in fields and not _is_claim(fields)):
                continue
            yield fields


def _is_claim(fields: dict[str, Any]) -> bool:
    return bool(
        CLAIM_ID.fullmatch(fields["id"])
        and ACCOUNT_ID.fullmatch(fields["account_id"])
        and all(isinstance(fields[key], str) for key in ("account", "name"))
        and 0 not in bytes.fromhex(fields["name_hex"])
        and isinstance(fields["claimed_at_us"], int)
        and isinstance(fields["attempt"], int)
        and isinstance(fields["items"], int)
        and isinstance(fields["reports"], list)
    )


def _claim(fields: dict[str, Any], workspace: Path) -> Claim:
    return Claim(
        id=fields["id"],
        folder=f"{workspace}/{fields['account_id']}",
        account=escaped_before(str(fields["account"])),
        name=escaped_before(str(fields["name"])),
        name_hex=str(fields["name_hex"]),
        claimed_at_us=fields["claimed_at_us"],
        attempt=fields["attempt"],
        items=fields["items"],
        reports=tuple(str(path) for path in fields["reports"]),
    )
