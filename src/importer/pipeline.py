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

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from importer.batch import BatchImporter, Ledger
from importer.failpoints import Observer
from importer.files import Folders
from importer.filing import Filer
from importer.notices import FileReport, Remark
from importer.options import Options
from importer.pending import PendingFilings
from importer.reader import Candidate, NotImported, Reader
from importer.slices import BundleImporter
from importer.slots import Slot
from resumes.store import Store


class Pipeline:
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
        self._folders = Folders(str(root))
        self.filer = Filer(root, self._folders, options, store.clock, observe)
        self.pending = PendingFilings(
            self.filer,
            slot,
            root=str(root),
            on_filed=on_filed,
            remark=remark,
            observe=observe,
            monotonic=monotonic,
        )
        self._reader = Reader(str(root), self._folders, slot, options, observe)
        ledger = Ledger(store, str(root), options)
        self._whole = BatchImporter(store, ledger, self.pending, options, observe)
        self.bundles = BundleImporter(
            store, ledger, self._reader, self.pending, slot, options, observe
        )

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
        self._folders.close()

    def go_on(self) -> NotImported | None:
        """Retry filing, and store the next slice of a bundle. Return the bundle if it turns out not to be
        importable. Raises StoreError; the next call continues there."""
        self.pending.retry()
        self._folders.close()
        return self.bundles.advance()

    def drop(self) -> None:
        """Forget all work in progress, and close its files."""
        for part in (self._whole, self.bundles, self.pending):
            part.drop()
        self._folders.close()
