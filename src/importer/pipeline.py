"""The path of a file from the inbox to its final place, in the order in which it is taken.

    note       write the names and accounts of a batch's files into the slot's note
    read       each file stays in place (`reader`)
    analyze    a document becomes a resume by the user's analyzer, beside everything else (`analyses`)
    commit     resumes, digests, items and outcomes in one transaction: of a file of one resume (`batch`),
               of a bundle slice by slice (`slices`)
    file away  write the report, move the file, and check that it still is what was read (`pending`, `filing`)

A process may be killed anywhere: before the commit the file is a new one, after it the ledger
says where it belongs (`importer.recovery`). A committed file that cannot be filed is retried
later, and not imported again.
"""

from collections.abc import Callable, Sequence

from importer.analyses import Documents
from importer.batch import BatchImporter, Ledger
from importer.filing import Filer
from importer.job import Job
from importer.pending import PendingFilings
from importer.reader import Candidate, NotImported, Reader
from importer.slices import BundleImporter
from resumes.watched_names import is_document


class Pipeline:
    """Imports files, for as long as the slot is held."""

    def __init__(self, job: Job, *, on_analyzed: Callable[[], None] = lambda: None) -> None:
        self._job = job
        self.filer = Filer(job)
        self.pending = PendingFilings(job, self.filer)
        self._reader = Reader(job)
        ledger = Ledger(job)
        self._whole = BatchImporter(job, ledger, self.pending)
        self.bundles = BundleImporter(job, ledger, self._reader, self.pending)
        self.documents = Documents(job, on_analyzed)

    @property
    def under_way(self) -> int:
        """How many files were read and are not filed."""
        read = len(self._whole) + len(self.bundles) + len(self.documents)
        return read + len(self.pending)

    @property
    def can_go_on(self) -> bool:
        """Whether work can continue immediately: on bundles, on documents, or on files that the store did
        not take."""
        return bool(self._whole or self.bundles) or self.documents.can_go_on

    def read(self, candidates: Sequence[Candidate]) -> list[NotImported]:
        """Read the files that are ready, for the next `commit`; return the others."""
        left = []
        for answer in self._reader.read(candidates):
            if isinstance(answer, NotImported):
                left.append(answer)
            elif answer.verdict is None:
                is_analyzed = is_document(answer.claim.source)
                (self.documents if is_analyzed else self.bundles).add(answer)
            else:
                self._whole.add(answer)
        return left

    def commit(self) -> None:
        """Commit what was read whole or analyzed, and file it away. Raises StoreError; the next call continues
        there."""
        self._whole.commit()
        if not self._whole:
            self.documents.note_stored()
        self._job.folders.close()

    def go_on(self) -> NotImported | None:
        """Retry filing, and store the next slice of a bundle. Return the bundle if it turns out not to be
        importable. Raises StoreError; the next call continues there."""
        self.pending.retry()
        self._job.folders.close()
        return self.bundles.advance()

    def take_analyzed(self) -> list[NotImported]:
        """Have documents analyzed, and take those whose analysis has ended, for the next `commit`; return
        those that turned out not to be importable."""
        left = []
        for answer in self.documents.take():
            if isinstance(answer, NotImported):
                left.append(answer)
            else:
                self._whole.add(answer)
        if left:
            self._job.slot.end(file.claim.id for file in left)
        return left

    def drop(self) -> None:
        """Forget all work in progress, and close its files."""
        for part in (self.documents, self._whole, self.bundles, self.pending):
            part.drop()
        self._job.folders.close()
