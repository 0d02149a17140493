"""Reading: which files are complete and can be judged now, and what they contain.

Files are read in the inbox. A complete, valid resume is judged immediately, and any other file once
it has settled. A file that is open for writing is not judged (pitfalls I3, I4).
"""

import contextlib
import errno
import os
from collections.abc import Sequence

from importer import files, json_texts, outcomes
from importer.claims import Claim, File, State
from importer.files import Signature
from importer.filing import OF_THE_FILE, OF_THE_PROCESS, parse_report
from importer.job import Job, Step
from importer.options import Options
from importer.outcomes import Result
from resumes.watched_names import find_extension

UNKNOWN_WRITER_SETTLE_S = 1.0
"""How long a file must be unchanged if the system cannot tell whether it is open for writing."""
MAX_SETTLE_TIMES = 12
MIN_OPEN_S = 60.0
"""A file that stays open for writing, or cannot be read, is checked anyway once it has been
unchanged for twelve settling times, and for at least this long while it is open."""
NOT_OF_THE_FILE = OF_THE_PROCESS | {errno.ENOENT}
"""Errors of opening that say nothing about an existing file."""
MAX_ATTEMPTS = 3
"""A file is not read again after it killed the process twice when read alone (pitfalls I10)."""


def is_last_attempt(claim: Claim) -> bool:
    """Return whether the file is not read again because reading it killed too many processes."""
    return claim.attempt + 1 >= MAX_ATTEMPTS


def _is_read_whole(claim: Claim) -> bool:
    """Return whether the file is read completely by its name; other names are names of bundles."""
    return find_extension(claim.name) == ".json"


def _is_quiet(file: File, signature: Signature, for_s: float) -> bool:
    """Return whether the file is known to have had this signature for this many seconds."""
    if file.claim.is_return:  # the file settled before its first import
        return True
    known = file.known
    return for_s <= (known.for_s if known is not None and known.signature == signature else 0.0)


def inspect(file: File, descriptor: int, options: Options) -> None:
    """Read an open file, and set its verdict or why it is not judged yet. Raises OSError.

    A valid resume is complete and is judged immediately. Any other content may be incomplete, and
    is judged only after it has been unchanged for the settling time (pitfalls I3). A report that
    was put back into the inbox is never judged (I13).
    """
    claim, body, verdict, content = file.claim, b"", None, None
    if _is_read_whole(claim):
        content = files.read_file(descriptor, options.format.max_bytes)
    if content is None or content.is_over_limit:
        signature = files.signature_of(os.fstat(descriptor))
        is_ready = _is_quiet(file, signature, options.settle_s)
    else:
        body, signature, is_ready = content.body, content.signature, content.is_steady
        verdict = outcomes.judge(body, options.format.for_account(claim.first_month))
        if isinstance(verdict, Result):
            if not claim.is_return and parse_report(body):
                file.leave(State.REPORT, signature)
                return
            is_ready = is_ready and _is_quiet(file, signature, options.settle_s)
    # The ledger may have the outcome of a resumed file's old content; other content is a new file.
    is_other = file.is_resumed and file.known is not None and file.known.signature != signature
    if is_other or not is_ready:
        file.leave(State.SETTLING, signature)
        return
    if isinstance(verdict, Result) and json_texts.is_json_bundle(body):
        verdict = None
    file.state, file.signature, file.verdict, file.digest = State.READ, signature, verdict, None
    if verdict is not None:
        file.digest, file.head = files.digest(body), body[: files.HEAD_BYTES]


class Reader:
    """Reads files below one ROOT, and records in the slot's note what it reads."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def read(self, candidates: Sequence[File]) -> list[File]:
        """Read files and return those that are ready. The other files depart."""
        slot, observe = self._job.slot, self._job.observe
        try:
            slot.note(candidates)
        except OSError as error:
            for file in candidates:
                file.leave(State.TROUBLE, error=error)
            self._job.departures += candidates
            return []
        observe(Step.NOTED)
        for file in candidates:
            self._read(file)
        self._job.depart(file for file in candidates if file.state is not State.READ)
        read = [file for file in candidates if file.state is State.READ]
        # If this note is lost, the files are only read one by one unnecessarily.
        slot.note(read, must_last=False)
        observe(Step.READ)
        return read

    def _read(self, file: File) -> None:
        claim = file.claim
        try:
            if is_last_attempt(claim) and _is_read_whole(claim):
                self._note_unread(file, outcomes.CRASHED)
                file.head = self.read_head(claim)
            elif file.is_resumed:
                file.is_begun = True
                self._job.slot.note([file])
                self._read_open(file)
                file.is_begun = False
                # If this note is lost, only one attempt too many is counted.
                self._job.slot.note([file], must_last=False)
            else:
                self._read_open(file)
        except FileNotFoundError:
            file.leave(State.GONE)
        except OSError as error:
            self._leave(file, State.STUCK if error.errno in OF_THE_FILE else State.TROUBLE, error)

    def _note_unread(self, file: File, verdict: Result, settle_s: float = 0) -> None:
        """Set the verdict on a file that is not read, once the file has settled. Raises OSError."""
        signature = files.signature_of(os.lstat(file.claim.path(self._job.root)))
        if not _is_quiet(file, signature, settle_s):
            file.leave(State.SETTLING, signature)
            return
        file.state, file.signature, file.verdict, file.digest = State.READ, signature, verdict, None

    def _read_open(self, file: File) -> None:
        claim = file.claim
        try:
            self._job.folders.open(claim.folder(self._job.root))
        except OSError as error:
            if error.errno in NOT_OF_THE_FILE:
                raise
            self._leave(file, State.STUCK, error)
            return
        try:
            descriptor = self.open_file(claim)
        except OSError as error:
            if error.errno in NOT_OF_THE_FILE:
                raise
            # Let the file settle first, as its permissions may change.
            settle_s = MAX_SETTLE_TIMES * self._job.options.settle_s
            self._note_unread(file, outcomes.unreadable(error), settle_s)
            return
        try:
            self._judge(file, descriptor)
        finally:
            if file.descriptor is None:
                os.close(descriptor)

    def open_file(self, claim: Claim) -> int:
        """Open the claim's file for reading. Raises FileNotFoundError, NotAFile and OSError."""
        folder = self._job.folders.open(claim.folder(self._job.root))
        return files.open_file(claim.base, dir_fd=folder)

    def read_head(self, claim: Claim) -> bytes:
        """Return the file's first 64 KiB, or no bytes if it cannot be read."""
        with contextlib.suppress(OSError):
            folder = self._job.folders.open(claim.folder(self._job.root))
            return files.find_head(claim.base, dir_fd=folder)
        return b""

    def _judge(self, file: File, descriptor: int) -> None:
        options = self._job.options
        try:
            inspect(file, descriptor, options)
        except OSError as error:  # such as a bad sector, which affects only this file
            self._leave(file, State.STUCK, error)
        if file.state is not State.READ:
            return
        # A file that a process may still write to is not judged (pitfalls I4).
        writer = files.find_writer(descriptor)
        if writer is not False:
            needed_s = min(UNKNOWN_WRITER_SETTLE_S, options.settle_s)
            if writer:
                needed_s = max(MIN_OPEN_S, MAX_SETTLE_TIMES * options.settle_s)
            if not _is_quiet(file, file.signature, needed_s):
                file.leave(State.OPEN, file.signature)
                return
        file.is_open = bool(writer)
        if file.verdict is not None:
            file.descriptor = descriptor

    def _leave(self, file: File, state: State, error: OSError) -> None:
        """Set the state and error, with the file's signature if it can be read."""
        signature = None
        with contextlib.suppress(OSError):
            signature = files.find_signature(file.claim.path(self._job.root))
        file.leave(state, signature, error)
