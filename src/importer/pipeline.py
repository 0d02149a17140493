"""What happens to a file, in order. The recipe is `take_in` for files in the inbox, `go_on` for
claims that are not concluded yet, and `release` for held files whose turn has come.

    try        a whole valid resume at once; anything else once it was quiet (I3)
    claim      journal, rename, and a look whether it is still what was read
    commit     one transaction for up to 100 files: resumes, digests, items, outcomes (I1)
    file away  report, then move

A process may be killed anywhere: before the commit the claim is judged again, after it the
ledger says where the file belongs. What cannot be brought to an end stays claimed, in
`waiting`, and is gone on with later.
"""

import errno
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from importer import claims, conclusions, judging, reading, reports
from importer.claims import Claim, ClaimIds
from importer.filing import Filing
from importer.holding import Held, claim_of
from importer.judging import Judged
from importer.names import escaped, name_hex
from importer.outcomes import Conclusion, Reason, Refusal
from importer.scanning import Found
from importer.settling import Settling
from importer.steps import Observer, Step
from importer.telling import Remark
from importer.workspaces import Workspace
from resumes.analyzer import Format
from resumes.errors import StoreError
from resumes.store import Store, ledger
from resumes.store.creating import Creation, NewResume, create_files
from resumes.store.ledger import FileOutcome, Verdict

logger = logging.getLogger("resumes.importer")

BATCH_FILES = 100
BATCH_BYTES = 16 * 1024 * 1024
"""A batch is full with either, so that what is in memory stays bounded."""

OF_THE_FILE = frozenset(
    {errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.ENAMETOOLONG, errno.EROFS}
)
"""Errors that keep one file or folder from being claimed; with others no claim is possible."""

Filed = Callable[[Claim, Conclusion, Path], None]


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed file and what it is."""

    claim: Claim
    judged: Judged


@dataclass(frozen=True, slots=True)
class Queue:
    """The held files of an account: which came first, and what those who join are told."""

    first_claim_id: str
    message: str


@dataclass(slots=True)
class Batch:
    """Files on their way into one transaction."""

    works: list[Work] = field(default_factory=list)
    size_bytes: int = 0

    def add(self, work: Work) -> bool:
        """The work is in the batch; whether that is full now."""
        self.works.append(work)
        self.size_bytes += len(work.judged.content.body)
        return len(self.works) >= BATCH_FILES or self.size_bytes >= BATCH_BYTES


class Pipeline:
    """The recipe over one ROOT, one store and one workspace."""

    def __init__(
        self,
        store: Store,
        root: Path,
        format: Format,  # noqa: A002  (as in analyzer.parse)
        settling: Settling,
        filing: Filing,
        *,
        on_filed: Filed,
        remark: Remark,
        observe: Observer,
    ) -> None:
        self._store = store
        self._root = root
        self._format = format
        self._settling = settling
        self._filing = filing
        self._on_filed = on_filed
        self._remark = remark
        self._observe = observe
        self.ids = ClaimIds(store.clock)
        self.waiting: dict[str, Claim] = {}
        """Claims that have not come to their end, by id."""
        self.queues: dict[str, Queue] = {}
        """By account id, the files that it holds: what came later queues behind (pitfalls I7)."""
        self.is_stuck = False
        """Whether something could not be filed lately: nothing new is claimed then (I11)."""

    def take_in(self, found: Iterable[Found], workspace: Workspace) -> int:
        """Files in the inbox that are ready are claimed, imported and filed; how many were.

        Lazy and bounded: at most one batch is claimed and not concluded. Raises StoreError, and
        what was claimed then waits.
        """
        wanted = takewhile(lambda _: not self.is_stuck, found)
        taken = (self._take(one, workspace) for one in wanted)
        return self._conclude_all(work for work in taken if work is not None)

    def go_on(self) -> int:
        """Waiting claims are brought to their end as far as possible; how many were."""
        self.is_stuck = False
        before = len(self.waiting)
        waiting = [self.waiting[claim_id] for claim_id in sorted(self.waiting)]
        works = (self._judge_again(claim) for claim in waiting)
        self._conclude_all(work for work in works if work is not None)
        return before - len(self.waiting)

    def release(self, held: Sequence[Held], workspace: Workspace) -> int:
        """The held files are taken up again under their old claims; how many were."""
        works = (self._take_up(one, workspace) for one in held)
        return self._conclude_all(work for work in works if work is not None)

    # Try and claim

    def _take(self, found: Found, workspace: Workspace) -> Work | None:
        """The file, if it is ready and now ours."""
        if not self._settling.is_due(found.path, found.signature):
            return None
        judged = judging.judge(found.path, self._format)
        if judged is None or not self._is_ready(found.path, judged):
            return None
        claim = Claim(
            id=self.ids.next(),
            folder=workspace.account_folder(found.account.id),
            account=found.account.name,
            name=escaped(found.name),
            name_hex=name_hex(found.name),
            claimed_at_us=self._store.clock(),
        )
        if not self._claim(claim, found.path, judged):
            return None
        return Work(claim, judged)

    def _is_ready(self, path: str, judged: Judged) -> bool:
        """Whether to take the file for good as it was read."""
        if judged.is_whole:
            return True
        signature = judged.content.signature
        if reports.is_report(judged.content.body):
            self._settling.rest(path, signature)
            return False
        return self._settling.is_quiet(path, signature) and judged.content.is_steady

    def _claim(self, claim: Claim, source: str, judged: Judged) -> bool:
        """Whether the file is ours and what was read."""
        try:
            is_ours = claims.take(claim, source, self._observe)
        except OSError as error:
            if error.errno not in OF_THE_FILE:
                raise
            self._settling.leave(source, judged.content.signature)
            self._remark(
                f"unclaimed {claim.folder.name} {error.errno}",
                f"Cannot take {claim.name}: {error.strerror}. It stays where it is and is tried again",
            )
            return False
        self._settling.forget(source)
        if not is_ours:
            return False
        self.waiting[claim.id] = claim
        # Written to or replaced since it was read, it settles where it lies now (pitfalls I5).
        return reading.find_signature(claim.path) == judged.content.signature

    def _take_up(self, held: Held, workspace: Workspace) -> Work | None:
        """A held file, if it is ours again."""
        judged = judging.judge(str(held.path), self._format)
        if judged is None:
            return None
        folder = workspace.account_folder(held.account_id)
        claim = claim_of(held, self._root, folder, now_us=self._store.clock())
        return Work(claim, judged) if self._claim(claim, str(held.path), judged) else None

    def _judge_again(self, claim: Claim) -> Work | None:
        """A waiting claim, if it is ready now. One that was imported before is filed at once."""
        path = str(claim.path)
        signature = reading.find_signature(path)
        if signature is None:
            self._end(claim)
            return None
        items = ledger.find_items(self._store, claim.account_id, claim.id)
        if not items and not self._settling.is_due(path, signature):
            return None
        judged = judging.judge(path, self._format)
        if judged is None:
            return None
        if items:
            self._file_away(Work(claim, judged), conclusions.recall(items[0], judged))
            return None
        content = judged.content
        if judged.is_whole or (
            self._settling.is_quiet(path, content.signature) and content.is_steady
        ):
            return Work(claim, judged)
        return None

    # Commit

    def _conclude_all(self, works: Iterable[Work]) -> int:
        concluded = 0
        for batch in _batches(works):
            ends = self._commit(batch)
            self._observe(Step.COMMITTED)
            for work, conclusion in zip(batch, ends, strict=True):
                self._file_away(work, conclusion)
            concluded += len(batch)
        return concluded

    def _commit(self, works: Sequence[Work]) -> list[Conclusion]:
        """What became of each, in the ledger and the store for good."""
        creations = [self._creation(work) for work in works]
        try:
            results = create_files(self._store, creations)
        except StoreError:
            raise
        except Exception:
            if len(works) == 1:
                return [self._give_up(works[0])]
            logger.exception("A batch of %d files failed; one by one", len(works))
            return [self._commit([work])[0] for work in works]
        return [
            conclusions.conclude(work.judged, creation, result)
            for work, creation, result in zip(works, creations, results, strict=True)
        ]

    def _give_up(self, work: Work) -> Conclusion:
        """The file is failed for the exception being handled, in the ledger too."""
        refusal = judging.internal_error()
        verdict = conclusions.verdict_of(refusal)
        request = ledger.FileVerdict(work.claim.account_id, _row(work), verdict)
        try:
            ledger.record(self._store, request)
        except StoreError:
            raise
        except Exception:
            # The report still tells; one file must not stop the others.
            logger.exception("No ledger row for claim %s", work.claim.id)
        return conclusions.failed(refusal)

    def _creation(self, work: Work) -> Creation:
        claim, judged = work.claim, work.judged
        row = _row(work)
        now_us = self._store.clock()
        verdict = judged.verdict
        if isinstance(verdict, Refusal):
            return Creation(claim.account_id, (), now_us, row, conclusions.verdict_of(verdict))
        new = NewResume(verdict, digest=reading.digest(judged.content.body))
        if self._queues_behind(claim, new):
            message = self.queues[claim.account_id].message
            held = Verdict(FileOutcome.HELD, Reason.QUOTA_REACHED.value, message)
            return Creation(claim.account_id, (), now_us, row, held)
        return Creation(claim.account_id, (new,), now_us, row)

    def _queues_behind(self, claim: Claim, new: NewResume) -> bool:
        """Whether others of the account came first and wait; what is stored already need not."""
        queue = self.queues.get(claim.account_id)
        if queue is None or claim.id < queue.first_claim_id or new.digest is None:
            return False
        return ledger.find_stored(self._store, claim.account_id, new.digest) is None

    # File away

    def _file_away(self, work: Work, conclusion: Conclusion) -> None:
        claim = work.claim
        try:
            target = self._filing.file_away(claim, work.judged, conclusion)
        except FileNotFoundError:
            if reading.find_signature(claim.path) is None:
                self._end(claim)
                return
            self._keep(claim, "a folder is missing")
            return
        except OSError as error:
            self._keep(claim, error.strerror or str(error))
            return
        self._settling.forget(str(claim.path))
        self.waiting.pop(claim.id, None)
        if conclusion.outcome is FileOutcome.HELD and conclusion.refusal is not None:
            self.queues.setdefault(claim.account_id, Queue(claim.id, conclusion.refusal.message))
        self._on_filed(claim, conclusion, target)

    def _keep(self, claim: Claim, why: str) -> None:
        self.is_stuck = True
        self._remark(
            "unfiled",
            f"Cannot file {claim.name} away: {escaped(why)}. It stays in .work and is tried again",
        )

    def _end(self, claim: Claim) -> None:
        """Of a claim whose file is elsewhere nothing is left to do."""
        self._settling.forget(str(claim.path))
        self.waiting.pop(claim.id, None)
        self._filing.forget(claim)


def _row(work: Work) -> ledger.Claim:
    """The file as the ledger knows it."""
    content = work.judged.content
    return ledger.Claim(
        claim_id=work.claim.id,
        name=work.claim.name,
        size_bytes=content.signature.size_bytes,
        claimed_at=work.claim.claimed_at,
        source=content.body[: ledger.SOURCE_BYTES],
    )


def _batches(works: Iterable[Work]) -> Iterator[list[Work]]:
    batch = Batch()
    for work in works:
        if batch.add(work):
            yield batch.works
            batch = Batch()
    if batch.works:
        yield batch.works
