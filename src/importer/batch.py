"""The path of files from the inbox to their final place, in batches.

    note       write the names and accounts of the batch's files into the slot's note
    read       the files stay in place; a complete, valid resume immediately, anything else once
               unchanged, nothing that a process has open for writing (pitfalls I3, I4)
    commit     one transaction: resumes, digests, items, outcomes (I1)
    file away  write the report, move the file, and check that it still is what was read

A process may be killed anywhere: before the commit the file is a new one, after it the ledger
says where it belongs (`importer.recovery`). A committed file that cannot be filed is retried
later, and not imported again.
"""

import contextlib
import errno
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from importer import files, json_texts, outcomes
from importer.claims import Claim
from importer.failpoints import Observer, Step
from importer.files import Folders, Known, Signature, escaped
from importer.filing import OF_THE_FILE, OF_THE_PROCESS, Filer, FileState, ReadFile, parse_report
from importer.notices import FileReport, Remark, as_report
from importer.options import Options
from importer.outcomes import Result
from importer.slots import Slot
from resumes.analyzer import Resume
from resumes.errors import Conflict, NotFound, ResumesError, StatementRefused, StoreError
from resumes.import_reasons import Reason
from resumes.store import Store, accounts, import_history, import_ledger, import_requests
from resumes.store.creation import Creation, NewResume, create_files
from resumes.store.import_ledger import FileOutcome
from resumes.watched_folder import shown_root
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


@dataclass(frozen=True, slots=True)
class QuotaBacklog:
    """The held files of an account: which came first, and the message for those that join."""

    first_claim_id: str
    message: str


NOT_OF_THE_FILE = OF_THE_PROCESS | {errno.ENOENT}
"""Errors of opening that say nothing about an existing file."""

MAX_ATTEMPTS = 3
"""A file that killed the process twice when it was read alone is not read again (pitfalls I10)."""

RETRY_INTERVALS_S = {
    FileState.WRITTEN_TO: 1.0,
    FileState.UNMOVABLE: 5.0,
    FileState.KEPT: 60.0,
    FileState.STUCK: 0.0,
}
"""How long to wait before filing a file again, by the state in which it was left."""

MAX_RETRY_INTERVAL_S = 60.0
"""The upper limit of that interval for a file that cannot be moved; it doubles with each attempt."""

OUTCOME_PHRASES = {
    FileOutcome.DONE: "was imported",
    FileOutcome.DUPLICATE: "is a duplicate",
    FileOutcome.HELD: "is held",
    FileOutcome.FAILED: "was rejected",
}
"""How messages name the outcome of a file that cannot be moved."""


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


class PendingFiling(NamedTuple):
    """A file whose outcome is in the ledger, and that still has to be filed."""

    work: ReadFile
    result: Result
    target: str = ""
    """Where it was moved to; empty if it was not."""
    tries: int = 0
    """How many attempts to move it have failed."""
    due: float = -math.inf
    """When the next attempt is due, on the monotonic clock."""
    is_stuck: bool = False
    """Whether it could not be moved for a reason that concerns all files."""
    is_awaited: bool = False
    """Whether it was moved, and only waits for the process that writes to it."""
    is_kept: bool = False
    """Whether it stays in the inbox, and was reported."""


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


class BatchImporter:
    """Imports files into one store, below one ROOT, for as long as the slot is held."""

    def __init__(
        self,
        store: Store,
        slot: Slot,
        *,
        root: Path,
        options: Options,
        on_filed: Callable[[FileReport], None],
        remark: Remark,
        observe: Observer,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._slot = slot
        self._root = str(root)
        self._shown_root = shown_root(self._root)
        self._options = options
        self.queues: dict[str, QuotaBacklog] = {}
        """By account id, the held files that new ones queue behind (pitfalls I7)."""
        self._on_filed = on_filed
        self._remark = remark
        self._observe = observe
        self._monotonic = monotonic
        self._folders = Folders(self._root)
        self.filer = Filer(root, self._folders, options, store.clock, observe)
        self._ready: deque[ReadFile] = deque()
        self._bundles: deque[ReadFile] = deque()
        """The bundles to unpack (`importer.slices`)."""
        self._unfiled: dict[str, PendingFiling] = {}
        """By claim id, imported files that are not moved yet, or still written to."""
        self._ended: list[str] = []
        self._moved_back: list[Claim] = []

    @property
    def is_stuck(self) -> bool:
        """Whether a file could not be filed; nothing new is taken until then (I11)."""
        return any(pending.is_stuck for pending in self._unfiled.values())

    @property
    def under_way(self) -> int:
        """How many files were read and are not filed."""
        return len(self._ready) + len(self._bundles) + len(self._unfiled)

    @property
    def can_go_on(self) -> bool:
        """Whether work can continue immediately: on bundles, or on files that the store did not take."""
        return bool(self._ready or self._bundles)

    def list_awaited(self) -> list[tuple[float, str]]:
        """Return when to check the filed files that are still written to, and their names."""
        return [(end.due, end.work.claim.name) for end in self._unfiled.values() if end.is_awaited]

    def take_ends(self) -> tuple[tuple[str, ...], tuple[Claim, ...]]:
        """Return the claim ids of the files that were finished since the last call, and the claims
        of those that were moved back."""
        ends = tuple(self._ended), tuple(self._moved_back)
        self._ended.clear()
        self._moved_back.clear()
        return ends

    # Read

    def read(self, candidates: Sequence[Candidate]) -> list[NotImported]:
        """Read the files that are ready, for the next `commit`; return the others."""
        try:
            self._slot.note(candidate.claim for candidate in candidates)
        except OSError as error:
            return [
                NotImported(file.claim, FailureReason.TROUBLE, None, error) for file in candidates
            ]
        self._observe(Step.NOTED)
        left: list[NotImported] = []
        read: list[ReadFile] = []
        for candidate in candidates:
            answer = self._read(candidate)
            if isinstance(answer, ReadFile):
                read.append(answer)
            else:
                left.append(answer)
        if left:
            self._slot.end(file.claim.id for file in left)
        self._slot.note_read((work.claim.id, work.signature, work.digest) for work in read)
        self._observe(Step.READ)
        for work in read:
            (self._ready if work.verdict is not None else self._bundles).append(work)
        return left

    def _read(self, candidate: Candidate) -> ReadFile | NotImported:
        claim = candidate.claim
        try:
            if is_last_attempt(claim) and _is_read_whole(claim):
                signature = files.signature_of(os.lstat(claim.path(self._root)))
                return ReadFile(claim, signature, outcomes.CRASHED, head=self._read_head(claim))
            if not candidate.is_alone:
                return self._read_open(candidate)
            self._slot.begin_alone(claim)
            answer = self._read_open(candidate)
            self._slot.end_alone(claim.id)
            return answer
        except FileNotFoundError:
            return NotImported(claim, FailureReason.GONE)
        except OSError as error:
            why = FailureReason.STUCK if error.errno in OF_THE_FILE else FailureReason.TROUBLE
            return NotImported(claim, why, self._signature(claim), error)

    def _read_open(self, candidate: Candidate) -> ReadFile | NotImported:
        claim = candidate.claim
        try:
            self._folders.open(claim.folder(self._root))
        except OSError as error:
            if error.errno in NOT_OF_THE_FILE:
                raise
            return NotImported(claim, FailureReason.STUCK, self._signature(claim), error)
        try:
            descriptor = self._open_file(claim)
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

    def _open_file(self, claim: Claim) -> int:
        """Open the claim's file for reading. Raises FileNotFoundError, NotAFile, OSError."""
        folder = self._folders.open(claim.folder(self._root))
        return files.open_file(claim.base, dir_fd=folder)

    def _read_head(self, claim: Claim) -> bytes:
        """Return the file's first 64 KiB; empty if it cannot be read."""
        with contextlib.suppress(OSError), os.fdopen(self._open_file(claim), "rb") as file:
            return file.read(files.HEAD_BYTES)
        return b""

    def _judge(self, candidate: Candidate, descriptor: int) -> ReadFile | NotImported:
        claim = candidate.claim
        try:
            found = inspect(claim, descriptor, candidate.known, self._options)
        except OSError as error:  # a bad sector, say: a problem of this file alone
            return NotImported(claim, FailureReason.STUCK, self._signature(claim), error)
        if isinstance(found, NotImported):
            return found
        # A file that a process may still write to is not judged (pitfalls I4).
        writer = files.find_writer(descriptor)
        if writer is not False:
            needed_s = min(UNKNOWN_WRITER_SETTLE_S, self._options.settle_s)
            if writer:
                needed_s = max(MIN_OPEN_S, MAX_SETTLE_TIMES * self._options.settle_s)
            if _quiet_s(claim, found.signature, candidate.known) < needed_s:
                return NotImported(claim, FailureReason.OPEN, found.signature)
        kept = None if found.verdict is None else descriptor
        return found._replace(descriptor=kept, is_open=bool(writer))

    def _unreadable(self, candidate: Candidate, error: OSError) -> ReadFile | NotImported:
        """Return what to do with a file that cannot be opened: it settles first, as its mode may change."""
        claim = candidate.claim
        signature = files.signature_of(os.lstat(claim.path(self._root)))
        needed_s = MAX_SETTLE_TIMES * self._options.settle_s
        if _quiet_s(claim, signature, candidate.known) < needed_s:
            return NotImported(claim, FailureReason.SETTLING, signature)
        return ReadFile(claim, signature, outcomes.unreadable(error))

    def _signature(self, claim: Claim) -> Signature | None:
        """Return the file's signature; None if it is gone or its folder cannot be searched."""
        with contextlib.suppress(OSError):
            return files.find_signature(claim.path(self._root))
        return None

    # Commit

    def commit(self) -> None:
        """Commit what was read to the store and the ledger, and file it away.

        Raises StoreError; the files wait for the next call then.
        """
        while works := self._next_batch():
            ends = self._commit(works)
            ended = [PendingFiling(work, end) for work, end in zip(works, ends, strict=True)]
            left = self.find_unowned(file.work for file in ended if _is_deleted(file.result))
            for _ in works:
                self._ready.popleft()
            self._observe(Step.COMMITTED)
            self.end(left)
            left_ids = {work.claim.id for work in left}
            self.file_away(file for file in ended if file.work.claim.id not in left_ids)
        if not self._ready:
            self._folders.close()

    def _next_batch(self) -> list[ReadFile]:
        works: list[ReadFile] = []
        size_bytes = 0
        tuning = self._options.tuning
        for work in self._ready:
            works.append(work)
            size_bytes += work.signature.size_bytes
            if len(works) == tuning.batch_files or size_bytes >= tuning.batch_bytes:
                break
        return works

    def _commit(self, works: Sequence[ReadFile]) -> list[Result]:
        try:
            creations = [self._creation(work) for work in works]
            results = create_files(
                self._store, creations, deadline_s=self._options.tuning.write_timeout_s
            )
        except Exception as error:
            if is_store_failure(error):
                raise
            if len(works) > 1:
                outcomes.log_exception(
                    "A batch of %d files failed; importing them one by one", len(works)
                )
                return [end for work in works for end in self._commit([work])]
            end = outcomes.internal_error()
            self.record(works[0], end)
            return [end]
        return [
            outcomes.result_of(created)
            if isinstance(created, ResumesError)
            else next(outcomes.results_of([_verdict(work)], created))
            for work, created in zip(works, results, strict=True)
        ]

    def _creation(self, work: ReadFile) -> Creation:
        claim = work.claim
        row = self.row(work)
        now_us = self._store.clock()
        verdict = _verdict(work)
        if isinstance(verdict, Result):
            return Creation(claim.account_id, (), now_us, row, verdict.as_verdict())
        if verdict.warnings:
            done = Result(FileOutcome.DONE, warnings=verdict.warnings)
            row = row._replace(items=done.as_ledger_text())
        new = NewResume(verdict, digest=work.digest, label=claim.label)
        queue = self.find_queue(claim)
        return Creation(claim.account_id, (new,), now_us, row, queue=queue)

    def row(self, work: ReadFile, items: str | None = None) -> import_ledger.ClaimedFile:
        """Return the file's row in the ledger."""
        claim = work.claim
        return import_ledger.ClaimedFile(
            claim_id=claim.id,
            name=claim.name,
            size_bytes=work.signature.size_bytes,
            claimed_at=claim.claimed_at,
            source=work.head,
            root=self._shown_root,
            items=items,
        )

    def record(self, work: ReadFile, result: Result) -> None:
        """Write the file's outcome into the ledger. Raises StoreError."""
        row = self.row(work, items=result.as_ledger_text())
        row = row._replace(name=result.name_of(row.name))
        if result.items and result.items.has_forgotten:
            row = row._replace(source=b"")
        try:
            import_ledger.record(
                self._store,
                work.claim.account_id,
                row,
                result.as_verdict(),
                deadline_s=self._options.tuning.write_timeout_s,
            )
        except Exception as error:
            if is_store_failure(error):
                raise
            # The report has the outcome; one file must not stop the others.
            outcomes.log_exception("No ledger row for claim %s", work.claim.id)

    def find_unowned(self, works: Iterable[ReadFile]) -> list[ReadFile]:
        """Return the files whose accounts the store does not know, not even as deleted; they stay in
        the inbox, because the store may have been restored from an older backup. Raises StoreError."""
        works = [*works]
        account_ids = {work.claim.account_id for work in works}
        deleted = accounts.find_deleted(self._store, account_ids) if works else account_ids
        return [work for work in works if work.claim.account_id not in deleted]

    # File away

    def file_away(self, ended: Iterable[PendingFiling]) -> None:
        """File those files whose outcome is in the ledger, as far as that is possible now."""
        ended = [*ended]
        self.adopt(ended)
        for file in ended:
            self._note_queue(file.work.claim, file.result)
        self._file(ended)

    def _file(self, ended: Iterable[PendingFiling]) -> None:
        """File each, and forget those that are finished; after an error all are tried again."""
        over = [file.work for file in ended if self._is_filed(file)]
        for work in over:
            del self._unfiled[work.claim.id]
        self.end(over)

    def set_queues(self, queues: dict[str, QuotaBacklog]) -> None:
        """Make new files queue behind these, and behind held files that are not filed yet."""
        self.queues = queues
        for file in self._unfiled.values():
            self._note_queue(file.work.claim, file.result)

    @property
    def first_unfiled(self) -> dict[str, str]:
        """By account id, the claim of the first held file that could not be moved yet."""
        files = sorted(self._unfiled.items(), reverse=True)
        return {
            file.work.claim.account_id: claim_id
            for claim_id, file in files
            if file.result.outcome is FileOutcome.HELD
        }

    def _note_queue(self, claim: Claim, result: Result) -> None:
        """Make later files of the account queue behind this one, if it is held."""
        if result.outcome is FileOutcome.HELD:
            # A bundle's own message counts its items; the first held item's says why.
            first = result.items and result.items.first(FileOutcome.HELD)
            message = (first or result).message
            queue = self.queues.get(claim.account_id)
            if queue is None or claim.id < queue.first_claim_id:
                self.queues[claim.account_id] = QuotaBacklog(claim.id, message)

    def find_queue(self, claim: Claim) -> str | None:
        """Return the message for a file that queues behind held ones; None if there are none."""
        queue = self.queues.get(claim.account_id)
        return None if queue is None or claim.id <= queue.first_claim_id else queue.message

    def go_on(self) -> None:
        """Retry filing the files that are due."""
        now = self._monotonic()
        self._file([file for file in self._unfiled.values() if now >= file.due])
        self._folders.close()

    def _is_filed(self, ended: PendingFiling) -> bool:
        """File it as far as that is possible now; return whether it is finished."""
        work, result = ended.work, ended.result
        claim = work.claim
        if ended.target:
            filed = self.filer.check(work, ended.target)
        else:
            filed = self.filer.file_away(work, result)
        problem, was = escaped(filed.problem), OUTCOME_PHRASES[result.outcome]
        again_s = RETRY_INTERVALS_S.get(filed.state)
        if filed.state is FileState.UNMOVABLE:
            again_s = min(RETRY_INTERVALS_S[filed.state] * 2.0**ended.tries, MAX_RETRY_INTERVAL_S)
        if again_s is not None:
            _close([work])
            self._unfiled[claim.id] = PendingFiling(
                work._replace(descriptor=None),
                result,
                filed.target,
                tries=min(ended.tries + 1, 10),
                due=self._monotonic() + again_s,
                is_stuck=filed.state is FileState.STUCK,
                is_awaited=filed.state is FileState.WRITTEN_TO and not problem,
                is_kept=ended.is_kept or filed.state is FileState.KEPT,
            )
        elif claim.is_return or result.needs_report:
            self.filer.tidy(claim, [result])
        match filed.state:
            case FileState.FILED | FileState.KEPT if not ended.is_kept:
                is_kept = filed.state is FileState.KEPT
                target = claim.path(self._root) if is_kept else filed.target
                self._on_filed(as_report(claim, result, target, is_kept=is_kept))
                if is_kept:
                    self._remark(
                        f"unmovable {claim.account_id} {problem}",
                        f"{claim.name} {was} and stays where it is: {problem}. Delete it",
                    )
            case FileState.CHANGED:
                self._remark(
                    f"changed {claim.id}",
                    f"{claim.name} was changed during its import; its new content will be imported as a "
                    "separate file",
                )
                self._moved_back.append(claim)
            case FileState.WRITTEN_TO if problem:
                self._remark(
                    f"changed {claim.id} {problem}",
                    f"{claim.name} was changed during its import; its new content is in "
                    f"{escaped(os.path.relpath(filed.target, self._root))} and cannot be moved "
                    f"back: {problem}. This will be retried",
                )
            case FileState.UNMOVABLE:
                self._remark(
                    f"unmovable {claim.account_id} {problem}",
                    f"{claim.name} {was}, but cannot be moved: {problem}. It stays where it is; "
                    "the move will be retried",
                )
            case FileState.STUCK:
                self._remark(
                    "unfiled",
                    f"Cannot move {claim.name}: {problem}. It {was} and stays where it is; the move "
                    "will be retried, and no new files will be imported until then",
                )
        return again_s is None

    def end(self, works: Sequence[ReadFile]) -> None:
        """Mark these files as finished."""
        _close(works)
        if ids := [work.claim.id for work in works]:
            self._ended += ids
            if self._slot.end(ids):
                self._observe(Step.ENDED)

    def adopt(self, ended: Iterable[PendingFiling]) -> None:
        """Take over files that another process imported; their claims are in the slot's note."""
        self._unfiled.update((file.work.claim.id, file) for file in ended)

    def drop(self) -> None:
        """Forget all work in progress, and close its files."""
        _close(self._ready)
        _close(file.work for file in self._unfiled.values())
        for collection in (self._ready, self._bundles, self._unfiled):
            collection.clear()
        self._folders.close()


def is_store_failure(error: Exception) -> bool:
    """Return whether the whole store failed, so that the work has to wait until it recovers."""
    return isinstance(error, StoreError) and not isinstance(error, StatementRefused)


CUT_OFF = "Its import was cut off, and it is no longer in its folder. Retry it when it is back"


def is_last_attempt(claim: Claim) -> bool:
    """Return whether reading the file killed so many processes that it is not read again."""
    return claim.attempt + 1 >= MAX_ATTEMPTS


def dismiss_unfinished(store: Store, claim: Claim) -> None:
    """Dismiss the file if the ledger says that it is being imported: no process will finish that.

    A filed file stays in the list: its disk may be detached, and is not scanned for new files when
    it is back. Raises StoreError.
    """
    with contextlib.suppress(NotFound, Conflict):  # another process has dismissed it
        row = import_history.get_file(store, claim.id, account_id=claim.account_id)
        if row.is_under_way and claim.is_return:
            import_requests.refuse_request(store, claim.account_id, claim.id, CUT_OFF)
        elif row.is_under_way:
            import_requests.dismiss_files(store, [row])


def _close(works: Iterable[ReadFile]) -> None:
    """Close the files that are open."""
    for work in works:
        if work.descriptor is not None:
            with contextlib.suppress(OSError):  # on a detached disk; it is closed nevertheless
                os.close(work.descriptor)


def _is_deleted(result: Result) -> bool:
    return result.reason is Reason.ACCOUNT_DELETED


def _verdict(work: ReadFile) -> Resume | Result:
    assert work.verdict is not None
    return work.verdict
