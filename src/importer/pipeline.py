"""The path of a file from the inbox to its final place, in the order in which it is taken.

    note       write the names and accounts of a batch's files into the slot's note
    read       each file stays in place (`reader`)
    commit     resumes, digests, items and outcomes in one transaction: of a file of one resume (`batch`),
               of a bundle slice by slice (`slices`)
    file away  write the report, move the file, and check that it still is what was read (`pending`, `filing`)

A process may be killed anywhere: before the commit the file is a new one, after it the ledger
says where it belongs (`importer.recovery`). A committed file that cannot be filed is retried
later, and not imported again.
"""

from collections.abc import Sequence

from importer.batch import BatchImporter, Ledger
from importer.filing import Filer
from importer.job import Job
from importer.pending import PendingFilings
from importer.reader import Candidate, NotImported, Reader
from importer.slices import BundleImporter


class Pipeline:
    """Imports files, for as long as the slot is held."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.filer = Filer(job)
        self.pending = PendingFilings(job, self.filer)
        self._reader = Reader(job)
        ledger = Ledger(job)
        self._whole = BatchImporter(job, ledger, self.pending)
        self.bundles = BundleImporter(job, ledger, self._reader, self.pending)

    @property
    def under_way(self) -> int:
        """How many files were read and are not filed."""
        return len(self._whole) + len(self.bundles) + len(self.pending)

    @property
    def can_go_on(self) -> bool:
        """Whether work can continue immediately: on bundles, or on files that the store did not take."""
        return bool(self._whole or self.bundles)

    def read(self, candidates: Sequence[Candidate]) -> list[NotImported]:
        """Read the files that are ready, for the next `commit`; return the others."""
        left = []
        for answer in self._reader.read(candidates):
            if isinstance(answer, NotImported):
                left.append(answer)
            elif answer.verdict is None:
                self.bundles.add(answer)
            else:
                self._whole.add(answer)
        return left

    def commit(self) -> None:
        """Commit what was read whole, and file it away. Raises StoreError; the next call continues there."""
        self._whole.commit()
        self._job.folders.close()

    def go_on(self) -> NotImported | None:
        """Retry filing, and store the next slice of a bundle. Return the bundle if it turns out not to be
        importable. Raises StoreError; the next call continues there."""
        self.pending.retry()
        self._job.folders.close()
        return self.bundles.advance()

    def drop(self) -> None:
        """Forget all work in progress, and close its files."""
        for part in (self._whole, self.bundles, self.pending):
            part.drop()
        self._job.folders.close()
