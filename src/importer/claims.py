"""Claims: the identity of a file from the moment its import begins.

The file stays where it is, under its name, until it is filed. The ledger knows it by its claim's
id, so that an import that is repeated has the same outcome (pitfalls I1, I6).
"""

import itertools
from typing import NamedTuple

from resumes.clock import Clock, timestamp
from resumes.store import identifiers
from resumes.store.labels import label_of_folder

CLAIM_ID = identifiers.RESUME_ID


class Claim(NamedTuple):
    """A file on its way into the store. Ids of claims sort in the order of arrival."""

    id: str
    account_id: str
    """The account's internal ID; another account may have its name by now (pitfalls S14)."""
    account: str
    """The account's name when the file was found, for people."""
    name: str
    """The path below ROOT that the file was dropped at, escaped."""
    source: str = ""
    """Its present path below ROOT, unescaped: text with surrogates."""
    claimed_at_us: int = 0
    attempt: int = 0
    """How many processes are known to have died while they read it alone."""
    items: int = 0
    """For a bundle, how many of its items were imported when the last attempt began."""
    is_return: bool = False
    """Whether it was filed before, and is imported again from there."""
    first_month: int | None = None
    """The number of January in its dates, if its account sets that."""

    @property
    def claimed_at(self) -> str:
        """When it was found, in the form that reports and the ledger have."""
        return timestamp(self.claimed_at_us)

    @property
    def base(self) -> str:
        return self.source.rpartition("/")[2]

    @property
    def label(self) -> str | None:
        """The label of its resumes: the first folder below the account's that it was dropped in."""
        folders = self.name.split("/")[1:-1]
        return label_of_folder(folders[0]) if folders else None

    def folder(self, root: str) -> str:
        below = self.source.rpartition("/")[0]
        return f"{root}/{below}" if below else root

    def path(self, root: str) -> str:
        return f"{root}/{self.source}"


TAILS = 256
"""How many random ends of ids are drawn at once."""
LARGEST_SKEW_US = 7 * 24 * 3_600 * 1_000_000
"""How far the clock may have been set back since a claim was made."""


class ClaimIds:
    """Creates claim ids that sort in the order of arrival, even within a microsecond and when the
    clock is set back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_us = 0
        self._tails = itertools.chain.from_iterable(map(identifiers.tails, itertools.repeat(TAILS)))

    def next(self) -> str:
        """Return a new id that sorts after all that were created or followed."""
        self._last_us = max(self._clock(), self._last_us + 1)
        return identifiers.resume_id(self._last_us, next(self._tails))

    def follow(self, claim_id: str) -> None:
        """Make new ids sort after this one, unless it is too far in the future to be ours.

        A user may put a file with any number among the held ones; if all were followed, ids would
        outgrow their 16 digits.
        """
        made_us = int(claim_id[:16], 16)
        if made_us <= self._clock() + LARGEST_SKEW_US:
            self._last_us = max(self._last_us, made_us)
