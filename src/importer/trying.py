"""Trying a file: what it is, and whether it may be judged by what was read of it.

A whole valid resume is its own end marker and is taken at once. Everything else may still be
written to, and is judged only after it was quiet for the settling time (pitfalls I3). Whatever is
judged must in addition have no writer left: a lease says so, or where the system has none, a
second of quiet (I4).
"""

import os
from dataclasses import dataclass
from typing import NamedTuple

from importer import outcomes, reading, reports, unpacking
from importer.names import find_extension
from importer.outcomes import Refusal
from importer.reading import Content, Signature
from resumes.analyzer import Format, Resume

UNPROVED_S = 1.0
"""How long a file must be quiet for which the system cannot say whether it has a writer."""

PATIENCE = 12
OPEN_S = 60.0
"""A file that stays open for writing, or cannot be read, is judged all the same after it was
quiet for twelve settling times, and at least this long while it is open."""


class Known(NamedTuple):
    """What a file's signature was, and for how many seconds it has been the same."""

    signature: Signature
    for_s: float


class Tried(NamedTuple):
    """What a file is now. `verdict` is None for a file of several resumes, to be unpacked.

    `digest` is of the value's own bytes, None for what was not read whole. `is_report`: it is a
    report of ours that somebody put back (pitfalls I13).
    """

    signature: Signature
    verdict: Resume | Refusal | None
    digest: bytes | None = None
    is_ready: bool = False
    is_report: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """How files are tried."""

    format: Format
    settle_s: float

    def try_open(self, descriptor: int, name: str, known: Known | None) -> Tried:
        """What the open file is; `name` is as it was dropped. Raises OSError."""
        if not self.leaves_unread(name):
            content = reading.read_file(descriptor, self.format.max_bytes)
            if not content.is_over_limit:
                return self._try_value(content, name, known)
        signature = reading.signature_of(os.fstat(descriptor))
        return Tried(signature, None, is_ready=self._is_quiet(signature, known))

    @staticmethod
    def leaves_unread(name: str) -> bool:
        """Whether files of this name are not read here, since they hold several resumes."""
        return find_extension(name) != ".json"

    def _try_value(self, content: Content, name: str, known: Known | None) -> Tried:
        body, signature = content.body, content.signature
        verdict = outcomes.judge(body, self.format)
        if isinstance(verdict, Resume):
            return Tried(signature, verdict, reading.digest(body), content.is_steady)
        if reports.is_report(body):
            return Tried(signature, verdict, is_report=True)
        is_ready = content.is_steady and self._is_quiet(signature, known)
        if is_ready and unpacking.is_bundle(name, body):
            return Tried(signature, None, is_ready=True)
        return Tried(signature, verdict, reading.digest(body), is_ready)

    def try_unreadable(self, error: OSError, signature: Signature, known: Known | None) -> Tried:
        """What a file is that cannot be opened: somebody may still mend that."""
        is_ready = self._is_quiet(signature, known, times=PATIENCE)
        return Tried(signature, outcomes.unreadable(error), is_ready=is_ready)

    def find_writer(self, descriptor: int, tried: Tried, known: Known | None) -> bool | None:
        """Whether somebody may still be writing to the open file; None when somebody has it open,
        and was waited for long enough."""
        writer = reading.find_writer(descriptor)
        if writer is False:
            return False
        for_s = known.for_s if known is not None and known.signature == tried.signature else 0.0
        if writer is None:
            return for_s < min(UNPROVED_S, self.settle_s)
        return None if for_s >= max(OPEN_S, PATIENCE * self.settle_s) else True

    def _is_quiet(self, signature: Signature, known: Known | None, times: int = 1) -> bool:
        """Whether the file has kept this signature for the settling time."""
        needed_s = self.settle_s * times
        if needed_s <= 0:
            return True
        return known is not None and known.signature == signature and known.for_s >= needed_s
