"""Takeover: the files that dead processes had under way, until each is read again, filed or found anew."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from importer import slots
from importer.claims import Claim
from importer.failpoints import Step
from importer.files import Signature, describe
from importer.held import Reimports
from importer.helper import SLOT
from importer.intake import STUCK_INTERVAL_S, Intake
from importer.job import Job
from importer.notices import Notices, untaken
from importer.pipeline import Pipeline
from importer.reader import Candidate, FailureReason, NotImported
from importer.recovery import Recovery, dismiss_unfinished
from importer.slots import Slot, SlotEntry


class Takeover:
    """Takes over files under the claims that they had, and keeps those that cannot be reached for now."""

    def __init__(
        self,
        job: Job,
        pipeline: Pipeline,
        intake: Intake,
        reimports: Reimports,
        notices: Notices,
    ) -> None:
        self._job = job
        self._recovery = Recovery(job)
        self._pipeline = pipeline
        self._intake = intake
        self._reimports = reimports
        self._notices = notices
        self.left_slots: set[int] = {0}
        """Slots of dead processes whose files were not taken over yet."""
        self.resumed: deque[Candidate] = deque()
        """Files to import under the claims that they had."""
        self.unreached: list[SlotEntry] = []
        """Files in folders that cannot be reached for now."""
        self.due = job.monotonic()
        """When to try those again."""

    def give_up(self) -> None:
        """Forget all files; they are in the note of the slot."""
        self.left_slots = {0}
        self.resumed.clear()
        self.unreached.clear()

    def recover(self, *, has_helper: bool) -> None:
        """Continue the work in progress of dead processes. Raises StoreError and OSError."""
        if self.unreached and self._job.monotonic() >= self.due:
            self.due = self._job.monotonic() + STUCK_INTERVAL_S
            self.unreached = self._go_on_with(self._job.slot, self.unreached)
        ours = {0, SLOT} if has_helper else {0}
        self.left_slots |= set(slots.list_numbers(Path(self._job.root))) - ours
        for number in sorted(self.left_slots):
            slot = self._job.slot if number == 0 else Slot(Path(self._job.root), number)
            if number and not slot.take():
                continue  # a helper that has outlived its importer
            try:
                self.unreached += self._go_on_with(slot, slot.load())
            finally:
                if number:
                    slot.leave()
            self.left_slots.discard(number)

    def _go_on_with(self, slot: Slot, entries: Collection[SlotEntry]) -> list[SlotEntry]:
        """Continue with the files in the slot's note; return those that cannot be reached for now."""
        plan = self._recovery.plan(entries)
        if slot.number in self.left_slots:
            self._intake.give_up(slot.number)
        unreached = {entry.claim.id: entry for entry, _ in plan.unreached}
        kept = {file.claim.id: file.claim for file in plan.resumed}
        kept |= {file.work.claim.id: file.work.claim for file in plan.ended}
        reached = [entry for entry in entries if entry.claim.id not in unreached]
        over = [entry.claim for entry in reached if entry.claim.id not in kept]
        # Before they leave the note, so that a process that is killed here does it again.
        for entry in reached:
            self._pipeline.filer.tidy(entry.claim)
        self._job.slot.adopt(
            entry._replace(claim=kept[entry.claim.id], is_begun=False)
            for entry in reached
            if entry.claim.id in kept
        )
        if slot is not self._job.slot:
            self._job.slot.adopt(unreached.values())
            slot.end(entry.claim.id for entry in entries)
        elif over:
            slot.end(claim.id for claim in over)
        for claim in over:
            self._intake.end(claim.id)
            self._intake.look_again(claim)
            self._reimports.end(claim.id, is_over=False)
        for entry, error in plan.unreached:
            self._hold(entry.claim)
            self._tell_unreached(entry.claim, error)
        for ended in plan.ended:
            self._hold(ended.work.claim)
        self._pipeline.pending.adopt(plan.ended)
        for candidate in plan.resumed:
            self._hold(candidate.claim)
            self.resumed.append(candidate)
        for _ in entries:
            self._job.observe(Step.RECOVERED)
        return [*unreached.values()]

    def _tell_unreached(self, claim: Claim, error: OSError) -> None:
        problem = describe(error)
        key = f"unmovable {claim.account_id} {problem}"
        self._notices(key, untaken(claim.name, problem))

    def _hold(self, claim: Claim) -> None:
        self._intake.hold(claim)
        if claim.is_return:
            self._reimports.hold(claim)

    def next_batch(self, at_most: int) -> list[Candidate]:
        """Return the next files to read again, at most this many."""
        return [self.resumed.popleft() for _ in range(min(len(self.resumed), at_most))]

    def keep(
        self, all_left: Iterable[NotImported], read: Mapping[str, Signature | None]
    ) -> list[NotImported]:
        """Keep files that cannot be read for now under their claims, which may have resumes in the
        store already; return the others. `read` has their earlier signatures by claim id."""
        others = []
        for left in all_left:
            claim = left.claim
            if left.error is None or claim.is_return:
                others.append(left)
                continue
            entry = SlotEntry(claim, read.get(claim.id))
            self._job.slot.adopt([entry], must_last=False)
            self.unreached.append(entry)
            self._tell_unreached(claim, left.error)
        return others

    def dismiss(self, others: Iterable[NotImported]) -> None:
        """Dismiss those of these files that no process will finish. Raises StoreError."""
        for left in others:
            if not left.claim.is_return or left.why is FailureReason.GONE:
                dismiss_unfinished(self._job.store, left.claim)
