"""Pending filings: imported files that are filed now, or later if that is not possible yet."""

import os
from collections.abc import Collection, Iterable, Mapping

from importer.claims import File, State
from importer.files import describe, escaped
from importer.filing import Filer
from importer.held import Queues, QuotaBacklog
from importer.job import Job, Step
from importer.notices import as_report
from importer.outcomes import Result
from resumes.store.import_ledger import FileOutcome

RETRY_INTERVALS_S = {
    State.OPEN: 1.0,
    State.UNRETURNED: 1.0,
    State.STUCK: 5.0,
    State.KEPT: 60.0,
    State.TROUBLE: 0.0,
}
"""How long to wait before a file is filed again, by its state."""
MAX_RETRY_INTERVAL_S = 60.0
"""The limit of the interval for a file that cannot be moved. The interval doubles each time."""
OUTCOME_PHRASES = {
    FileOutcome.DONE: "was imported",
    FileOutcome.DUPLICATE: "is a duplicate",
    FileOutcome.HELD: "is held",
    FileOutcome.FAILED: "was rejected",
}
"""The words for the outcome in messages about a file that cannot be moved."""
MESSAGES = {
    State.KEPT: (
        "unmovable {account_id} {problem}",
        "{name} {was} and stays where it is: {problem}. Delete it",
    ),
    State.CHANGED: (
        "changed {id}",
        "{name} was changed during its import; its new content will be imported as a separate file",
    ),
    State.UNRETURNED: (
        "changed {id} {problem}",
        "{name} was changed during its import; its new content is in {place} and cannot be moved "
        "back: {problem}. This will be retried",
    ),
    State.STUCK: (
        "unmovable {account_id} {problem}",
        "{name} {was}, but cannot be moved: {problem}. It stays where it is; the move will be retried",
    ),
    State.TROUBLE: (
        "unfiled",
        "Cannot move {name}: {problem}. It {was} and stays where it is; the move will be retried, "
        "and no new files will be imported until then",
    ),
}
"""The key and text of the notice about a file that was not filed normally, by its state."""


class PendingFilings:
    """The imported files of one process that are not filed yet."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.filer = Filer(job)
        self.queues = Queues()
        self._files: dict[str, File] = {}
        """By claim ID, imported files that are not moved yet or are still open for writing."""

    def __len__(self) -> int:
        return len(self._files)

    @property
    def is_stuck(self) -> bool:
        """Whether a file could not be filed; no new files are taken while this is so (I11)."""
        return any(file.state is State.TROUBLE for file in self._files.values())

    def list_awaited(self) -> list[tuple[float, str]]:
        """Return the moved files that are still open for writing, with their next check times."""
        return [
            (file.due, file.claim.name) for file in self._files.values() if file.state is State.OPEN
        ]

    def with_held(self, queues: Mapping[str, QuotaBacklog]) -> Queues:
        """Return these queues, including the held files that are not filed yet."""
        held = Queues(queues)
        for file in self._files.values():
            held.note(file.claim, _result(file))
        return held

    def adopt(self, files: Iterable[File]) -> None:
        """Take over files that another process imported; their claims are in the slot's note."""
        self._files.update((file.claim.id, file) for file in files)

    def file_away(self, files: Iterable[File]) -> None:
        """File these files, whose outcomes are in the ledger, as far as possible now."""
        files = [*files]
        self.adopt(files)
        for file in files:
            self.queues.note(file.claim, _result(file))
        self._file(files)

    def retry(self) -> None:
        now = self._job.monotonic()
        self._file([file for file in self._files.values() if now >= file.due])

    def _file(self, files: Collection[File]) -> None:
        """File each file, and forget the finished ones. After an error, retry all of them."""
        for file in files:
            self._try(file)
        over = [file for file in files if file.state not in RETRY_INTERVALS_S]
        for file in over:
            del self._files[file.claim.id]
        self.end(over)

    def _try(self, file: File) -> None:
        """File the file if that is possible now."""
        claim, result = file.claim, _result(file)
        self.filer.file_away(file, result)
        again_s = RETRY_INTERVALS_S.get(file.state)
        if again_s is not None:
            if file.state is State.STUCK:
                again_s = min(again_s * 2.0**file.tries, MAX_RETRY_INTERVAL_S)
            file.close()
            file.tries = min(file.tries + 1, 10)
            file.due = self._job.monotonic() + again_s
        elif claim.is_return or result.needs_report:
            self.filer.tidy(claim, [result])
        is_kept = file.state is State.KEPT
        if (is_kept or (file.state is State.FILED and file.target)) and not file.is_kept:
            file.is_kept = is_kept
            target = file.target or claim.path(self._job.root)
            self._job.on_filed(as_report(claim, result, target, is_kept=is_kept))
        if (message := MESSAGES.get(file.state)) is not None:
            said = {
                **claim._asdict(),
                "was": OUTCOME_PHRASES[result.outcome],
                "problem": escaped(describe(file.error)) if file.error else "",
                "place": escaped(os.path.relpath(file.target or self._job.root, self._job.root)),
            }
            self._job.notices(*(part.format_map(said) for part in message))

    def end(self, files: Iterable[File]) -> None:
        """Mark these finished files as filed, and let them depart."""
        files = [*files]
        for file in files:
            if file.state is not State.CHANGED:  # a changed file counts as new
                file.state = State.FILED
        if self._job.depart(files):
            self._job.observe(Step.ENDED)

    def drop(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()


def _result(file: File) -> Result:
    assert file.result is not None
    return file.result
