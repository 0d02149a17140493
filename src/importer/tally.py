"""How many files came to which end; one that was held and released counts where it ended."""

from importer.telling import FileReport
from resumes.store.ledger import FileOutcome


class Tally:
    """The files that one importer filed."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(FileOutcome, 0)
        self._held_ids: set[str] = set()
        self.filed = 0
        """Reports in all, so that it is known whether anything happened."""

    def add(self, report: FileReport) -> None:
        """The file is counted."""
        outcome, claim_id = report.outcome, report.claim_id
        self.filed += 1
        if claim_id in self._held_ids:
            self._held_ids.discard(claim_id)
            self._counts[FileOutcome.HELD] -= 1
        if outcome is FileOutcome.HELD:
            self._held_ids.add(claim_id)
        self._counts[outcome] += 1

    def __getitem__(self, outcome: FileOutcome) -> int:
        return self._counts[outcome]
