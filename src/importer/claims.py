"""Claims: what is known about a file from the moment its import begins.

The file stays where it is, under its name, until it is filed. Its claim's id is what the
ledger knows it by, so that whatever is begun again comes to the same end (pitfalls I1, I6).
"""

from collections.abc import Iterator
from typing import NamedTuple

from resumes.clock import Clock, timestamp
from resumes.store import identifiers

CLAIM_ID = identifiers.RESUME_ID


class Claim(NamedTuple):
    """A file on its way into the store. Ids of claims sort in the order of arrival."""

    id: str

    account_id: str
    """The account's internal ID, whichever account has its name now (pitfalls S14)."""

    account: str
    """The account's name when the file was found, for people."""

    name: str
    """The path below ROOT as it was dropped, escaped."""

    source: str = ""
    """The path below ROOT at which it is, exactly: text with surrogates."""

    claimed_at_us: int = 0

    attempt: int = 0
    """How often it was read alone and the process did not survive it, as far as is known."""

    items: int = 0
    """How many of its items were imported when it was last begun, of a file of several."""

    is_return: bool = False
    """Whether it was put away before, and is taken up again as it is."""

    @property
    def claimed_at(self) -> str:
        """When it was found, as reports and the ledger say it."""
        return timestamp(self.claimed_at_us)

    @property
    def base(self) -> str:
        """The file's own name."""
        return self.source.rpartition("/")[2]

    def folder(self, root: str) -> str:
        """Return the folder that it is in."""
        below = self.source.rpartition("/")[0]
        return f"{root}/{below}" if below else root

    def path(self, root: str) -> str:
        """Where it is."""
        return f"{root}/{self.source}"


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
        """Return a new id, after all that were made or followed."""
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
