"""Recovery: files that a dead process had under way are finished, or left for a later scan.

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

Each step may be interrupted, and is then repeated (pitfalls I1, I6).
"""

import contextlib
import errno
import math
import os
from collections.abc import Collection
from pathlib import Path

from importer import files, outcomes, slots
from importer.claims import Claim, File, State
from importer.files import UNREAD, Known, describe
from importer.filing import aside_of, iter_places, put_back
from importer.held import Reimports
from importer.helper import SLOT
from importer.intake import Intake
from importer.job import RETRY_INTERVAL_S, Job, Step
from importer.notices import untaken
from importer.outcomes import Result
from importer.pipeline import Pipeline
from importer.slots import Slot
from resumes.errors import Conflict, StoreUnavailable
from resumes.store import Store, accounts, import_history, import_ledger, import_requests
from resumes.store.import_ledger import FileOutcome
from resumes.watched_names import is_document


class Recovery:
    """Takes over files under their previous claims, and keeps files that are out of reach."""

    def __init__(self, job: Job, pipeline: Pipeline, intake: Intake, reimports: Reimports) -> None:
        self._job = job
        self._pipeline = pipeline
        self._intake = intake
        self._reimports = reimports
        self.due = job.monotonic()
        """When to try the unreached files again."""
        self.left_slots: set[int] = {0}
        """Slots of dead processes whose files have not been taken over yet."""
        self.unreached: list[File] = []
        """Files whose folder or account cannot be reached for now."""

    def recover(self, *, has_helper: bool) -> None:
        """Continue the work of processes that have died. Raises StoreError and OSError."""
        if self.unreached and self._job.monotonic() >= self.due:
            self.due = self._job.monotonic() + RETRY_INTERVAL_S
            self.unreached = self._go_on_with(self._job.slot, self.unreached)
        root = Path(self._job.root)
        self.left_slots |= set(slots.list_numbers(root)) - ({0, SLOT} if has_helper else {0})
        for number in sorted(self.left_slots):
            slot = Slot(root, number) if number else self._job.slot
            if number and not slot.take():
                continue  # a helper that is still running after its importer ended
            try:
                self.unreached += self._go_on_with(slot, slot.load())
            finally:
                if number:
                    slot.leave()
            self.left_slots.discard(number)

    def _go_on_with(self, slot: Slot, files: Collection[File]) -> list[File]:
        """Continue with the files in the slot's note. Return those that cannot be reached."""
        files = sorted(files, key=lambda file: file.claim.id)
        kept = [file for file in files if self._plan(file)]
        over = [file for file in files if file not in kept]
        # Before they leave the note, so that a process that is killed here does it again.
        for file in files:
            if file.error is None:
                self._pipeline.pending.filer.tidy(file.claim)
        is_own = slot is self._job.slot
        self._job.slot.note(file for file in kept if file.error is None or not is_own)
        if ended := over if is_own else files:
            slot.end(file.claim.id for file in ended)
        for file in over:
            file.state = State.CHANGED
            self._intake.leave(file)
            self._reimports.end(file.claim.id, is_over=False)
        for file in kept:
            self._intake.hold(file.claim)
            if file.claim.is_return:
                self._reimports.hold(file.claim)
            if file.error is not None:
                self._tell_unreached(file, file.error)
            elif file.result is not None:
                self._pipeline.pending.adopt([file])
            else:
                self._reimports.next.append(file)
        for _ in files:
            self._job.observe(Step.RECOVERED)
        return [file for file in kept if file.error is not None]

    def _tell_unreached(self, file: File, error: OSError) -> None:
        claim, problem = file.claim, describe(error)
        self._job.notices(f"unmovable {claim.account_id} {problem}", untaken(claim.name, problem))

    def keep(self, file: File) -> bool:
        """Keep a resumed file that cannot be read for now under its claim, since the store may
        already have resumes of it. Return False for other files, and dismiss those
        that no process will finish.

        If StoreError is raised, the call can be repeated.
        """
        claim = file.claim
        if not file.is_resumed:
            return False
        is_kept = not claim.is_return and (
            file.error is not None or file.state is State.UNREACHABLE
        )
        if is_kept:
            file = file.as_taken()
            self._job.slot.note([file], must_last=False)
            self.unreached.append(file)
            if file.error is None:
                self._job.tell_unreachable(claim)
            else:
                self._tell_unreached(file, file.error)
        elif file.state is State.GONE or not (file.is_over or claim.is_return):
            dismiss_unfinished(self._job.store, claim)
        return is_kept

    def _plan(self, file: File) -> bool:
        """Act on the file's state, and return False if the file is gone or counts as new.
        Afterwards, a file with a result is to be filed, a file with an error is to be tried again
        because its folder or account cannot be reached, and any other file is to be imported.
        Raises StoreError."""
        file.error = None
        try:
            return self._plan_reached(file)
        except OSError as error:
            file.error = error
        except StoreUnavailable as error:
            if not self._job.store.is_sharded:
                raise
            file.error = OSError(errno.EHOSTUNREACH, error.message)  # perhaps only of its shard
        return True

    def _plan_reached(self, file: File) -> bool:
        # The comments name the states in the table above.
        claim = file.claim._replace(attempt=file.claim.attempt + file.is_begun)
        path = claim.path(self._job.root)
        found = files.find_signature(path)
        is_aside = os.path.lexists(aside_of(self._job.root, claim))
        row, result, target = None, None, ""
        if file.signature != UNREAD:
            row = import_history.find_file(self._job.store, claim.id, claim.account_id)
        if row is None:
            if is_aside:  # aside
                put_back(self._job.root, claim, aside_of(self._job.root, claim))
                return False
            if file.signature not in (UNREAD, found) or found is None:
                return False  # changed
            is_due = file.signature == UNREAD or claim.attempt  # noted, or read
            if not (is_due and self._is_of_its_account(claim)):
                return False
        else:
            result = outcomes.recorded_result(row)
            is_there = not is_aside and found == file.signature
            if is_there and _has_content(path, file.digest, result.outcome):  # committed
                store, account_id = self._job.store, claim.account_id
                items = import_ledger.find_items(store, account_id, claim.id, limit=1)
                if items and items[0].item == 0:
                    result = self._recall(claim, result, items[0].resume_id)
                elif not row.is_under_way and claim.source in iter_places(claim, result):
                    return False
                elif not is_document(claim.source):  # else the analyzer would run again
                    result = None
            elif not is_aside and not (target := self._find_target(claim, result)):
                # lost; else moved, or copying
                if not (claim.is_return and found):  # else it is in its place, and was edited
                    dismiss_unfinished(self._job.store, claim)
                return False
        file.claim, file.is_begun, file.result, file.target = claim, False, result, target
        file.state = State.COMMITTED
        if result is None:
            file.state = State.NOTED
            # The file has already settled: waiting again would lose the attempt.
            file.known = None if file.signature == UNREAD else Known(file.signature, math.inf)
            file.is_resumed = True
        return True

    def _find_target(self, claim: Claim, result: Result) -> str:
        """Return the path of a moved file, or an empty path if it was not moved. Raises OSError."""
        # A file at `claim.source` was not moved.
        places = (place for place in iter_places(claim, result) if place != claim.source)
        paths = (f"{self._job.root}/{place}" for place in places)
        return next((path for path in paths if files.find_signature(path) is not None), "")

    def _is_of_its_account(self, claim: Claim) -> bool:
        """Return whether the file was filed before, or its account still owns the folder in which
        it was found, by its current or a former name."""
        if claim.is_return:
            return True
        folder, is_below, _ = claim.source.partition("/")
        owner = accounts.find_owner(
            self._job.store, folder if is_below else self._job.options.account or ""
        )
        return owner is not None and owner.id == claim.account_id

    def _recall(self, claim: Claim, result: Result, resume_id: str) -> Result:
        """Return the result of a file with one resume that is in the ledger, even if a new import
        would have a different result."""
        if result.outcome is FileOutcome.DUPLICATE:
            return result._replace(resume_id=resume_id)
        accepted = self._job.options.format.for_account(claim.first_month)
        body = files.find_body(claim.path(self._job.root), accepted.max_bytes)
        return Result(
            FileOutcome.DONE,
            resume_id=resume_id,
            warnings=outcomes.judge(body, accepted).warnings,  # none if it would be rejected now
            replaced=import_ledger.list_replaced(self._job.store, claim.account_id, claim.id),
        )


def _has_content(path: str, digest: bytes | None, outcome: FileOutcome) -> bool:
    """Return whether the file still has the content that was read. If the file cannot be opened,
    its signature is unchanged: return whether it was stored."""
    try:
        return digest is None or files.digest(files.load(path, files.HASHED_BYTES).body) == digest
    except OSError:
        return outcome in (FileOutcome.DONE, FileOutcome.DUPLICATE)


CUT_OFF = "Its import was cut off, and it is no longer in its folder. Retry it when it is back"


def dismiss_unfinished(store: Store, claim: Claim) -> None:
    """Dismiss the file if the ledger lists it as being imported, since no process will finish that.

    A filed file stays in the list: it may be on a detached disk, which is not scanned for new files
    once it is back. Raises StoreError.
    """
    row = import_history.find_file(store, claim.id, claim.account_id)
    if row is None or not row.is_under_way:
        return
    if claim.is_return:
        import_requests.refuse_request(store, claim.account_id, claim.id, CUT_OFF)
    else:
        with contextlib.suppress(Conflict):  # another process has dismissed it
            import_requests.dismiss_files(store, [row])
