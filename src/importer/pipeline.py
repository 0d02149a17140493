"""The path of a file from the inbox to its outcome folder, in order.

    note       write the names and accounts of a batch's files to the slot's note
    read       read each file, which stays in the inbox (`reader`)
    analyze    have the user's analyzer turn a document into a resume, in a thread (`analyses`)
    commit     store resumes, digests, items and outcomes in one transaction (pitfalls I1), for
               a batch of single resumes or for a bundle slice by slice (`slices`)
    file away  write the report, move the file, and check it again (`pending`, `filing`)

A process may be killed at any point: before the commit, the file still counts as new; after the
commit, the ledger says where the file belongs (`importer.recovery`). A committed file that cannot be filed is retried
later, and not imported again.
"""

from collections import deque
from collections.abc import Callable, Sequence

from importer import files, ledger, outcomes
from importer.analyses import Documents
from importer.claims import File, State
from importer.job import Job, Step
from importer.outcomes import Result
from importer.pending import PendingFilings
from importer.reader import Reader
from importer.slices import BundleImporter
from resumes.errors import ResumesError, StoreUnavailable
from resumes.import_reasons import Reason
from resumes.store.creation import Creation, NewResume
from resumes.store.import_ledger import FileOutcome
from resumes.watched_names import is_document


class Pipeline:
    """Imports files while the slot is held. Files that leave go to the job's `departures`."""

    def __init__(self, job: Job, *, on_analyzed: Callable[[], None] = lambda: None) -> None:
        self._job = job
        self._reader = Reader(job)
        self._ready: deque[File] = deque()
        """Files that were read completely but are not committed yet."""
        self.pending = PendingFilings(job)
        self.bundles = BundleImporter(job, self._reader, self.pending)
        self.documents = Documents(job, on_analyzed)

    @property
    def under_way(self) -> int:
        waiting = len(self._ready) + len(self.bundles) + len(self.documents)
        return waiting + len(self.pending)

    @property
    def can_go_on(self) -> bool:
        """Whether work can continue now: on bundles, documents, or files not stored yet."""
        return bool(self._ready) or self.bundles.can_go_on or self.documents.can_go_on

    def read(self, candidates: Sequence[File]) -> None:
        for file in self._reader.read(candidates):
            if file.verdict is not None:
                self._ready.append(file)
            elif is_document(file.claim.source):
                self.documents.add(file)
            else:
                self.bundles.add(file)

    def go_on(self) -> None:
        """Do the next step of each part: commit the files that were read, take analyzed documents,
        retry filing, and store the next slice of a bundle. Raises StoreError; call again then."""
        self.commit()
        self._ready += self.documents.take()
        self.pending.retry()
        self._job.folders.close()
        try:
            self.bundles.advance()
        except StoreUnavailable:
            if not self._job.store.is_sharded:
                raise
            self.bundles.postpone()

    def commit(self) -> None:
        """Commit and file the files that were read completely or analyzed. Raises StoreError; the
        files then wait for the next call."""
        while batch := self._next_batch():
            self._commit(batch)
            results = ((file, file.result) for file in batch)
            gone = (file for file, end in results if end and end.reason is Reason.ACCOUNT_DELETED)
            unowned = ledger.find_unowned(self._job, gone)
            for _ in batch:
                self._ready.popleft()
            self._job.observe(Step.COMMITTED)
            self.pending.end(unowned)
            self._job.depart(file for file in batch if file.state is State.UNREACHABLE)
            self.pending.file_away(file for file in batch if file.state is State.COMMITTED)
        self.documents.note_stored()
        self._job.folders.close()

    def _next_batch(self) -> list[File]:
        batch: list[File] = []
        size_bytes = 0
        tuning = self._job.options.tuning
        for file in self._ready:
            batch.append(file)
            size_bytes += file.signature.size_bytes
            if len(batch) == tuning.batch_files or size_bytes >= tuning.batch_bytes:
                break
        return batch

    def _commit(self, batch: Sequence[File]) -> None:
        """Give each file its result, unless its account cannot be reached."""
        creations = [self._creation(file) for file in batch]
        for file, created in zip(batch, ledger.create(self._job, creations), strict=True):
            assert file.verdict is not None
            if isinstance(created, StoreUnavailable):
                file.leave(State.UNREACHABLE, file.signature)
                file.result = None
                continue
            if isinstance(created, Result):
                ledger.record(self._job, file, created)
            if isinstance(created, Result | ResumesError):
                file.result = outcomes.result_of(created)
            else:
                file.result = next(outcomes.results_of([file.verdict], created))
            if file.analysis is not None:
                file.result = file.result._replace(analysis=file.analysis)
            file.state = State.COMMITTED

    def _creation(self, file: File) -> Creation:
        claim, verdict, now_us = file.claim, file.verdict, self._job.store.clock()
        row = ledger.row_of(self._job, file)
        warnings = () if isinstance(verdict, Result) or verdict is None else verdict.warnings
        if warnings or file.analysis is not None:
            done = Result(FileOutcome.DONE, warnings=warnings, analysis=file.analysis)
            row = row._replace(items=done.as_ledger_text())
        if isinstance(verdict, Result):
            failed = verdict.as_verdict()
            return Creation(claim.account_id, (), now_us, row, failed, resume_id=verdict.resume_id)
        assert verdict is not None
        new = NewResume(verdict, digest=file.digest, label=claim.label)
        if file.analysis is not None:
            new = new._replace(digest=files.digest(file.head), original=file.digest)
        queue = self.pending.queues.why_held(claim)
        return Creation(claim.account_id, (new,), now_us, row, queue=queue)

    def drop(self) -> None:
        for file in self._ready:
            file.close()
        self._ready.clear()
        for part in (self.documents, self.bundles, self.pending):
            part.drop()
        self._job.folders.close()
