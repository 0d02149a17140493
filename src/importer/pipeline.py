"""What happens to a file, in order.

    take       try files, and claim those that are ready              importer.taking
    commit     one transaction for many files: resumes, digests, items, outcomes (pitfalls I1)
    file away  write the report, then move the file                   importer.filing

    settle     what was claimed and is still written to lies in .work until it is quiet
    unpack     a file of several resumes, slice by slice              importer.bundles

A process may be killed anywhere: before the commit the claim is judged again, after it the
ledger says where the file belongs. What cannot be brought to an end stays claimed, and is gone
on with later.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from importer import conclusions, judging, reading
from importer.claims import Claim, ClaimIds
from importer.committing import Committer, Ended, Queue, Work
from importer.filing import Filed, Filing, State
from importer.hands import Hand
from importer.names import escaped
from importer.options import Options
from importer.outcomes import Conclusion
from importer.reading import Signature
from importer.settling import Settling
from importer.steps import Observer
from importer.taking import Again, Candidate, Left, Taken, Why
from importer.telling import Remark
from importer.unbundling import Unbundler
from resumes.store import Store, ledger

logger = logging.getLogger("resumes.importer")

PROBE_AGAIN_S = 1.0
"""How soon a claimed file is looked at again that somebody has open."""

OnFiled = Callable[[Claim, Conclusion, str], None]


@dataclass(slots=True)
class Waiting:
    """A claimed file that is not judged yet."""

    hand_id: str
    claim: Claim
    is_alone: bool = False


class Pipeline:
    """The recipe over one store and one workspace. `root` is the watched folder, as the ledger names it."""

    def __init__(
        self,
        store: Store,
        own: Hand,
        *,
        root: Path,
        options: Options,
        on_filed: OnFiled,
        remark: Remark,
        observe: Observer,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self.own = own
        """The hand that takes new files."""
        self._hands = {own.id: own}
        self._root = escaped(str(root))
        self._options = options
        self._on_filed = on_filed
        self._remark = remark
        self._observe = observe
        self._settling = Settling(options.settle_s, monotonic)
        self.ids = ClaimIds(store.clock)
        self._committer = Committer(store, root=root, observe=observe, tuning=options.tuning)
        self._waiting: dict[str, Waiting] = {}
        self._unbundler = Unbundler(store, self._committer, options)
        self._unfiled: dict[str, Ended] = {}

    @property
    def queues(self) -> dict[str, Queue]:
        """By account id, the files that it holds: what came later queues behind (pitfalls I7)."""
        return self._committer.queues

    @queues.setter
    def queues(self, queues: dict[str, Queue]) -> None:
        self._committer.queues = queues

    @property
    def left_folders(self) -> set[str]:
        """The folders of claims that stay as they are, of accounts that the store does not know."""
        return self._committer.left_folders

    @property
    def is_stuck(self) -> bool:
        """Whether something could not be filed: nothing new is taken while that is so (I11)."""
        return bool(self._unfiled)

    @property
    def claimed(self) -> int:
        """How many files are claimed and not filed."""
        return (
            len(self._committer)
            + len(self._waiting)
            + len(self._unbundler.works)
            + len(self._unfiled)
        )

    @property
    def engaged(self) -> set[str]:
        """The ids of accounts with files that take places in a while, whoever came before them:
        files that are being unpacked, and inherited ones that nobody has judged yet."""
        inherited = (
            one.claim
            for one in self._waiting.values()
            if one.is_alone and self._settling.find_known(one.claim.path) is None
        )
        unpacked = (work.claim for work in self._unbundler.works)
        return {claim.account_id for claims in (inherited, unpacked) for claim in claims}

    @property
    def has_work(self) -> bool:
        """Whether there is something to do right now, without waiting for anything."""
        return bool(len(self._committer) or self._unbundler.works)

    def next_due(self) -> float | None:
        """When the first claimed file should be looked at again, on the monotonic clock."""
        return self._settling.next_due()

    @property
    def awaited(self) -> list[str]:
        """The names of claimed files that settle, below ROOT and escaped."""
        return [one.claim.name for one in self._waiting.values()]

    # Take

    def inherit(self, hand: Hand, claims: Iterable[Claim]) -> None:
        """A hand over the workspace of an importer that is gone, and its claims, are gone on
        with; each is read alone (pitfalls I10)."""
        self._hands[hand.id] = hand
        for claim in claims:
            self._waiting[claim.id] = Waiting(hand.id, claim, is_alone=True)

    def take(self, candidates: Sequence[Candidate]) -> list[Left]:
        """Files that are ready are claimed, and to be committed; the files that were not taken.

        Raises OSError when none can be claimed.
        """
        left = []
        answers = self.own.take(candidates)
        for one, answer in zip(candidates, answers, strict=True):
            if isinstance(answer, Taken):
                self._sort(self.own.id, one.claim, answer)
            else:
                left.append(answer)
        return left

    def _sort(self, hand_id: str, claim: Claim, taken: Taken) -> None:
        """A file that is ours is to be committed, to be unpacked, or settles."""
        if not taken.is_final:
            # Written to or replaced since it was read, it settles where it lies (pitfalls I5).
            self._settling.note(claim.path, taken.signature, again_s=PROBE_AGAIN_S)
            self._waiting.setdefault(claim.id, Waiting(hand_id, claim))
            return
        self._settling.forget(claim.path)
        self._waiting.pop(claim.id, None)
        work = Work(hand_id, claim, taken)
        if taken.verdict is None:
            self._unbundler.add(work)
        else:
            self._committer.add(work)

    # Claims that wait

    def replace_own(self, hand: Hand) -> None:
        """The workspace was taken from under us, and another is ours; what was claimed in the
        old one is gone."""
        old, self.own = self.own, hand
        self._committer.drop(old.id)
        self._unbundler.drop()
        for claims in (self._waiting, self._unfiled):
            for claim_id in [key for key, one in claims.items() if one.hand_id == old.id]:
                self._settling.forget(claims.pop(claim_id).claim.path)
        self._hands[hand.id] = hand
        self._hands.pop(old.id).leave()

    def leave_finished(self) -> None:
        """Inherited workspaces that hold no claim any more are left, and tidied away."""
        for hand_id in [key for key in self._hands if key != self.own.id]:
            if not self._has_claims_of(hand_id):
                self._hands.pop(hand_id).leave()

    def _has_claims_of(self, hand_id: str) -> bool:
        if hand_id in self._committer.hand_ids:
            return True
        claims: tuple[Iterable[Work | Waiting | Ended], ...] = (
            self._unbundler.works,
            self._waiting.values(),
            self._unfiled.values(),
        )
        return any(one.hand_id == hand_id for some in claims for one in some)

    def leave(self) -> None:
        """Other importers may take over what is left."""
        for hand in self._hands.values():
            hand.leave()

    def go_on(self) -> None:
        """Claims that are due are looked at again, those imported before are filed, and what
        could not be filed is tried again. Raises StoreError."""
        if self._unfiled:
            unfiled, self._unfiled = self._unfiled, {}
            self._file_away(unfiled.values())
        by_hand: dict[str, list[Again]] = {}
        for waiting in sorted(self._waiting.values(), key=lambda one: one.claim.id):
            claim = waiting.claim
            signature = reading.find_signature(claim.path)
            if not self._settling.is_due(claim.path, signature):
                continue
            if signature is not None and self._recall(waiting):
                continue
            known = self._settling.find_known(claim.path)
            by_hand.setdefault(waiting.hand_id, []).append(Again(claim, known, waiting.is_alone))
        for hand_id, requests in by_hand.items():
            answers = self._hands[hand_id].judge(requests)
            for request, answer in zip(requests, answers, strict=True):
                self._sort_again(hand_id, request.claim, answer)

    def _sort_again(self, hand_id: str, claim: Claim, answer: Taken | Left) -> None:
        if isinstance(answer, Taken):
            self._sort(hand_id, claim, answer)
        elif answer.why is Why.GONE:
            self._settling.forget(claim.path)
            self._waiting.pop(claim.id, None)
        else:
            error = answer.error
            why = escaped(error.strerror or str(error)) if error else "it changes"
            self._remark(
                f"unread {claim.id}", f"Cannot go on with {claim.name}: {why}. It is tried again"
            )
            signature = reading.find_signature(claim.path) or Signature(0, 0, 0)
            self._settling.note(claim.path, signature, again_s=PROBE_AGAIN_S)

    def _wait_for(self, hand_id: str, claim: Claim) -> None:
        """The claimed file settles from now on."""
        signature = reading.find_signature(claim.path)
        if signature is not None:
            self._waiting[claim.id] = Waiting(hand_id, claim)
            self._settling.note(claim.path, signature, again_s=PROBE_AGAIN_S)

    def _recall(self, waiting: Waiting) -> bool:
        """Whether the file was imported before, and is on its way to where it belongs."""
        claim = waiting.claim
        items = ledger.find_items(self._store, claim.account_id, claim.id)
        if not items or items[0].item != 0:
            return False
        del self._waiting[claim.id]
        self._settling.forget(claim.path)
        verdict = None
        body = reading.find_body(claim.path, self._options.format.max_bytes)
        if body is not None:
            verdict = judging.judge(body, self._options.format)
        conclusion = conclusions.recall(items[0], verdict)
        self._file_away([Ended(waiting.hand_id, claim, conclusion)])
        return True

    # Commit

    def commit(self) -> None:
        """What was judged is in the store and the ledger for good, and put away. Raises
        StoreError, and what it is about waits then."""
        while ended := self._committer.commit():
            self._file_away(ended)

    def _file_away(self, some: Iterable[Ended]) -> None:
        by_hand: dict[str, list[Ended]] = {}
        for ended in some:
            by_hand.setdefault(ended.hand_id, []).append(ended)
        for hand_id, ends in by_hand.items():
            filings = [Filing(one.claim.id, one.conclusion) for one in ends]
            try:
                answers = self._hands[hand_id].file_away(filings)
            except OSError as error:
                problem = error.strerror or str(error)
                answers = [Filed(one.claim_id, State.STUCK, problem=problem) for one in filings]
            for ended, filed in zip(ends, answers, strict=True):
                self._after_filing(ended, filed)

    def _after_filing(self, ended: Ended, filed: Filed) -> None:
        match filed.state:
            case State.FILED:
                self._on_filed(ended.claim, ended.conclusion, filed.target)
            case State.CHANGED:
                self._renew(ended)
            case State.STUCK:
                self._unfiled[filed.claim_id] = ended
                self._remark(
                    "unfiled",
                    f"Cannot file {ended.claim.name} away: {escaped(filed.problem)}. It stays "
                    "in .work and is tried again; nothing new is taken meanwhile",
                )
            case State.GONE:
                pass

    def _renew(self, ended: Ended) -> None:
        """What the file holds now is imported as a file of its own (pitfalls I4)."""
        name = ended.claim.name
        try:
            claim = self._hands[ended.hand_id].renew(ended.claim.id, self.ids.next())
        except OSError:
            self._remark(
                "unfiled", f"{name} changed after it was imported, and cannot be set aside"
            )
            self._unfiled[ended.claim.id] = ended
            return
        self._remark(
            f"renewed {claim.id}",
            f"{name} was written to after it was imported; what it holds now is imported as a "
            "file of its own",
        )
        self._wait_for(ended.hand_id, claim)

    def unpack(self) -> None:
        """A slice of a file of several resumes is in the store. Raises StoreError, and goes on
        there later."""
        if self._unbundler.works:
            hand = self._hands[self._unbundler.works[0].hand_id]
            outcome = self._unbundler.go_on(hand)
            if isinstance(outcome, Ended):
                self._file_away([outcome])
            elif outcome is not None:
                self._wait_for(outcome.hand_id, outcome.claim)
