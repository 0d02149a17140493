"""Pending filings: imported files that are to be filed, and tried again where that is not possible yet."""

import math
import os
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from importer.claims import Claim
from importer.files import escaped
from importer.filing import Filer, FileState
from importer.job import Cause, Departure, Job, ReadFile, Step
from importer.notices import as_report
from importer.outcomes import Result
from resumes.errors import QuotaReached
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import FileOutcome

RETRY_INTERVALS_S = {
    FileState.WRITTEN_TO: 1.0,
    FileState.UNRETURNED: 1.0,
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
MESSAGES = {
    FileState.KEPT: (
        "unmovable {account_id} {problem}",
        "{name} {was} and stays where it is: {problem}. Delete it",
    ),
    FileState.CHANGED: (
        "changed {id}",
        "{name} was changed during its import; its new content will be imported as a separate file",
    ),
    FileState.UNRETURNED: (
        "changed {id} {problem}",
        "{name} was changed during its import; its new content is in {place} and cannot be moved "
        "back: {problem}. This will be retried",
    ),
    FileState.UNMOVABLE: (
        "unmovable {account_id} {problem}",
        "{name} {was}, but cannot be moved: {problem}. It stays where it is; the move will be retried",
    ),
    FileState.STUCK: (
        "unfiled",
        "Cannot move {name}: {problem}. It {was} and stays where it is; the move will be retried, "
        "and no new files will be imported until then",
    ),
}
"""The key and the notice about a file that was not simply filed, by its state."""


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
    state: FileState | None = None
    """The state in which the last attempt left it."""
    is_kept: bool = False
    """Whether it stays in the inbox, and was reported."""

    @property
    def claim(self) -> Claim:
        return self.work.claim


@dataclass(frozen=True, slots=True)
class QuotaBacklog:
    """The held files of an account: which came first, and the message for those that join."""

    first_claim_id: str
    message: str

    @classmethod
    def of(cls, account: AccountInfo | None, first_claim_id: str) -> Self:
        """Return the backlog of an account; None stands for one that is gone."""
        if account is None or account.max_resumes is None:
            return cls(first_claim_id, "Earlier files in this account must be imported first")
        return cls(first_claim_id, QuotaReached(max_resumes=account.max_resumes).message)


class Queues(dict[str, QuotaBacklog]):
    """By account id, the held files that new ones queue behind (pitfalls I7)."""

    def note(self, claim: Claim, result: Result) -> None:
        """Make later files of the account queue behind this one, if it is held."""
        if result.outcome is FileOutcome.HELD:
            # A bundle's own message counts its items; the first held item's says why.
            first = result.items and result.items.first(FileOutcome.HELD)
            queue = self.get(claim.account_id)
            if queue is None or claim.id < queue.first_claim_id:
                self[claim.account_id] = QuotaBacklog(claim.id, (first or result).message)

    def find_message(self, claim: Claim) -> str | None:
        """Return why the file is held behind others; None if there are none before it."""
        queue = self.get(claim.account_id)
        return None if queue is None or claim.id <= queue.first_claim_id else queue.message


class PendingFilings:
    """The imported files of one process that are not filed yet."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.filer = Filer(job)
        self.queues = Queues()
        self._files: dict[str, PendingFiling] = {}
        """By claim id, imported files that are not moved yet, or still written to."""

    def __len__(self) -> int:
        return len(self._files)

    @property
    def is_stuck(self) -> bool:
        """Whether a file could not be filed; nothing new is taken until then (I11)."""
        return any(file.state is FileState.STUCK for file in self._files.values())

    def list_awaited(self) -> list[tuple[float, str]]:
        """Return when to check the filed files that are still written to, and their names."""
        return [
            (file.due, file.claim.name)
            for file in self._files.values()
            if file.state is FileState.WRITTEN_TO
        ]

    def set_queues(self, queues: dict[str, QuotaBacklog]) -> None:
        """Make new files queue behind these, and behind held files that are not filed yet."""
        self.queues = Queues(queues)
        for file in self._files.values():
            self.queues.note(file.claim, file.result)

    @property
    def first_held(self) -> dict[str, str]:
        """By account id, the claim of the first held file that could not be moved yet."""
        files = sorted(self._files.items(), reverse=True)
        return {
            file.claim.account_id: claim_id
            for claim_id, file in files
            if file.result.outcome is FileOutcome.HELD
        }

    def adopt(self, ended: Iterable[PendingFiling]) -> None:
        """Take over files that another process imported; their claims are in the slot's note."""
        self._files.update((file.claim.id, file) for file in ended)

    def file_away(self, ended: Iterable[PendingFiling]) -> None:
        """File those files whose outcome is in the ledger, as far as that is possible now."""
        ended = [*ended]
        self.adopt(ended)
        for file in ended:
            self.queues.note(file.claim, file.result)
        self._file(ended)

    def retry(self) -> None:
        now = self._job.monotonic()
        self._file([file for file in self._files.values() if now >= file.due])

    def _file(self, ended: Iterable[PendingFiling]) -> None:
        """File each, and forget those that are finished; after an error all are tried again."""
        states = {file.claim.id: self._try(file) for file in ended}
        over = [claim_id for claim_id, state in states.items() if state not in RETRY_INTERVALS_S]
        works = [self._files.pop(claim_id).work for claim_id in over]
        self.end(works, {each for each in over if states[each] is FileState.CHANGED})

    def _try(self, ended: PendingFiling) -> FileState:
        """File it as far as that is possible now; return the state in which it is."""
        work, result = ended.work, ended.result
        claim = work.claim
        if ended.target:
            filed = self.filer.check(work, ended.target)
        else:
            filed = self.filer.file_away(work, result)
        is_kept = filed.state is FileState.KEPT
        again_s = RETRY_INTERVALS_S.get(filed.state)
        if filed.state is FileState.UNMOVABLE:
            again_s = min(RETRY_INTERVALS_S[filed.state] * 2.0**ended.tries, MAX_RETRY_INTERVAL_S)
        if again_s is not None:
            work.close()
            self._files[claim.id] = PendingFiling(
                work._replace(descriptor=None),
                result,
                filed.target,
                tries=min(ended.tries + 1, 10),
                due=self._job.monotonic() + again_s,
                state=filed.state,
                is_kept=ended.is_kept or is_kept,
            )
        elif claim.is_return or result.needs_report:
            self.filer.tidy(claim, [result])
        if is_kept or filed.state is FileState.FILED:
            if ended.is_kept:  # it was reported
                return filed.state
            target = claim.path(self._job.root) if is_kept else filed.target
            self._job.on_filed(as_report(claim, result, target, is_kept=is_kept))
        if (message := MESSAGES.get(filed.state)) is not None:
            said = {
                **claim._asdict(),
                "was": OUTCOME_PHRASES[result.outcome],
                "problem": escaped(filed.problem),
                "place": escaped(os.path.relpath(filed.target or self._job.root, self._job.root)),
            }
            self._job.notices(*(part.format_map(said) for part in message))
        return filed.state

    def end(self, works: Sequence[ReadFile], new_ids: Container[str] = ()) -> None:
        """Have these finished files depart; those with these claim ids count as new."""
        for work in works:
            work.close()
        if self._job.depart(
            Departure(work.claim, Cause.CHANGED if work.claim.id in new_ids else Cause.FILED)
            for work in works
        ):
            self._job.observe(Step.ENDED)

    def drop(self) -> None:
        for file in self._files.values():
            file.work.close()
        self._files.clear()
