"""Claims: the identity of a file from the start of its import, and the states of the file.

Until it is filed, the file keeps its path. The ledger identifies it by its claim ID, so repeating
an import gives the same outcome (pitfalls I1, I6).
"""

import contextlib
import math
import os
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Self

from importer.files import UNREAD, Known, Signature
from importer.outcomes import Result
from resumes.analyzer import Resume
from resumes.clock import Clock, timestamp
from resumes.store import identifiers
from resumes.store.import_ledger import Analysis
from resumes.store.labels import label_of_folder

CLAIM_ID = identifiers.RESUME_ID


class Claim(NamedTuple):
    """A file that is being imported. Claim IDs sort in the order of arrival."""

    id: str
    account_id: str
    """The account's internal ID; another account may later have its name (pitfalls S14)."""
    account: str
    """The account's name when the file was found, used only for display."""
    name: str
    """The path below ROOT at which the file was dropped, escaped."""
    source: str = ""
    """Its current path below ROOT, unescaped, as text with surrogates."""
    claimed_at_us: int = 0
    attempt: int = 0
    """The number of processes that are known to have died while reading only this file."""
    items: int = 0
    """For a bundle, the number of items that were imported before the last attempt."""
    is_return: bool = False
    """Whether the file was filed before and is imported again from its outcome folder."""
    first_month: int | None = None
    """The number that stands for January in the file's dates, if the account sets it."""

    @property
    def claimed_at(self) -> str:
        """The time at which the file was found, in the format of reports and the ledger."""
        return timestamp(self.claimed_at_us)

    @property
    def base(self) -> str:
        return self.source.rpartition("/")[2]

    @property
    def label(self) -> str | None:
        """The label of its resumes: the first subfolder of the account's folder in its path."""
        folders = self.name.split("/")[1:-1]
        return label_of_folder(folders[0]) if folders else None

    def folder(self, root: str) -> str:
        below = self.source.rpartition("/")[0]
        return f"{root}/{below}" if below else root

    def path(self, root: str) -> str:
        return f"{root}/{self.source}"


class State(StrEnum):
    """The state of a file, or the problem that stops its import.

        NOTED -> READ -> COMMITTED -> FILED

    A file that cannot be imported leaves the pipeline after NOTED or READ: either it is finished,
    or a later scan finds it again. An imported file leaves it when filed; filing is retried.
    """

    NOTED = "noted"
    READ = "read"
    COMMITTED = "committed"
    """Its outcome is in the ledger."""

    # Finished
    FILED = "filed"
    """The file was imported and moved, or was removed after its import."""
    CHANGED = "changed"
    """The file was imported. Its new content is in the inbox as a new file."""
    GONE = "gone"
    """The file was moved away or removed before its import."""

    # Not imported yet, or not filed yet
    OPEN = "open"
    """Another process has the file open for writing. If the file was imported, it was moved."""
    STUCK = "stuck"
    """There was an error that concerns only this file or its folder."""
    TROUBLE = "trouble"
    """There was an error that concerns every file."""

    # Not imported yet
    SETTLING = "settling"
    REPORT = "report"
    UNREACHABLE = "unreachable"
    """A sharded store rejected the write because the account's shard has a problem."""

    # Not filed yet
    UNRETURNED = "unreturned"
    """The content changed before the file was moved, and the file cannot be moved back."""
    KEPT = "kept"
    """The file was not moved: it is too large to be copied to the outcome folders' disk."""


@dataclass(slots=True, eq=False)
class File:
    """A file that this process is importing, from the inbox to its outcome folder."""

    claim: Claim
    known: Known | None = None
    """The signature before the file was read, and how long it had been the same."""
    is_resumed: bool = False
    """Whether another process may have died while importing the file. The file is then read
    separately and keeps its claim."""
    state: State = State.NOTED

    # Read
    signature: Signature = UNREAD
    """The signature of the content that was read."""
    digest: bytes | None = None
    is_begun: bool = False
    """Whether only this file is being read: if the process dies, that counts as an attempt."""
    verdict: Resume | Result | None = None
    """None for a bundle, and for a document that has not been analyzed yet."""
    descriptor: int | None = None
    """The open file, or None for a bundle and if the file could not be opened."""
    is_open: bool = False
    """Whether the file is checked even if another process has it open for writing."""
    head: bytes = b""
    """Its first 64 KiB, for the ledger (pitfalls I22). For a bundle, it is set when the bundle is
    unpacked. For a document, it is the analyzer's full output."""
    analysis: Analysis | None = None
    """A description of the analyzer's run; None for JSON."""

    # Imported
    result: Result | None = None
    """The outcome, as recorded in the ledger."""
    target: str = ""
    """The path that the file was moved to; empty if it was not moved."""
    tries: int = 0
    """The number of failed attempts to move the file."""
    due: float = -math.inf
    """The time of the next attempt, on the monotonic clock."""
    is_kept: bool = False
    """Whether the outcome was reported although the file stays in the inbox."""

    error: OSError | None = None
    """The error that prevented the file from being imported or filed."""
    present: Signature = UNREAD
    """The signature that the file had when its import was given up, if known."""

    @property
    def is_over(self) -> bool:
        """Whether the file is finished; otherwise it is tried again."""
        return self.state in (State.FILED, State.CHANGED, State.GONE)

    def leave(
        self, state: State, present: Signature | None = None, error: OSError | None = None
    ) -> None:
        """Set the state, signature and error of a file that is not imported."""
        self.state, self.present, self.error = state, present or UNREAD, error
        self.is_begun = False

    def as_taken(self) -> Self:
        """Return the file as it was when it was taken: the ledger may have an outcome of that content, and
        another content must not be imported under its claim."""
        signature = UNREAD if self.known is None else self.known.signature
        return replace(self, signature=signature, digest=None, is_open=False, analysis=None)

    def close(self) -> None:
        """Close the file if it is open, and free the content that was read."""
        self.verdict, self.head = None, b""
        if self.descriptor is not None:
            with contextlib.suppress(OSError):  # on a detached disk; it is closed anyway
                os.close(self.descriptor)
        self.descriptor = None


LARGEST_SKEW_US = 7 * 24 * 3_600 * 1_000_000
"""The maximum time by which the clock may have been set back since a claim was made."""


class ClaimIds:
    """Creates claim IDs that sort in the order of arrival, even if the clock is set back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_us = 0

    def next(self) -> str:
        """Return a new ID that sorts after all IDs that were created or passed to `follow`."""
        self._last_us = max(self._clock(), self._last_us + 1)
        return identifiers.resume_id(self._last_us)

    def follow(self, claim_id: str) -> None:
        """Make new IDs sort after this one, unless it is too far in the future to be genuine.

        Users may add a file with an arbitrary number to the held files. If every number were
        followed, IDs could exceed their 16 digits.
        """
        made_us = int(claim_id[:16], 16)
        if made_us <= self._clock() + LARGEST_SKEW_US:
            self._last_us = max(self._last_us, made_us)
