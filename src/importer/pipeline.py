"""The path of a file from the inbox to its final place, in the order in which it is taken.

    note       write the names and accounts of a batch's files into the slot's note
    read       each file stays in place (`reader`)
    analyze    a document becomes a resume by the user's analyzer, beside everything else (`analyses`)
    commit     resumes, digests, items and outcomes in one transaction (pitfalls I1): of a batch of files of
               one resume, or of a bundle slice by slice (`slices`)
    file away  write the report, move the file, and check that it still is what was read (`pending`, `filing`)

A process may be killed anywhere: before the commit the file is a new one, after it the ledger
says where it belongs (`importer.recovery`). A committed file that cannot be filed is retried
later, and not imported again.
"""

from collections import deque
from collections.abc import Callable, Sequence

from importer import files, ledger, outcomes
from importer.analyses import Documents
from importer.job import Candidate, Job, ReadFile, Step
from importer.outcomes import Result
from importer.pending import PendingFiling, PendingFilings
from importer.reader import Reader
from importer.slices import BundleImporter
from resumes.errors import ResumesError
from resumes.import_reasons import Reason
from resumes.store.creation import Creation, NewResume, Outcome, create_files
from resumes.store.import_ledger import FileOutcome
from resumes.watched_names import is_document


class Pipeline:
    """Imports files, for as long as the slot is held. Files that leave it are in the job's `departures`."""

    def __init__(self, job: Job, *, on_analyzed: Callable[[], None] = lambda: None) -> None:
        self._job = job
        self._reader = Reader(job)
        self._ready: deque[ReadFile] = deque()
        """Files that were read whole, and are not committed."""
        self.pending = PendingFilings(job)
        self.bundles = BundleImporter(job, self._reader, self.pending)
        self.documents = Documents(job, on_analyzed)

    @property
    def under_way(self) -> int:
        waiting = len(self._ready) + len(self.bundles) + len(self.documents)
        return waiting + len(self.pending)

    @property
    def can_go_on(self) -> bool:
        """Whether work can continue immediately: on bundles, on documents, or on files that the store did
        not take."""
        return bool(self._ready or self.bundles) or self.documents.can_go_on

    def read(self, candidates: Sequence[Candidate]) -> None:
        for work in self._reader.read(candidates):
            if work.verdict is not None:
                self._ready.append(work)
            elif is_document(work.claim.source):
                self.documents.add(work)
            else:
                self.bundles.add(work)

    def go_on(self) -> None:
        """Do the next step of each part: commit what was read, take the documents that were analyzed, retry
        filing, store the next slice of a bundle. Raises StoreError; the next call continues there."""
        self.commit()
        self._ready += self.documents.take()
        self.pending.retry()
        self._job.folders.close()
        self.bundles.advance()

    def commit(self) -> None:
        """Commit what was read whole or analyzed, and file it away. Raises StoreError; the files wait for
        the next call then."""
        while works := self._next_batch():
            ends = self._commit(works)
            gone = [
                work
                for work, end in zip(works, ends, strict=True)
                if end.reason is Reason.ACCOUNT_DELETED
            ]
            left = ledger.find_unowned(self._job, gone)
            for _ in works:
                self._ready.popleft()
            self._job.observe(Step.COMMITTED)
            self.pending.end(left)
            left_ids = {work.claim.id for work in left}
            self.pending.file_away(
                PendingFiling(work, end)
                for work, end in zip(works, ends, strict=True)
                if work.claim.id not in left_ids
            )
        self.documents.note_stored()
        self._job.folders.close()

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
        deadline_s = self._job.options.tuning.write_timeout_s
        try:
            creations = [self._creation(work) for work in works]
            results = create_files(self._job.store, creations, deadline_s=deadline_s)
        except Exception as error:
            if ledger.is_store_failure(error):
                raise
            if len(works) > 1:
                outcomes.log_exception(
                    "A batch of %d files failed; importing them one by one", len(works)
                )
                return [end for work in works for end in self._commit([work])]
            end = outcomes.internal_error()
            ledger.record(self._job, works[0], end)
            return [end]
        return [_result(work, created) for work, created in zip(works, results, strict=True)]

    def _creation(self, work: ReadFile) -> Creation:
        claim, verdict, now_us = work.claim, work.verdict, self._job.store.clock()
        row = ledger.row_of(self._job, work)
        warnings = () if isinstance(verdict, Result) or verdict is None else verdict.warnings
        if warnings or work.analysis is not None:
            done = Result(FileOutcome.DONE, warnings=warnings, analysis=work.analysis)
            row = row._replace(items=done.as_ledger_text())
        if isinstance(verdict, Result):
            failed = verdict.as_verdict()
            return Creation(claim.account_id, (), now_us, row, failed, resume_id=verdict.resume_id)
        assert verdict is not None
        new = NewResume(verdict, digest=work.digest, label=claim.label)
        if work.analysis is not None:
            new = new._replace(digest=files.digest(work.head), original=work.digest)
        queue = self.pending.queues.find_message(claim)
        return Creation(claim.account_id, (new,), now_us, row, queue=queue)

    def drop(self) -> None:
        for work in self._ready:
            work.close()
        self._ready.clear()
        for part in (self.documents, self.bundles, self.pending):
            part.drop()
        self._job.folders.close()


def _result(work: ReadFile, created: Sequence[Outcome] | ResumesError) -> Result:
    if isinstance(created, ResumesError):
        result = outcomes.result_of(created)
    else:
        assert work.verdict is not None
        result = next(outcomes.results_of([work.verdict], created))
    return result if work.analysis is None else result._replace(analysis=work.analysis)
