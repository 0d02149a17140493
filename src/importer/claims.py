"""Claims: how a file becomes ours, and what is known of it from then on.

A claim is a rename into the importer's own folder under a name that no one else uses, so of two
importers one wins and the other finds nothing there. What the file was called and whose it is
stands in a journal beside it, written first (pitfalls I6). A claimed file never returns to the
inbox: a newer one may lie there under its name (I5).
"""

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from importer import moves
from importer.names import escaped_before
from importer.steps import Observer, Step
from resumes.clock import Clock, timestamp
from resumes.store import identifiers

CLAIM_ID = identifiers.RESUME_ID
_JOURNAL = re.compile(r"([0-9a-f]{24})\.json")


@dataclass(frozen=True, slots=True)
class Claim:
    """A file that is ours, or is about to be. Ids of claims sort in the order of arrival."""

    id: str
    folder: Path
    """The claims of its account in the workspace that it lies in."""

    account: str
    """The account's name when the file was taken, for people."""

    name: str
    """The path below ROOT, escaped."""

    name_hex: str = ""
    """The exact bytes of that path; empty when they are not known."""

    claimed_at_us: int = 0
    attempt: int = 1
    """How often an importer began with it: more than 1 after one was killed."""

    reports: tuple[str, ...] = ()
    """Paths below ROOT at which a report on this claim may lie."""

    @property
    def account_id(self) -> str:
        """Whose it is, whoever bears the account's name now (pitfalls S14)."""
        return self.folder.name

    @property
    def path(self) -> Path:
        """Where the claimed file lies."""
        return self.folder / self.id

    @property
    def journal(self) -> Path:
        """Where the journal lies."""
        return self.folder / f"{self.id}.json"

    @property
    def temporary(self) -> Path:
        """A file to write what is then renamed into place."""
        return self.folder / f"{self.id}.tmp"

    @property
    def claimed_at(self) -> str:
        """When it was taken, as reports and the ledger say it."""
        return timestamp(self.claimed_at_us)


LARGEST_SKEW_US = 7 * 24 * 3_600 * 1_000_000
"""How far the clock may have been set back since a claim was made."""


class ClaimIds:
    """New claim ids in the order of arrival, also within one microsecond and when a clock is
    set back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_us = 0

    def next(self) -> str:
        """A new id, after all that were made or followed."""
        self._last_us = max(self._clock(), self._last_us + 1)
        return identifiers.resume_id(self._last_us)

    def follow(self, claim_id: str) -> None:
        """New ids come after this one, unless no clock of ours can have made it.

        Anyone may put a file with any number among the held ones; followed to the end, ids would
        outgrow their 16 digits.
        """
        made_us = int(claim_id[:16], 16)
        if made_us <= self._clock() + LARGEST_SKEW_US:
            self._last_us = max(self._last_us, made_us)


def take(claim: Claim, source: str | Path, observe: Observer) -> bool:
    """Whether the file is ours now; otherwise someone else took or removed it.

    Raises OSError when it cannot be taken, and has changed nothing then.
    """
    moves.write_new(claim.journal, _dump(claim))
    observe(Step.JOURNAL_WRITTEN)
    try:
        moves.move(source, claim.path)
    except FileNotFoundError:
        claim.journal.unlink()
        return False
    except OSError:
        claim.journal.unlink()
        raise
    observe(Step.CLAIMED)
    return True


def rewrite(claim: Claim) -> None:
    """The journal says what the claim says now."""
    moves.write_over(claim.journal, _dump(claim), temporary=claim.temporary)


def drop(claim: Claim) -> None:
    """Nothing is known of the claim here any more. The file must have gone."""
    claim.temporary.unlink(missing_ok=True)
    claim.journal.unlink(missing_ok=True)


def _dump(claim: Claim) -> bytes:
    fields = {
        "id": claim.id,
        "account_id": claim.account_id,
        "account": claim.account,
        "name": claim.name,
        "name_hex": claim.name_hex,
        "claimed_at_us": claim.claimed_at_us,
        "attempt": claim.attempt,
        "reports": claim.reports,
    }
    return json.dumps(fields).encode()


def iter_claims(folder: Path) -> Iterator[Claim]:
    """The claims in an account's folder of a workspace, in the order of arrival.

    Also those without a file, whose journal was not dropped, and those without a journal that
    can be read, of which only the account is known.
    """
    ids = {path.name for path in folder.iterdir() if CLAIM_ID.fullmatch(path.name)}
    journals = {match[1] for path in folder.iterdir() if (match := _JOURNAL.fullmatch(path.name))}
    for claim_id in sorted(ids | journals):
        yield _load(folder, claim_id)


def _load(folder: Path, claim_id: str) -> Claim:
    unnamed = Claim(claim_id, folder, account="", name=claim_id)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        fields: dict[str, Any] = json.loads(unnamed.journal.read_bytes())
        return Claim(
            id=claim_id,
            folder=folder,
            account=escaped_before(str(fields["account"])),
            name=escaped_before(str(fields["name"])),
            name_hex=str(fields["name_hex"]),
            claimed_at_us=int(fields["claimed_at_us"]),
            attempt=int(fields["attempt"]),
            reports=tuple(str(path) for path in fields["reports"]),
        )
    return dataclasses.replace(unnamed, claimed_at_us=int(claim_id[:16], 16))
