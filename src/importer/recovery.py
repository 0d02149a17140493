"""Recovery: what a dead process had under way is finished, or left to be found again.

    state       how far a file got                     what is done
    noted       not read: one of these may have        read alone under its claim (I10)
                killed the process
    read        read, not in the ledger                a new file; read alone too if it killed a process
    aside       set aside, not in the ledger           put back
    copying     set aside, in the ledger               copied, or put back if it was changed
    committed   in the ledger, not moved               filed as the ledger says; if it has no resume of it,
                                                       and is no document, imported again under its claim,
                                                       after the items that are stored; a held or failed
                                                       file stays in its place
    moved       in the ledger, and where that says     checked again, as the process would have done (I4)
    lost        in the ledger, and changed or gone     a new file; no longer listed as being imported
    changed     not in the ledger, changed or gone     a new file

Each step may be cut off, and is repeated then (pitfalls I1, I6).
"""

import contextlib
import math
import os
from collections import deque
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path

from importer import files, outcomes, slots
from importer.claims import Claim
from importer.files import Known, Signature, describe
from importer.filing import aside_of, iter_places, put_back
from importer.held import Reimports
from importer.helper import SLOT
from importer.intake import STUCK_INTERVAL_S, Intake
from importer.job import Candidate, Cause, Departure, Job, ReadFile, Step
from importer.notices import untaken
from importer.outcomes import Result
from importer.pending import PendingFiling
from importer.pipeline import Pipeline
from importer.slots import Slot, SlotEntry
from resumes.errors import Conflict, NotFound
from resumes.store import Store, accounts, import_history, import_ledger, import_requests
from resumes.store.creation import Created, Duplicate
from resumes.store.import_history import FileRow
from resumes.store.import_ledger import FileOutcome
from resumes.watched_names import is_document


class State(StrEnum):
    """How far a file got, by its slot's note, the ledger and the folders."""

    NOTED = "noted"
    READ = "read"
    ASIDE = "aside"
    COPYING = "copying"
    COMMITTED = "committed"
    MOVED = "moved"
    LOST = "lost"
    CHANGED = "changed"


class Recovery:
    """Takes over files under the claims that they had, and keeps those that cannot be reached for now."""

    def __init__(self, job: Job, pipeline: Pipeline, intake: Intake, reimports: Reimports) -> None:
        self._job = job
        self._pipeline = pipeline
        self._intake = intake
        self._reimports = reimports
        self.give_up()
        self.due = job.monotonic()
        """When to try the unreached files again."""

    def give_up(self) -> None:
        """Forget all files; they are in the note of the slot."""
        self.left_slots: set[int] = {0}
        """Slots of dead processes whose files were not taken over yet."""
        self.resumed: deque[Candidate] = deque()
        """Files to import under the claims that they had."""
        self.unreached: list[SlotEntry] = []
        """Files in folders that cannot be reached for now."""
        self._read: dict[str, Signature | None] = {}
        """The signatures that resumed files had when they were read, by claim id."""

    def recover(self, *, has_helper: bool) -> None:
        """Continue the work in progress of dead processes. Raises StoreError and OSError."""
        if self.unreached and self._job.monotonic() >= self.due:
            self.due = self._job.monotonic() + STUCK_INTERVAL_S
            self.unreached = self._go_on_with(self._job.slot, self.unreached)
        root = Path(self._job.root)
        self.left_slots |= set(slots.list_numbers(root)) - ({0, SLOT} if has_helper else {0})
        for number in sorted(self.left_slots):
            slot = Slot(root, number) if number else self._job.slot
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
        plans = [(entry, self._plan(entry)) for entry in sorted(entries)]  # by claim
        if slot.number in self.left_slots:
            self._intake.give_up(slot.number)
        unreached = [entry for entry, planned in plans if isinstance(planned, OSError)]
        over = [entry.claim for entry, planned in plans if planned is None]
        # Before they leave the note, so that a process that is killed here does it again.
        for entry, planned in plans:
            if not isinstance(planned, OSError):
                self._pipeline.pending.filer.tidy(entry.claim)
        self._job.slot.adopt(
            entry._replace(claim=planned.claim, is_begun=False)
            for entry, planned in plans
            if isinstance(planned, Candidate | PendingFiling)
        )
        if slot is not self._job.slot:
            self._job.slot.adopt(unreached)
            slot.end(entry.claim.id for entry in entries)
        elif over:
            slot.end(claim.id for claim in over)
        for claim in over:
            self._intake.leave(Departure(claim, Cause.CHANGED))
            self._reimports.end(claim.id, is_over=False)
        for entry, planned in plans:
            if planned is not None:
                claim = entry.claim if isinstance(planned, OSError) else planned.claim
                self._intake.hold(claim)
                if claim.is_return:
                    self._reimports.hold(claim)
            if isinstance(planned, OSError):
                self._tell_unreached(entry.claim, planned)
            elif isinstance(planned, PendingFiling):
                self._pipeline.pending.adopt([planned])
            elif isinstance(planned, Candidate):
                self.resumed.append(planned)
        for _ in entries:
            self._job.observe(Step.RECOVERED)
        return unreached

    def _tell_unreached(self, claim: Claim, error: OSError) -> None:
        problem = describe(error)
        self._job.notices(f"unmovable {claim.account_id} {problem}", untaken(claim.name, problem))

    def next_batch(self, at_most: int) -> list[Candidate]:
        batch = [self.resumed.popleft() for _ in range(min(len(self.resumed), at_most))]
        self._read |= {file.claim.id: file.known and file.known.signature for file in batch}
        return batch

    def keep(self, departure: Departure) -> bool:
        """Keep a resumed file that cannot be read for now under its claim, which may have resumes in the
        store already; return False for any other. Dismiss it if no process will finish it.

        Raises StoreError; it can be called again then.
        """
        claim, cause, _, error = departure
        if claim.id not in self._read:
            return False
        is_kept = error is not None and not claim.is_return
        if is_kept:
            assert error is not None
            entry = SlotEntry(claim, self._read[claim.id])
            self._job.slot.adopt([entry], must_last=False)
            self.unreached.append(entry)
            self._tell_unreached(claim, error)
        elif cause is Cause.GONE or not (departure.is_over or claim.is_return):
            dismiss_unfinished(self._job.store, claim)
        del self._read[claim.id]
        return is_kept

    def _plan(self, entry: SlotEntry) -> Candidate | PendingFiling | OSError | None:
        """Do what its state asks for; return what to do with the file: None if it is gone or counts as new,
        and an error that concerns its folder alone if its state cannot be known. Raises StoreError."""
        try:
            return self._plan_reached(entry)
        except OSError as error:
            return error

    def _plan_reached(self, entry: SlotEntry) -> Candidate | PendingFiling | None:
        claim = entry.claim._replace(attempt=entry.claim.attempt + entry.is_begun)
        found = files.find_signature(claim.path(self._job.root))
        row = None if entry.signature is None else _find_row(self._job.store, claim)
        result = outcomes.recorded_result(row) if row else None
        state, target = self._find_state(entry, found, result)
        # It has settled already: to wait again would forget the attempt.
        known = None if entry.signature is None else Known(entry.signature, math.inf)
        alone = Candidate(claim, known, is_alone=True)
        match state:
            case State.NOTED | State.READ:
                is_due = state is State.NOTED or claim.attempt
                return alone if is_due and self._is_of_its_account(claim) else None
            case State.ASIDE:
                put_back(self._job.root, claim, aside_of(self._job.root, claim))
                return None
            case State.CHANGED:
                return None
            case State.LOST:
                if not (claim.is_return and found):  # else it is in its place, and was edited
                    dismiss_unfinished(self._job.store, claim)
                return None
        assert entry.signature is not None
        assert row is not None
        assert result is not None
        if state is State.COMMITTED:
            if (recalled := self._recall(claim, row)) is not None:
                result = recalled
            elif not row.is_under_way and claim.source in iter_places(claim, result):
                return None
            elif not is_document(claim.source):  # else the analyzer would run again
                return alone
        work = ReadFile(claim, entry.signature, digest=entry.digest)
        return PendingFiling(work, result, target)

    def _find_state(
        self, entry: SlotEntry, found: Signature | None, result: Result | None
    ) -> tuple[State, str]:
        """Return the state, and the path at which a moved file is. Raises OSError."""
        claim, signature = entry.claim, entry.signature
        is_aside = os.path.lexists(aside_of(self._job.root, claim))
        if result is None:
            if is_aside:
                return State.ASIDE, ""
            if found is not None and signature is None:
                return State.NOTED, ""
            return State.READ if found is not None and found == signature else State.CHANGED, ""
        if is_aside:
            return State.COPYING, ""
        is_stored = result.outcome in (FileOutcome.DONE, FileOutcome.DUPLICATE)
        path = claim.path(self._job.root)
        if found == signature and _has_content(path, entry.digest, is_stored=is_stored):
            return State.COMMITTED, ""
        # At `claim.source` it would not have been moved.
        places = (
            f"{self._job.root}/{place}"
            for place in iter_places(claim, result)
            if place != claim.source
        )
        moved = (place for place in places if files.find_signature(place) is not None)
        target = next(moved, "")
        return State.MOVED if target else State.LOST, target

    def _is_of_its_account(self, claim: Claim) -> bool:
        """Return whether it was filed before, or its account still has the folder's name, or had it, by which
        a file in the inbox is owned."""
        if claim.is_return:
            return True
        folder, is_below, _ = claim.source.partition("/")
        owner = accounts.find_owner(
            self._job.store, folder if is_below else self._job.options.account or ""
        )
        return owner is not None and owner.id == claim.account_id

    def _recall(self, claim: Claim, row: FileRow) -> Result | None:
        """Return the recorded result of a file of one resume, even if a new import would differ; None
        if the ledger has no resume of it."""
        items = import_ledger.find_items(self._job.store, claim.account_id, claim.id, limit=1)
        if not items or items[0].item != 0:
            return None
        accepted = self._job.options.format.for_account(claim.first_month)
        verdict = outcomes.judge(
            files.find_body(claim.path(self._job.root), accepted.max_bytes), accepted
        )
        resume_id = items[0].resume_id
        if items[0].outcome is not FileOutcome.DUPLICATE:
            replaced = import_ledger.list_replaced(self._job.store, claim.account_id, claim.id)
            warnings = verdict.warnings  # none if it would be refused by now
            return outcomes.result_of(Created(resume_id, replaced=replaced), warnings)
        recorded = outcomes.recorded_result(row)
        duplicate = outcomes.result_of(Duplicate(resume_id))
        return duplicate._replace(message=recorded.message) if recorded.message else duplicate


def _find_row(store: Store, claim: Claim) -> FileRow | None:
    try:
        return import_history.get_file(store, claim.id, account_id=claim.account_id)
    except NotFound:
        return None


def _has_content(path: str, digest: bytes | None, *, is_stored: bool) -> bool:
    """Return whether the file still has the content that was read; if it cannot be opened, `is_stored`, as
    its signature is unchanged."""
    try:
        return digest is None or files.digest(files.load(path, files.HASHED_BYTES).body) == digest
    except OSError:
        return is_stored


CUT_OFF = "Its import was cut off, and it is no longer in its folder. Retry it when it is back"


def dismiss_unfinished(store: Store, claim: Claim) -> None:
    """Dismiss the file if the ledger says that it is being imported: no process will finish that.

    A filed file stays in the list: its disk may be detached, and is not scanned for new files when
    it is back. Raises StoreError.
    """
    with contextlib.suppress(NotFound, Conflict):  # another process has dismissed it
        row = import_history.get_file(store, claim.id, account_id=claim.account_id)
        if row.is_under_way and claim.is_return:
            import_requests.refuse_request(store, claim.account_id, claim.id, CUT_OFF)
        elif row.is_under_way:
            import_requests.dismiss_files(store, [row])
