"""The importer's loop, turn by turn; `importer.service` calls the turns.

A turn continues with what was read, commits and files away, and takes new files, one account's
after another's. About twice a second it also checks for changes by other processes: accounts,
held files, requests, processes that have died.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

from importer.files import escaped
from importer.held import Reimports
from importer.helper import SLOT, Batch, Helper, Setup
from importer.intake import Intake
from importer.job import Cause, Job, Observer, unobserved
from importer.notices import FileReport, Notices, Progress, Summary, Totals
from importer.options import Options
from importer.pipeline import Pipeline
from importer.recovery import Recovery
from importer.slots import Slot
from importer.watcher import Changes
from resumes import watched_folder
from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.store import Store
from resumes.store.importers import ImporterState
from resumes.text import counted
from resumes.watched_folder import FAILED, shown_root

MAINTENANCE_INTERVAL_S = 0.5
"""How often to check for changes by other processes; the docs promise twice this."""
ROUND_S = 1.0
"""After this long a turn ends although files are left."""

STAND_BY_INTERVAL_S = 0.5
"""How often an importer that stands by asks for the folder."""


class Importer:
    """An importer at work on one ROOT."""

    def __init__(
        self,
        store: Store,
        root: Path,
        options: Options,
        *,
        on_file: Callable[[FileReport], None],
        notices: Notices,
        observe: Observer = unobserved,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.changes = Changes()
        self.totals = Totals(on_file)
        add, slot = self.totals.add, Slot(root, 0)
        job = self.job = Job(store, str(root), options, slot, add, notices, observe, monotonic)
        self.lead = Leadership(job, let_go=self._let_go)
        self.pipeline = Pipeline(job, on_analyzed=self.changes.mark)
        self.intake = Intake(job)
        self.reimports = Reimports(job)
        self.recovery = Recovery(job, self.pipeline, self.intake, self.reimports)
        setup = Setup(store.url, root, options, observe)
        self.helper = Helper(setup, on_answer=self.changes.mark, monotonic=monotonic)
        self.schedule = Schedule(self)
        try:
            self.lead.take()
        except OSError as error:
            raise InvalidArgument(f"Cannot write to {shown_root(root)}: {error.strerror}") from None

    def round(self) -> int:
        """Do everything that can be done now, for about a second; return how many files were filed.
        Raises StoreError and OSError."""
        before, now = self.totals.filed, self.job.monotonic()
        self.schedule.maintenance_due = self.lead.due = self.recovery.due = now
        self.intake.force()
        while True:
            self.turn()
            if self.schedule.is_awaiting and not self.schedule.can_go_on:
                self.changes.wait(MAINTENANCE_INTERVAL_S)
            if not self.schedule.has_work or self.job.monotonic() >= now + ROUND_S:
                return self.totals.filed - before

    def turn(self) -> None:
        """Advance everything by one step. Raises StoreError and OSError; files that were read are
        continued in a later turn."""
        self.intake.mark(self.changes.take())
        if not self.lead.take():
            return
        if self.job.monotonic() >= self.schedule.maintenance_due:
            self._maintain()
            self.schedule.maintenance_due = self.job.monotonic() + MAINTENANCE_INTERVAL_S
        elif self.intake.schedule.is_due:
            self.intake.find_owners()
        self._hear_helper()
        trouble = self._note_departures()
        self.pipeline.go_on()
        if self.schedule.may_take:
            self.intake.look()
            self.intake.check_owners()
            self._give_helper()
            self._take()
            self.pipeline.commit()
        trouble = self._note_departures() or trouble
        self.reimports.answer()
        if self.reimports.has_released and not self.schedule.is_working:
            self.schedule.maintenance_due = self.job.monotonic()  # more held files may be waiting
        if trouble is not None:
            raise trouble

    def _let_go(self) -> None:
        self.helper.end()
        self.pipeline.drop()
        self.recovery.give_up()
        self.reimports.give_up()
        self.intake.give_up()

    def _maintain(self) -> None:
        """Check for what other processes changed, and act on it."""
        accounts, pending, reimports = self.intake.accounts, self.pipeline.pending, self.reimports
        held = reimports.held.by_account
        self.lead.check_owner()
        reimports.held.look()
        accounts.refresh(is_due=bool(held))  # which may get room
        self.helper.watch_over()
        self.recovery.recover(has_helper=self.helper.is_running)
        for files in held.values():
            self.intake.ids.follow(files[-1].claim_id)
        busy = accounts.find_unknown(held.keys()) | self.pipeline.bundles.account_ids
        busy |= {file.claim.account_id for file in self.recovery.resumed}
        by_id = {account.id: account for account in accounts.all}
        pending.set_queues(reimports.release(by_id, busy=busy, unfiled=pending.first_held))
        reimports.take_requests(self.intake.claim_ids)
        self.intake.find_owners()
        if not (self._under_way or self.recovery.resumed):
            self.job.notices.all_over("unmovable")
        is_moving = self.helper.is_busy or self.pipeline.can_go_on or self.recovery.resumed
        if self.schedule.may_take and not is_moving and (count := reimports.missing.dismiss()):
            dismissed = f"Dismissed {counted(count, 'failed file')}"
            self.job.notices.tell(f"{dismissed} that someone deleted or moved out of {FAILED}")

    def _give_helper(self) -> None:
        backlog = sum(len(inbox.queue) + inbox.scan.found for inbox in self.intake.inboxes.values())
        self.helper.supervise(backlog=backlog, is_working=self.pipeline.under_way > 0)
        while self.helper.is_free and (candidates := self.intake.next_batch(SLOT)):
            self.helper.give(Batch(candidates, dict(self.pipeline.pending.queues)))

    def _hear_helper(self) -> None:
        for answer in self.helper.iter_answers():
            self.job.departures += answer.departures
            for key, sentence in answer.remarks:
                self.job.notices(key, sentence)
            for report in answer.reports:
                self.totals.add(report)

    def _take(self) -> None:
        """Read the next files: first those that dead processes had under way, then those to reimport
        together with new files of other accounts (pitfalls I12)."""
        most = self.job.options.tuning.batch_files
        batch = self.recovery.next_batch(most)
        if not batch:
            busy = self.reimports.due_account_ids
            batch = self.reimports.next_batch(most) + self.intake.next_batch(busy=busy)
        if batch:
            self.pipeline.read(batch)

    def _note_departures(self) -> OSError | None:
        """Schedule what follows for the files that are no longer under way; return the error that concerns
        every file, if one departed for that. Raises StoreError; the next call continues there."""
        trouble = None
        departures = self.job.departures
        while departures:
            departure = departures[0]
            claim, cause = departure.claim, departure.cause
            if not self.recovery.keep(departure):
                self.totals.kept_ids.discard(claim.id)
                if claim.is_return and cause not in (Cause.FILED, Cause.CHANGED):
                    self.reimports.has_released = False  # else it would be retried without a pause
                self.reimports.end(claim.id, is_over=departure.is_over)
                self.intake.leave(departure)
            if cause is Cause.TROUBLE:
                trouble = departure.error
            del departures[0]
        return trouble

    # Messages

    @property
    def _under_way(self) -> int:
        """Return how many files are read and not filed, here and in the helper, or out of reach."""
        return self.pipeline.under_way + self.helper.under_way + len(self.recovery.unreached)

    @property
    def _unfinished(self) -> int:
        """Return how many files are under way, without those that were reported."""
        return max(0, self._under_way - len(self.totals.kept_ids))

    def progress(self) -> Progress:
        inboxes = self.intake.inboxes.values()
        waiting = sum(inbox.scan.waiting for inbox in inboxes) + self._unfinished
        is_complete = not any(inbox.is_looking for inbox in inboxes)
        return Progress(**vars(self.totals.summary) | {"waiting": waiting}, is_complete=is_complete)

    def summary(self) -> Summary:
        """Return what this importer did so far, and what was in the inbox at the last scan."""
        inboxes = self.intake.inboxes.values()
        resting = sum(inbox.settling.count_resting() for inbox in inboxes)
        stuck = sum(
            inbox.settling.count_left() + bool(inbox.scan.unlisted)
            for inbox in inboxes
            if inbox.account
        )
        return dataclasses.replace(
            self.totals.summary,
            ignored=sum(inbox.scan.ignored for inbox in inboxes) + resting,
            waiting=self.progress().waiting - resting,
            stuck=stuck + self._unfinished,
        )

    def close(self) -> None:
        """Release the slot, so that other importers can continue with what is left."""
        self.helper.end()
        self._hear_helper()
        self.pipeline.drop()
        self.job.slot.leave()


class Leadership:
    """Whether this importer works in the folder: whether it holds slot 0. Others stand by until it is free."""

    def __init__(self, job: Job, *, let_go: Callable[[], None]) -> None:
        """`let_go` forgets all work in progress; it is called when the folder is lost."""
        self._job = job
        self._let_go = let_go
        self.due = job.monotonic()
        """When to try to take the slot again."""
        self.stands_by = False
        """Whether another importer works in the folder."""
        self._has_led = False

    @property
    def is_held(self) -> bool:
        """Whether the slot is held; false too if that cannot be checked."""
        with contextlib.suppress(OSError):
            return self._job.slot.is_held
        return False

    def take(self) -> bool:
        """Return whether this importer holds the folder's slot; try to take it when that is due."""
        job = self._job
        if job.slot.is_held:
            return True
        if job.monotonic() < self.due:
            return False
        self.due = job.monotonic() + STAND_BY_INTERVAL_S
        if self._has_led:  # the whole folder was emptied or replaced
            self.check_owner()
            self._let_go()
            watched_folder.set_owner(Path(job.root), watched_folder.owner_of(job.store))
        self.stands_by = not job.slot.take()
        if self.stands_by:
            job.notices(
                "standby",
                f"Another importer is running in {shown_root(job.root)}. This one is on standby, "
                "and takes over when that one stops",
            )
            return False
        job.notices.resolve("standby")
        self._has_led = True
        return True

    def check_owner(self) -> None:
        """Give the folder up if another store has adopted it, or another folder is in its place. Raises
        StoreUnavailable then."""
        job = self._job
        try:
            watched_folder.check_owner(Path(job.root), watched_folder.owner_of(job.store))
        except InvalidArgument as error:
            job.notices.find("owner", ImporterState.DEGRADED, error.message)
            self._let_go()
            job.slot.leave()
            raise StoreUnavailable(f"{shown_root(job.root)} belongs to another store") from None
        job.notices.clear("owner")


class Schedule:
    """What an importer can do next, and when."""

    def __init__(self, importer: Importer) -> None:
        self._importer = importer
        self.maintenance_due = importer.job.monotonic()
        """When to check for changes by other processes, which also retries filing."""

    @property
    def is_stuck(self) -> bool:
        """Whether a file could not be filed away; nothing new is taken until then."""
        return self._importer.pipeline.pending.is_stuck or self._importer.helper.is_stuck

    @property
    def may_take(self) -> bool:
        """Whether files may be taken: none before all dead slots are recovered or while one is stuck."""
        return not self._importer.recovery.left_slots and not self.is_stuck

    @property
    def is_working(self) -> bool:
        """Whether work in progress can continue immediately."""
        can_resume = self._importer.recovery.resumed or self._importer.reimports.are_due
        return self._importer.pipeline.can_go_on or (self.may_take and bool(can_resume))

    @property
    def can_go_on(self) -> bool:
        """Whether there is something to do now."""
        if not self._importer.lead.is_held:
            return False
        has_new = self._importer.reimports.has_released or self._importer.intake.wait_s() == 0
        return self.is_working or (self.may_take and has_new)

    @property
    def is_awaiting(self) -> bool:
        """Whether the helper or the analyzer is busy."""
        return self._importer.helper.is_busy or bool(self._importer.pipeline.documents)

    @property
    def has_work(self) -> bool:
        """Whether there is something to do now, or the helper or the analyzer is busy."""
        return self.can_go_on or self.is_awaiting

    def wait_s(self) -> float:
        """Return the seconds until there is something to do, unless a change or the helper's answer
        comes first."""
        now = self._importer.job.monotonic()
        if not self._importer.lead.is_held:
            return max(0.0, self._importer.lead.due - now)
        if self.is_working:
            return 0.0
        wait_s = max(0.0, self.maintenance_due - now)
        if self._importer.recovery.left_slots:
            return wait_s
        return min(wait_s, self._importer.intake.wait_s())

    @property
    def next_due(self) -> float | None:
        """When the first awaited file will have settled, or the folder's slot is tried again, on the
        monotonic clock; None if no file is awaited."""
        if not self._importer.lead.is_held:
            return self._importer.lead.due
        if self._importer.recovery.left_slots:
            return self.maintenance_due
        return min((due for due, _ in self._list_awaited()), default=None)

    @property
    def awaited(self) -> list[str]:
        """The names of the files that are waiting to settle, below ROOT and escaped."""
        return sorted(name for _, name in self._list_awaited())

    def _list_awaited(self) -> list[tuple[float, str]]:
        inboxes = self._importer.intake.inboxes.values()
        settling = [file for inbox in inboxes for file in inbox.list_awaited()]
        awaited = [(due, escaped(name)) for due, name in settling]
        return awaited + self._importer.pipeline.pending.list_awaited()
