"""Files of several resumes on their way into the store, one after the other, slice by slice."""

import logging
from collections import deque
from collections.abc import Sequence

from importer import conclusions, judging
from importer.bundles import Bundle, Portion
from importer.claims import Claim
from importer.committing import Committer, Ended, Work
from importer.hands import Hand
from importer.options import Options
from importer.outcomes import Conclusion, Refusal
from importer.parts import CannotUnpack
from importer.taking import is_last_attempt
from resumes.errors import ResumesError, StoreError
from resumes.store import Store, ledger
from resumes.store.creating import Creation, Outcome, create_files
from resumes.store.ledger import SO_FAR

logger = logging.getLogger("resumes.importer")


class Unbundler:
    """Unpacks one file at a time; the others are claimed and wait."""

    def __init__(self, store: Store, committer: Committer, options: Options) -> None:
        self._store = store
        self._committer = committer
        self._options = options
        self.works: deque[Work] = deque()
        self._bundle: Bundle | None = None
        self._slice: list[Portion] = []

    def add(self, work: Work) -> None:
        """The file is unpacked when its turn comes."""
        self.works.append(work)

    def drop(self) -> None:
        """No file is unpacked any more."""
        self.works.clear()
        self._bundle = None
        self._slice = []

    def go_on(self, hand: Hand) -> Ended | Work | None:
        """A slice of the first file is in the store, `hand` being over its workspace.

        The file's end once it has come to it; or the file, if it changed and has to settle.
        Raises StoreError, and goes on there later.
        """
        work = self.works[0]
        if self._bundle is None:
            opened = self._open(work, hand)
            if opened is None or isinstance(opened, Work):
                self._close()
                return opened
            if isinstance(opened, Conclusion):
                return self._end(work, opened)
            self._bundle = opened
        try:
            self._slice = self._slice or self._bundle.next_slice()
        except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
            return self._end(work, conclusions.failed(judging.internal_error()))
        if self._slice:
            goes_on = self._commit_slice(work, self._bundle)
            self._slice = []
            if goes_on:
                return None
        return self._end(work, conclusions.sum_up(self._bundle.items))

    def _open(self, work: Work, hand: Hand) -> Bundle | Conclusion | Work | None:
        """The open file; the end that it comes to instead; the file itself, if it has changed;
        None if it is gone."""
        claim = work.claim
        queue = self._committer.find_queue(claim)
        if queue is not None:
            return conclusions.held(queue.message)
        claim = self._count(claim)
        if is_last_attempt(claim):
            return conclusions.failed(judging.CRASHED)
        hand.begin(claim)
        try:
            bundle = Bundle(
                claim.path,
                claim.name,
                self._options.format,
                self._options.limits,
                self._options.tuning,
            )
        except FileNotFoundError:
            return None
        except CannotUnpack as error:
            return conclusions.failed(error.refusal)
        except OSError as error:
            return conclusions.failed(judging.unreadable(error))
        except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
            return conclusions.failed(judging.internal_error())
        return bundle if bundle.signature == work.taken.signature else work

    def _count(self, claim: Claim) -> Claim:
        """The claim; an attempt that got further than the one before it does not count."""
        if not claim.attempt:
            return claim
        items = len(ledger.find_items(self._store, claim.account_id, claim.id))
        return claim._replace(items=items, attempt=0 if items > claim.items else claim.attempt)

    def _commit_slice(self, work: Work, bundle: Bundle) -> bool:
        """Return False if the account was deleted, so that this slice is the file's last."""
        portions = self._slice
        new = [one for portion in portions if (one := portion.new_resume()) is not None]
        row = self._committer.row(work)
        creation = Creation(work.claim.account_id, new, self._store.clock(), row, SO_FAR)
        try:
            (result,) = create_files(
                self._store, [creation], deadline_s=self._options.tuning.write_timeout_s
            )
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
            failed = conclusions.failed(judging.internal_error())
            for portion in portions:
                bundle.conclude(portion, failed)
            return True
        is_gone = isinstance(result, ResumesError)
        if is_gone and self._committer.leave_if_unknown(work.claim):
            self._close()
            return True
        self._committer.observe_commit()
        _conclude(bundle, portions, result)
        return not is_gone

    def _end(self, work: Work, conclusion: Conclusion) -> Ended:
        self._committer.record(work, conclusion)
        self._close()
        self._committer.note_held(work.claim, conclusion)
        return Ended(work.hand_id, work.claim, conclusion)

    def _close(self) -> None:
        self._bundle = None
        self._slice = []
        self.works.popleft()


def _conclude(
    bundle: Bundle, portions: Sequence[Portion], result: Sequence[Outcome] | ResumesError
) -> None:
    outcomes = iter(() if isinstance(result, ResumesError) else result)
    for portion in portions:
        verdict = portion.verdict
        if isinstance(verdict, Refusal):
            bundle.conclude(portion, conclusions.failed(verdict))
        elif isinstance(result, ResumesError):
            bundle.conclude(portion, conclusions.conclude_one(verdict, result))
        else:
            bundle.conclude(portion, conclusions.conclude_one(verdict, next(outcomes)))
