"""Reading: which files are complete and can be judged now, and what each contains.

A file is read in place. A complete, valid resume is judged immediately, and anything else once it is
unchanged; nothing that a process has open for writing (pitfalls I3, I4).
"""

import contextlib
import errno
import math
import os
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from importer import files, json_texts, outcomes
from importer.claims import Claim
from importer.failpoints import Step
from importer.files import Known, Signature
from importer.filing import OF_THE_FILE, OF_THE_PROCESS, ReadFile, parse_report
from importer.job import Job
from importer.options import Options
from importer.outcomes import Result
from resumes.analyzer import Resume
from resumes.watched_names import find_extension

UNKNOWN_WRITER_SETTLE_S = 1.0
"""How long a file must be unchanged if the system cannot say whether it has a writer."""

MAX_SETTLE_TIMES = 12
MIN_OPEN_S = 60.0
"""A file that stays open for writing, or cannot be read, is checked anyway once it has been
unchanged for twelve settling times, and for at least this long while it is open."""


def _quiet_s(claim: Claim, signature: Signature, known: Known | None) -> float:
    """Return for how many seconds a file is known to have had this signature."""
    if claim.is_return:  # it settled before its first import
        return math.inf
    return known.for_s if known is not None and known.signature == signature else 0.0


NOT_OF_THE_FILE = OF_THE_PROCESS | {errno.ENOENT}
"""Errors of opening that say nothing about an existing file."""

MAX_ATTEMPTS = 3
"""A file that killed the process twice when it was read alone is not read again (pitfalls I10)."""


class Candidate(NamedTuple):
    """A file to import. `is_alone`: it may have killed a process, so it is read by itself."""

    claim: Claim
    known: Known | None = None
    is_alone: bool = False


class FailureReason(StrEnum):
    """Why a file was not imported."""

    GONE = "gone"
    SETTLING = "settling"
    OPEN = "open"
    """Another process has it open for writing."""
    REPORT = "report"
    STUCK = "stuck"
    """The error concerns this file or its folder."""
    TROUBLE = "trouble"
    """The error concerns every file."""


class NotImported(NamedTuple):
    """A file that was not imported or moved. `error` is the system's."""

    claim: Claim
    why: FailureReason
    signature: Signature | None = None
    error: OSError | None = None


def is_last_attempt(claim: Claim) -> bool:
    """Return whether reading the file killed so many processes that it is not read again."""
    return claim.attempt + 1 >= MAX_ATTEMPTS


def _is_read_whole(claim: Claim) -> bool:
    """Return whether the name says that the file is read whole; other names are those of bundles."""
    return find_extension(claim.name) == ".json"


def inspect(
    claim: Claim, descriptor: int, known: Known | None, options: Options
) -> ReadFile | NotImported:
    """Read an open file; return its verdict, or why it is not judged yet. Raises OSError.

    A valid resume is complete, and is judged immediately. Anything else may be incomplete, and is
    judged only after it was unchanged for the settling time (pitfalls I3). A report of ours that
    was put back into the inbox is not judged at all (I13).
    """
    verdict: Resume | Result | None = None
    digest = None
    content = None
    head = b""
    if _is_read_whole(claim):
        content = files.read_file(descriptor, options.format.max_bytes)
    if content is None or content.is_over_limit:
        signature = files.signature_of(os.fstat(descriptor))
        is_ready = _quiet_s(claim, signature, known) >= options.settle_s
    else:
        body, signature, is_ready = content.body, content.signature, content.is_steady
        verdict = outcomes.judge(body, options.format.for_account(claim.first_month))
        if isinstance(verdict, Result):
            if not claim.is_return and parse_report(body):
                return NotImported(claim, FailureReason.REPORT, signature)
            is_ready = is_ready and _quiet_s(claim, signature, known) >= options.settle_s
            if is_ready and json_texts.is_json_bundle(body):
                verdict = None
        if verdict is not None:
            digest, head = files.digest(body), body[: files.HEAD_BYTES]
    if not is_ready:
        return NotImported(claim, FailureReason.SETTLING, signature)
    return ReadFile(claim, signature, verdict, digest, head=head)


class Reader:
    """Reads files below one ROOT, and notes what it reads in the slot."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def read(self, candidates: Sequence[Candidate]) -> list[ReadFile | NotImported]:
        """Read the files that are ready; return each, or why it is not imported now."""
        try:
            self._job.slot.note(candidate.claim for candidate in candidates)
        except OSError as error:
            return [
                NotImported(file.claim, FailureReason.TROUBLE, None, error) for file in candidates
            ]
        self._job.observe(Step.NOTED)
        answers = [self._read(candidate) for candidate in candidates]
        if left := [file.claim.id for file in answers if isinstance(file, NotImported)]:
            self._job.slot.end(left)
        self._job.slot.note_read(
            (work.claim.id, work.signature, work.digest)
            for work in answers
            if isinstance(work, ReadFile)
        )
        self._job.observe(Step.READ)
        return answers

    def _read(self, candidate: Candidate) -> ReadFile | NotImported:
        claim = candidate.claim
        try:
            if is_last_attempt(claim) and _is_read_whole(claim):
                signature = files.signature_of(os.lstat(claim.path(self._job.root)))
                return ReadFile(claim, signature, outcomes.CRASHED, head=self.read_head(claim))
            if not candidate.is_alone:
                return self._read_open(candidate)
            self._job.slot.begin_alone(claim)
            answer = self._read_open(candidate)
            self._job.slot.end_alone(claim.id)
            return answer
        except FileNotFoundError:
            return NotImported(claim, FailureReason.GONE)
        except OSError as error:
            why = FailureReason.STUCK if error.errno in OF_THE_FILE else FailureReason.TROUBLE
            return NotImported(claim, why, self._signature(claim), error)

    def _read_open(self, candidate: Candidate) -> ReadFile | NotImported:
        claim = candidate.claim
        try:
            self._job.folders.open(claim.folder(self._job.root))
        except OSError as error:
            if error.errno in NOT_OF_THE_FILE:
                raise
            return NotImported(claim, FailureReason.STUCK, self._signature(claim), error)
        try:
            descriptor = self.open_file(claim)
        except OSError as error:
            if error.errno in NOT_OF_THE_FILE:
                raise
            return self._unreadable(candidate, error)
        is_kept = False
        try:
            answer = self._judge(candidate, descriptor)
            is_kept = isinstance(answer, ReadFile) and answer.descriptor is not None
            return answer
        finally:
            if not is_kept:
                os.close(descriptor)

    def open_file(self, claim: Claim) -> int:
        """Open the claim's file for reading. Raises FileNotFoundError, NotAFile, OSError."""
        folder = self._job.folders.open(claim.folder(self._job.root))
        return files.open_file(claim.base, dir_fd=folder)

    def read_head(self, claim: Claim) -> bytes:
        """Return the file's first 64 KiB; empty if it cannot be read."""
        with contextlib.suppress(OSError), os.fdopen(self.open_file(claim), "rb") as file:
            return file.read(files.HEAD_BYTES)
        return b""

    def _judge(self, candidate: Candidate, descriptor: int) -> ReadFile | NotImported:
        claim = candidate.claim
        try:
            found = inspect(claim, descriptor, candidate.known, self._job.options)
        except OSError as error:  # a bad sector, say: a problem of this file alone
            return NotImported(claim, FailureReason.STUCK, self._signature(claim), error)
        if isinstance(found, NotImported):
            return found
        # A file that a process may still write to is not judged (pitfalls I4).
        writer = files.find_writer(descriptor)
        if writer is not False:
            needed_s = min(UNKNOWN_WRITER_SETTLE_S, self._job.options.settle_s)
            if writer:
                needed_s = max(MIN_OPEN_S, MAX_SETTLE_TIMES * self._job.options.settle_s)
            if _quiet_s(claim, found.signature, candidate.known) < needed_s:
                return NotImported(claim, FailureReason.OPEN, found.signature)
        kept = None if found.verdict is None else descriptor
        return found._replace(descriptor=kept, is_open=bool(writer))

    def _unreadable(self, candidate: Candidate, error: OSError) -> ReadFile | NotImported:
        """Return what to do with a file that cannot be opened: it settles first, as its mode may change."""
        claim = candidate.claim
        signature = files.signature_of(os.lstat(claim.path(self._job.root)))
        needed_s = MAX_SETTLE_TIMES * self._job.options.settle_s
        if _quiet_s(claim, signature, candidate.known) < needed_s:
            return NotImported(claim, FailureReason.SETTLING, signature)
        return ReadFile(claim, signature, outcomes.unreadable(error))

    def _signature(self, claim: Claim) -> Signature | None:
        """Return the file's signature; None if it is gone or its folder cannot be searched."""
        with contextlib.suppress(OSError):
            return files.find_signature(claim.path(self._job.root))
        return None
