"""Reading: which files are complete and can be judged now, and what each contains.

A file is read in place. A complete, valid resume is judged immediately, and anything else once it is
unchanged; nothing that a process has open for writing (pitfalls I3, I4).
"""

import contextlib
import errno
import os
from collections.abc import Sequence

from importer import files, json_texts, outcomes
from importer.claims import Claim
from importer.files import Known, Signature
from importer.filing import OF_THE_FILE, OF_THE_PROCESS, parse_report
from importer.job import Candidate, Cause, Departure, Job, ReadFile, Step
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
NOT_OF_THE_FILE = OF_THE_PROCESS | {errno.ENOENT}
"""Errors of opening that say nothing about an existing file."""
MAX_ATTEMPTS = 3
"""A file that killed the process twice when it was read alone is not read again (pitfalls I10)."""


def is_last_attempt(claim: Claim) -> bool:
    """Return whether reading the file killed so many processes that it is not read again."""
    return claim.attempt + 1 >= MAX_ATTEMPTS


def _is_read_whole(claim: Claim) -> bool:
    """Return whether the name says that the file is read whole; other names are those of bundles."""
    return find_extension(claim.name) == ".json"


def _is_quiet(claim: Claim, signature: Signature, known: Known | None, for_s: float) -> bool:
    """Return whether a file is known to have had this signature for so many seconds."""
    if claim.is_return:  # it settled before its first import
        return True
    return for_s <= (known.for_s if known is not None and known.signature == signature else 0.0)


def inspect(
    claim: Claim, descriptor: int, known: Known | None, options: Options
) -> ReadFile | Departure:
    """Read an open file; return its verdict, or why it is not judged yet. Raises OSError.

    A valid resume is complete, and is judged immediately. Anything else may be incomplete, and is
    judged only after it was unchanged for the settling time (pitfalls I3). A report of ours that
    was put back into the inbox is not judged at all (I13).
    """
    verdict: Resume | Result | None = None
    content = None
    if _is_read_whole(claim):
        content = files.read_file(descriptor, options.format.max_bytes)
    if content is None or content.is_over_limit:
        signature = files.signature_of(os.fstat(descriptor))
        if not _is_quiet(claim, signature, known, options.settle_s):
            return Departure(claim, Cause.SETTLING, signature)
        return ReadFile(claim, signature)
    body, signature, is_ready = content.body, content.signature, content.is_steady
    verdict = outcomes.judge(body, options.format.for_account(claim.first_month))
    if isinstance(verdict, Result):
        if not claim.is_return and parse_report(body):
            return Departure(claim, Cause.REPORT, signature)
        is_ready = is_ready and _is_quiet(claim, signature, known, options.settle_s)
    if not is_ready:
        return Departure(claim, Cause.SETTLING, signature)
    if isinstance(verdict, Result) and json_texts.is_json_bundle(body):
        return ReadFile(claim, signature)
    head = body[: files.HEAD_BYTES]
    return ReadFile(claim, signature, verdict, files.digest(body), head=head)


class Reader:
    """Reads files below one ROOT, and notes what it reads in the slot."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def read(self, candidates: Sequence[Candidate]) -> list[ReadFile]:
        """Read and return the files that are ready; the others depart."""
        slot, observe = self._job.slot, self._job.observe
        try:
            slot.note(candidate.claim for candidate in candidates)
        except OSError as error:
            self._job.departures += (
                Departure(file.claim, Cause.TROUBLE, error=error) for file in candidates
            )
            return []
        observe(Step.NOTED)
        answers = [self._read(candidate) for candidate in candidates]
        self._job.depart(answer for answer in answers if isinstance(answer, Departure))
        works = [answer for answer in answers if isinstance(answer, ReadFile)]
        slot.note_read((work.claim.id, work.signature, work.digest) for work in works)
        observe(Step.READ)
        return works

    def _read(self, candidate: Candidate) -> ReadFile | Departure:
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
            return Departure(claim, Cause.GONE)
        except OSError as error:
            cause = Cause.STUCK if error.errno in OF_THE_FILE else Cause.TROUBLE
            return self._depart(claim, cause, error)

    def _read_open(self, candidate: Candidate) -> ReadFile | Departure:
        claim = candidate.claim
        try:
            self._job.folders.open(claim.folder(self._job.root))
        except OSError as error:
            if error.errno in NOT_OF_THE_FILE:
                raise
            return self._depart(claim, Cause.STUCK, error)
        try:
            descriptor = self.open_file(claim)
        except OSError as error:
            if error.errno in NOT_OF_THE_FILE:
                raise
            # It settles first, as its mode may change.
            signature = files.signature_of(os.lstat(claim.path(self._job.root)))
            needed_s = MAX_SETTLE_TIMES * self._job.options.settle_s
            if not _is_quiet(claim, signature, candidate.known, needed_s):
                return Departure(claim, Cause.SETTLING, signature)
            return ReadFile(claim, signature, outcomes.unreadable(error))
        answer = None
        try:
            answer = self._judge(candidate, descriptor)
            return answer
        finally:
            if not (isinstance(answer, ReadFile) and answer.descriptor is not None):
                os.close(descriptor)

    def open_file(self, claim: Claim) -> int:
        """Open the claim's file for reading. Raises FileNotFoundError, NotAFile, OSError."""
        folder = self._job.folders.open(claim.folder(self._job.root))
        return files.open_file(claim.base, dir_fd=folder)

    def read_head(self, claim: Claim) -> bytes:
        """Return the file's first 64 KiB; empty if it cannot be read."""
        with contextlib.suppress(OSError):
            folder = self._job.folders.open(claim.folder(self._job.root))
            return files.find_head(claim.base, dir_fd=folder)
        return b""

    def _judge(self, candidate: Candidate, descriptor: int) -> ReadFile | Departure:
        claim, options = candidate.claim, self._job.options
        try:
            found = inspect(claim, descriptor, candidate.known, options)
        except OSError as error:  # a bad sector, say: a problem of this file alone
            return self._depart(claim, Cause.STUCK, error)
        if isinstance(found, Departure):
            return found
        # A file that a process may still write to is not judged (pitfalls I4).
        writer = files.find_writer(descriptor)
        if writer is not False:
            needed_s = min(UNKNOWN_WRITER_SETTLE_S, options.settle_s)
            if writer:
                needed_s = max(MIN_OPEN_S, MAX_SETTLE_TIMES * options.settle_s)
            if not _is_quiet(claim, found.signature, candidate.known, needed_s):
                return Departure(claim, Cause.OPEN, found.signature)
        kept = None if found.verdict is None else descriptor
        return found._replace(descriptor=kept, is_open=bool(writer))

    def _depart(self, claim: Claim, cause: Cause, error: OSError) -> Departure:
        """Return the file with its signature, if it is there and its folder can be searched."""
        signature = None
        with contextlib.suppress(OSError):
            signature = files.find_signature(claim.path(self._job.root))
        return Departure(claim, cause, signature, error)
