"""Files of one resume: created in batches, each in one transaction with its outcomes (pitfalls I1)."""

from collections import deque
from collections.abc import Iterable, Sequence

from importer import files, outcomes
from importer.failpoints import Step
from importer.filing import ReadFile
from importer.job import Job
from importer.outcomes import Result
from importer.pending import PendingFiling, PendingFilings, close
from resumes.analyzer import Resume
from resumes.errors import NotFound, ResumesError, StatementRefused, StoreError
from resumes.import_reasons import Reason
from resumes.store import accounts, import_ledger
from resumes.store.creation import Creation, NewResume, Outcome, create_files
from resumes.store.import_ledger import FileOutcome
from resumes.watched_folder import shown_root


class Ledger:
    """The outcomes of one ROOT's files, in the store."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._shown_root = shown_root(job.root)
        self._deadline_s = job.options.tuning.write_timeout_s

    def create(self, creations: Sequence[Creation]) -> list[list[Outcome] | NotFound]:
        """Create the resumes of files. Raises what `create_files` does."""
        return create_files(self._job.store, creations, deadline_s=self._deadline_s)

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
                self._job.store,
                work.claim.account_id,
                row,
                result.as_verdict(),
                deadline_s=self._deadline_s,
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
        deleted = accounts.find_deleted(self._job.store, account_ids) if works else account_ids
        return [work for work in works if work.claim.account_id not in deleted]


class BatchImporter:
    """Imports files that were read whole."""

    def __init__(self, job: Job, ledger: Ledger, pending: PendingFilings) -> None:
        self._job = job
        self._ledger = ledger
        self._pending = pending
        self._ready: deque[ReadFile] = deque()

    def __len__(self) -> int:
        """Return how many files were read and are not committed."""
        return len(self._ready)

    def add(self, work: ReadFile) -> None:
        """Import the file with the next `commit`."""
        self._ready.append(work)

    def drop(self) -> None:
        """Forget all files, and close them."""
        close(self._ready)
        self._ready.clear()

    def commit(self) -> None:
        """Commit what was read to the store and the ledger, and file it away.

        Raises StoreError; the files wait for the next call then.
        """
        while works := self._next_batch():
            ends = self._commit(works)
            ended = [PendingFiling(work, end) for work, end in zip(works, ends, strict=True)]
            left = self._ledger.find_unowned(
                file.work for file in ended if _is_deleted(file.result)
            )
            for _ in works:
                self._ready.popleft()
            self._job.observe(Step.COMMITTED)
            self._pending.end(left)
            left_ids = {work.claim.id for work in left}
            self._pending.file_away(file for file in ended if file.work.claim.id not in left_ids)

    def _next_batch(self) -> list[ReadFile]:
        works: list[ReadFile] = []
        size_bytes = 0
        tuning = self._job.options.tuning
        for work in self._ready:
            works.append(work)
            size_bytes += work.signature.size_bytes
            if len(works) == tuning.batch_files or size_bytes >= tuning.batch_bytes:
                break
        return works

    def _commit(self, works: Sequence[ReadFile]) -> list[Result]:
        try:
            results = self._ledger.create([self._creation(work) for work in works])
        except Exception as error:
            if is_store_failure(error):
                raise
            if len(works) > 1:
                outcomes.log_exception(
                    "A batch of %d files failed; importing them one by one", len(works)
                )
                return [end for work in works for end in self._commit([work])]
            end = outcomes.internal_error()
            self._ledger.record(works[0], end)
            return [end]
        return [_result(work, created) for work, created in zip(works, results, strict=True)]

    def _creation(self, work: ReadFile) -> Creation:
        claim = work.claim
        row = self._ledger.row(work)
        now_us = self._job.store.clock()
        verdict = _verdict(work)
        warnings = () if isinstance(verdict, Result) else verdict.warnings
        if warnings or work.analysis is not None:
            done = Result(FileOutcome.DONE, warnings=warnings, analysis=work.analysis)
            row = row._replace(items=done.as_ledger_text())
        if isinstance(verdict, Result):
            known_id, failed = verdict.resume_id, verdict.as_verdict()
            return Creation(claim.account_id, (), now_us, row, failed, resume_id=known_id)
        new = NewResume(verdict, digest=work.digest, label=claim.label)
        if work.analysis is not None:
            new = new._replace(digest=files.digest(work.head), original=work.digest)
        queue = self._pending.find_queue(claim)
        return Creation(claim.account_id, (new,), now_us, row, queue=queue)


def is_store_failure(error: Exception) -> bool:
    """Return whether the whole store failed, so that the work has to wait until it recovers."""
    return isinstance(error, StoreError) and not isinstance(error, StatementRefused)


def _is_deleted(result: Result) -> bool:
    return result.reason is Reason.ACCOUNT_DELETED


def _result(work: ReadFile, created: Sequence[Outcome] | ResumesError) -> Result:
    if isinstance(created, ResumesError):
        result = outcomes.result_of(created)
    else:
        result = next(outcomes.results_of([_verdict(work)], created))
    return result if work.analysis is None else result._replace(analysis=work.analysis)


def _verdict(work: ReadFile) -> Resume | Result:
    assert work.verdict is not None
    return work.verdict
