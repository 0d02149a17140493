"""Claims: how a file becomes ours, and what is known of it from then on.

A claim is a rename into an importer's own folder under a name that no one else uses, so of two
importers one wins and the other finds nothing there. What the file was called and whose it is
stands in a journal, written first (pitfalls I6). A claimed file never returns to the inbox: a
newer one may lie there under its name (I5).
"""

from collections.abc import Iterator
from typing import NamedTuple

from resumes.clock import Clock, timestamp
from resumes.store import identifiers

CLAIM_ID = identifiers.RESUME_ID


class Claim(NamedTuple):
    """A file that is ours, or is about to be. Ids of claims sort in the order of arrival."""

    id: str
    folder: str
    """The claims of its account in the workspace that it lies in."""

    account: str
    """The account's name when the file was taken, for people."""

    name: str
    """The path below ROOT, escaped."""

    name_hex: str = ""
    """The exact bytes of that path; empty when they are not known."""

    claimed_at_us: int = 0

    attempt: int = 0
    """How often it was read alone and the importer did not survive it, as far as is known."""

    items: int = 0
    """How many of its items were imported when it was last begun, of a file of several."""

    reports: tuple[str, ...] = ()
    """Paths below ROOT at which a report on this claim may lie."""

    @property
    def account_id(self) -> str:
        """Whose it is, whoever bears the account's name now (pitfalls S14)."""
        return self.folder.rpartition("/")[2]

    @property
    def path(self) -> str:
        """Where the claimed file lies."""
        return f"{self.folder}/{self.id}"

    @property
    def temporary(self) -> str:
        """A file to write what is then renamed into place."""
        return f"{self.folder}/{self.id}.tmp"

    @property
    def claimed_at(self) -> str:
        """When it was taken, as reports and the ledger say it."""
        return timestamp(self.claimed_at_us)


TAILS = 256
"""Random ends of ids that are drawn at once."""

LARGEST_SKEW_US = 7 * 24 * 3_600 * 1_000_000
"""How far the clock may have been set back since a claim was made."""


class ClaimIds:
    """New claim ids in the order of arrival, also within one microsecond and when a clock is
    set back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_us = 0
        self._tails: Iterator[str] = iter(())

    def next(self) -> str:
        """A new id, after all that were made or followed."""
        self._last_us = max(self._clock(), self._last_us + 1)
        tail = next(self._tails, None)
        if tail is None:
            self._tails = identifiers.tails(TAILS)
            tail = next(self._tails)
        return identifiers.resume_id(self._last_us, tail)

    def follow(self, claim_id: str) -> None:
        """New ids come after this one, unless no clock of ours can have made it.

        Anyone may put a file with any number among the held ones; followed to the end, ids would
        outgrow their 16 digits.
        """
        made_us = int(claim_id[:16], 16)
        if made_us <= self._clock() + LARGEST_SKEW_US:
            self._last_us = max(self._last_us, made_us)
