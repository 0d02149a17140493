"""Committing what was judged: many files in one transaction.

What the store refuses for now is kept, and goes into the next batch. Reading the next files
meanwhile would not pay: each SQLite call gives up the interpreter and waits to have it back,
with the store locked for all other processes (docs/decisions/0006).
"""

import logging
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from importer import conclusions, judging, reading
from importer.bundles import as_ledger_text
from importer.claims import Claim
from importer.names import escaped
from importer.options import Tuning
from importer.outcomes import Conclusion, Refusal
from importer.steps import Observer, Step
from importer.taking import Taken
from resumes.analyzer import Resume
from resumes.errors import StoreError
from resumes.reasons import Reason
from resumes.store import Store, accounts, ledger
from resumes.store.creating import Creation, NewResume, create_files
from resumes.store.ledger import FileOutcome, Verdict

logger = logging.getLogger("resumes.importer")


class Work(NamedTuple):
    """A claimed file, in whose workspace it lies, and what it is."""

    hand_id: str
    claim: Claim
    taken: Taken


class Ended(NamedTuple):
    """A claimed file that has come to its end, and is to be put away."""

    hand_id: str
    claim: Claim
    conclusion: Conclusion


@dataclass(frozen=True, slots=True)
class Queue:
    """The held files of an account: which came first, and what those who join are told."""

    first_claim_id: str
    message: str


class Committer:
    """Files that were judged, on their way into one store. `root` is the watched folder."""

    def __init__(self, store: Store, *, root: Path, observe: Observer, tuning: Tuning) -> None:
        self._store = store
        self._root = escaped(str(root))
        self._observe = observe
        self._tuning = tuning
        self._ready: deque[Work] = deque()
        self.left_folders: set[str] = set()
        """The folders of claims that stay as they are, of accounts that the store does not know."""
        self.queues: dict[str, Queue] = {}
        """By account id, the files that it holds: what came later queues behind (pitfalls I7)."""

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def hand_ids(self) -> set[str]:
        """In whose workspaces the files lie."""
        return {work.hand_id for work in self._ready}

    def add(self, work: Work) -> None:
        """The file is in one of the next batches."""
        self._ready.append(work)

    def drop(self, hand_id: str) -> None:
        """Files of a workspace that is gone are not committed."""
        self._ready = deque(work for work in self._ready if work.hand_id != hand_id)

    def commit(self) -> list[Ended]:
        """What became of the next batch, in the ledger and the store for good; empty when there
        is none. Raises StoreError; it is tried again then."""
        works = self._next_batch()
        if not works:
            return []
        creations = [self._creation(work) for work in works]
        try:
            results = create_files(self._store, creations, deadline_s=self._tuning.write_timeout_s)
        except StoreError:
            raise
        except Exception:
            logger.exception("A batch of %d files failed; one by one", len(works))
            ends = [self._commit_alone(work) for work in works]
        else:
            ends = [
                conclusions.conclude(_verdict(work.taken), creation, result)
                for work, creation, result in zip(works, creations, results, strict=True)
            ]
        self.observe_commit()
        ended = [
            Ended(work.hand_id, work.claim, end)
            for work, end in zip(works, ends, strict=True)
            if not (_is_deleted(end) and self.leave_if_unknown(work.claim))
        ]
        for _ in works:
            self._ready.popleft()
        for one in ended:
            self.note_held(one.claim, one.conclusion)
        return ended

    def leave_if_unknown(self, claim: Claim) -> bool:
        """Leave a file of an account that is gone claimed, unless the store has deleted the account.

        A server's database may have been restored under this importer. The next importer goes on
        with the file once the account is there again. Return whether it was left. Raises StoreError.
        """
        if accounts.find_deleted(self._store, [claim.account_id]):
            return False
        self.left_folders.add(claim.folder)
        return True

    def _next_batch(self) -> list[Work]:
        works: list[Work] = []
        size_bytes = 0
        for work in self._ready:
            works.append(work)
            size_bytes += work.taken.signature.size_bytes
            if len(works) == self._tuning.batch_files or size_bytes >= self._tuning.batch_bytes:
                break
        return works

    def observe_commit(self) -> None:
        """Something was committed."""
        self._observe(Step.COMMITTED)

    def note_held(self, claim: Claim, conclusion: Conclusion) -> None:
        """Files of the account that come later queue behind it, if it is held."""
        if conclusion.outcome is FileOutcome.HELD and conclusion.refusal is not None:
            # Of a file of several resumes: why, not how many of its own.
            held = (item.refusal for item in conclusion.items if item.outcome is FileOutcome.HELD)
            refusal = next((one for one in held if one is not None), conclusion.refusal)
            self.queues.setdefault(claim.account_id, Queue(claim.id, refusal.message))

    def find_queue(self, claim: Claim) -> Queue | None:
        """Those of its account who came first and wait."""
        queue = self.queues.get(claim.account_id)
        return None if queue is None or claim.id < queue.first_claim_id else queue

    def _commit_alone(self, work: Work) -> Conclusion:
        try:
            creation = self._creation(work)
            (result,) = create_files(
                self._store, [creation], deadline_s=self._tuning.write_timeout_s
            )
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
            conclusion = conclusions.failed(judging.internal_error())
            self.record(work, conclusion)
            return conclusion
        return conclusions.conclude(_verdict(work.taken), creation, result)

    def record(self, work: Work, conclusion: Conclusion) -> None:
        """The file's outcome is in the ledger. Raises StoreError."""
        row = self.row(work, items=as_ledger_text(conclusion.items))
        verdict = conclusions.verdict_of(conclusion)
        try:
            request = ledger.FileVerdict(work.claim.account_id, row, verdict)
            ledger.record(self._store, request, deadline_s=self._tuning.write_timeout_s)
        except StoreError:
            raise
        except Exception:
            # The report still tells; one file must not stop the others.
            logger.exception("No ledger row for claim %s", work.claim.id)

    def _creation(self, work: Work) -> Creation:
        claim, taken = work.claim, work.taken
        row = self.row(work)
        now_us = self._store.clock()
        verdict = _verdict(taken)
        if isinstance(verdict, Refusal):
            failed = conclusions.verdict_of(conclusions.failed(verdict))
            return Creation(claim.account_id, (), now_us, row, failed)
        queue = self.find_queue(claim)
        if queue is not None and not self._is_stored(claim, taken.digest):
            held = Verdict(FileOutcome.HELD, Reason.QUOTA_REACHED.value, queue.message)
            return Creation(claim.account_id, (), now_us, row, held)
        return Creation(claim.account_id, (NewResume(verdict, digest=taken.digest),), now_us, row)

    def _is_stored(self, claim: Claim, digest: bytes | None) -> bool:
        """Whether the content is there already, so that it needs no place."""
        if digest is None:
            return False
        return ledger.find_stored(self._store, claim.account_id, digest) is not None

    def row(self, work: Work, items: str | None = None) -> ledger.Claim:
        """The file as the ledger knows it."""
        claim = work.claim
        return ledger.Claim(
            claim_id=claim.id,
            name=claim.name,
            size_bytes=work.taken.signature.size_bytes,
            claimed_at=claim.claimed_at,
            source=lambda: reading.find_head(claim.path),
            root=self._root,
            items=items,
        )


def _is_deleted(conclusion: Conclusion) -> bool:
    refusal = conclusion.refusal
    return refusal is not None and refusal.reason is Reason.ACCOUNT_DELETED


def _verdict(taken: Taken) -> Resume | Refusal:
    assert taken.verdict is not None
    return taken.verdict
