"""The importer at work, turn by turn; `running` says when the next one is.

A turn goes on with what is claimed, commits and files away, and takes new files, one account's
after another's. About twice a second it also looks after everything that others change:
accounts, held files, requests, importers that are gone.
"""

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from importer import scanning, workspaces
from importer.changes import Changes, Marked
from importer.claims import Claim
from importer.hands import Hand
from importer.health import Health
from importer.intake import Intake
from importer.names import WORK, escaped
from importer.options import Options
from importer.pipeline import Pipeline
from importer.returning import Returns
from importer.steps import Observer, unobserved
from importer.taking import Candidate, Left, Why
from importer.tally import Tally
from importer.telling import FileReport, Progress, Remarks, Summary, as_report
from importer.trying import Trial
from importer.worker import Batch, Setup
from importer.workforce import Workforce
from resumes import watched_folder
from resumes.errors import InvalidArgument, StoreError, StoreUnavailable
from resumes.store import Store, accounts, identifiers
from resumes.store.accounts import AccountInfo
from resumes.store.identifiers import ACCOUNT_ID
from resumes.store.ledger import FileOutcome

CARE_S = 0.5
"""How often is looked after what others change: half of what people are promised."""

ACCOUNTS_S = 2.0
"""How often accounts are looked up while none holds files."""

TAKE_OVER_S = 2.0
"""How often importers are looked for that are gone."""

ROUND_S = 1.0
"""After this long a round ends although files are left."""

MOST_CLAIMED = 2_000
"""Claimed files that are not at their end; with more, none is taken."""


class Importer:
    """An importer at work on one ROOT."""

    def __init__(
        self,
        store: Store,
        root: Path,
        options: Options,
        *,
        on_file: Callable[[FileReport], None],
        remarks: Remarks,
        health: Health | None = None,
        changes: Changes | None = None,
        observe: Observer = unobserved,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._root = root
        self._options = options
        self._on_file = on_file
        self._remarks = remarks
        self._changes = changes or Changes()
        self._observe = observe
        self._monotonic = monotonic
        self._health = health or Health(lambda finding: None)
        self._trial = Trial(options.format, options.settle_s)
        self._pipeline = Pipeline(
            store,
            self._first_hand(),
            root=root,
            options=options,
            on_filed=lambda *filed: self._filed(as_report(*filed)),
            remark=remarks,
            observe=observe,
            monotonic=monotonic,
        )
        self._intake = Intake(
            root,
            options,
            ids=self._pipeline.ids,
            clock=store.clock,
            monotonic=monotonic,
            remarks=remarks,
            health=self._health,
        )
        self._returns = Returns(store, root)
        self._workforce = Workforce(
            lambda: Setup(store.url, root, self._new_id(), options, observe),
            most=options.workers,
            workers_from=options.tuning.workers_from,
            on_answer=self._changes.wake,
            monotonic=monotonic,
        )
        self._tally = Tally()
        self._accounts: list[AccountInfo] = []
        self._left_claims: set[str] = set()
        """The folders of claims that were left alone, of accounts that the store did not know."""
        self._unknown_ids: set[str] = set()
        """Those of the finding, that the store does not know."""
        self._next_care = self._next_accounts = self._next_take_over = monotonic()
        self._trouble: OSError | None = None

    def _new_id(self) -> str:
        return identifiers.resume_id(self._store.clock())

    def _first_hand(self) -> Hand:
        try:
            return self._make_hand()
        except OSError as error:
            raise InvalidArgument(
                f"Cannot write in {escaped(str(self._root))}: {error.strerror}"
            ) from None

    def _make_hand(self) -> Hand:
        while True:
            workspace = workspaces.make(self._root / WORK, self._new_id())
            if workspace is not None:
                return self._hand_over(workspace)

    def _hand_over(self, workspace: workspaces.Workspace) -> Hand:
        return Hand(workspace, self._root, self._trial, self._store.clock, self._observe)

    # What those who run it ask

    @property
    def id(self) -> str:
        """The importer's id, as its workspace is called."""
        return self._pipeline.own.id

    @property
    def is_stuck(self) -> bool:
        """Whether something could not be filed away; nothing new is taken while that is so."""
        return self._pipeline.is_stuck or self._workforce.is_stuck

    @property
    def folders(self) -> list[str]:
        """The names of the folders in ROOT that are worth listening to."""
        return self._intake.folders

    @property
    def looks(self) -> int:
        """How often ROOT was looked through, or tried to be."""
        return self._intake.looks

    @property
    def worker_pids(self) -> list[int]:
        """The processes that help, if any do."""
        return self._workforce.pids

    @property
    def filed(self) -> int:
        """How many files were filed so far, by this process and its workers."""
        return self._tally.filed

    @property
    def has_answers(self) -> bool:
        """Whether a worker is through with something."""
        return self._workforce.has_answers

    @property
    def has_work(self) -> bool:
        """Whether there is something to do now, or under way."""
        return self._can_go_on or self._workforce.is_busy

    @property
    def _can_go_on(self) -> bool:
        return (
            self._pipeline.has_work
            or self._returns.are_due
            or self._may_release_more
            or self._intake.has_work
        )

    @property
    def _may_release_more(self) -> bool:
        """Whether the held files that were released have come to their ends."""
        is_idle = not self._pipeline.has_work and not self._returns.are_due
        return self._returns.has_released and is_idle

    def wait_s(self) -> float:
        """Seconds until there is something to do, apart from what changes or workers say."""
        if self._pipeline.has_work or self._returns.are_due:
            return 0.0
        now = self._monotonic()
        waits = [self._next_care - now, self._intake.wait_s()]
        if (due := self._pipeline.next_due()) is not None:
            waits.append(due - now)
        return max(0.0, min(waits))

    @property
    def next_due(self) -> float | None:
        """When the first file that somebody waits for will have settled; None without any."""
        dues = (self._intake.next_due(), self._pipeline.next_due())
        return min((due for due in dues if due is not None), default=None)

    @property
    def awaited(self) -> list[str]:
        """The names of the files that somebody waits for, below ROOT and escaped."""
        paths = [path for inbox in self._intake.inboxes for path in inbox.settling.awaited()]
        names = [escaped(os.path.relpath(path, self._root)) for path in paths]
        return sorted([*names, *self._pipeline.awaited])

    def mark(self, marked: Marked) -> None:
        """What changed is looked at soon."""
        self._intake.mark(marked)

    # Turns

    def round(self, *, with_scan: bool = True) -> int:
        """Everything that can be done now is done, for about a second; how many files came to
        an end. Without the scan nothing new is taken. Raises StoreError and OSError."""
        before = self._tally.filed
        self._next_care = self._next_take_over = self._next_accounts = self._monotonic()
        if with_scan:
            self._intake.force()
        ends_at = time.monotonic() + ROUND_S
        is_first = True
        while is_first or (self.has_work and time.monotonic() < ends_at):
            is_first = False
            self.turn(takes_new=with_scan)
            if self._workforce.is_busy and not self._can_go_on:
                self._changes.wait(CARE_S)
        return self._tally.filed - before

    def turn(self, *, takes_new: bool = True) -> None:
        """One step further with everything. Raises StoreError and OSError; what was claimed is
        gone on with in a later turn."""
        if self._monotonic() >= self._next_care:
            self._take_care()
            self._next_care = self._monotonic() + CARE_S
        elif self._intake.wants_owners:
            self._find_owners()
        self._hear_workers()
        self._pipeline.go_on()
        self._pipeline.commit()
        self._pipeline.unpack()
        if takes_new and not self.is_stuck:
            self._intake.look()
            self._check_account_owners()
            self._give_workers()
            self._take()
            self._pipeline.commit()
            self._returns.answer()
        if self._may_release_more:
            self._next_care = self._monotonic()
        if self._trouble is not None:
            error, self._trouble = self._trouble, None
            raise error

    def _take_care(self) -> None:
        """What others changed is known, and is acted upon."""
        self._check_folder_owner()
        self._keep_workspace()
        self._returns.look()
        self._find_accounts()
        self._take_over()
        for claim_id in self._returns.last_ids():
            self._pipeline.ids.follow(claim_id)
        by_id = {one.id: one for one in self._accounts}
        left = map(_account_id, filter(_has_files, self._left_claims | self._pipeline.left_folders))
        unknown = self._find_unknown({*self._returns.account_ids, *left})
        busy = self._pipeline.engaged | unknown
        self._pipeline.queues = self._returns.release(by_id, busy=busy)
        self._note_unknown(unknown)
        self._returns.take_requests()
        self._find_owners()

    def _find_owners(self) -> None:
        self._intake.find_owners({one.name: one for one in self._accounts})

    def _check_account_owners(self) -> None:
        """New files go to whoever has their folder's name when they are taken (pitfalls S14)."""
        owner_ids = self._intake.owner_ids
        if owner_ids and accounts.find_open(self._store, owner_ids) != owner_ids:
            self._next_accounts = self._monotonic()
            self._find_accounts()
            self._find_owners()

    def _check_folder_owner(self) -> None:
        # Another store may have adopted the folder, or another folder may lie in its place.
        try:
            watched_folder.check_owner(self._root, watched_folder.owner_of(self._store))
        except InvalidArgument as error:
            self._health.degraded("owner", error.message)
            where = escaped(str(self._root))
            raise StoreUnavailable(f"{where} belongs to another store") from None
        self._health.ok("owner")

    def _keep_workspace(self) -> None:
        # Somebody may have emptied or replaced the whole folder under us.
        if not self._pipeline.own.workspace.is_held:
            watched_folder.set_owner(self._root, watched_folder.owner_of(self._store))
            self._give_up(self._workforce.end())
            self._pipeline.replace_own(self._make_hand())

    def _find_accounts(self) -> None:
        """The accounts are known as they are; soon, while one may get room for what it holds."""
        now = self._monotonic()
        if self._returns.holds_files or now >= self._next_accounts:
            self._accounts = accounts.list_accounts(self._store)
            self._next_accounts = now + min(ACCOUNTS_S, self._options.scan_s)

    def _find_unknown(self, account_ids: Collection[str]) -> set[str]:
        """Return the accounts that the store neither has nor has deleted.

        Their files are left alone: the store may be older than they are, after a restore.
        """
        others = set(account_ids) - {one.id for one in self._accounts}
        if not others:
            return others
        self._accounts = accounts.list_accounts(self._store)
        others -= {one.id for one in self._accounts}
        return others - accounts.find_deleted(self._store, others)

    def _note_unknown(self, unknown: set[str]) -> None:
        if unknown == self._unknown_ids:
            return
        self._unknown_ids = unknown
        text = watched_folder.describe_unknown(watched_folder.count_waiting(self._root), unknown)
        if text is None:
            self._health.ok(watched_folder.UNKNOWN_ACCOUNTS)
        else:
            sentence = f"{text}. {watched_folder.UNKNOWN_REMEDY}"
            self._health.degraded(watched_folder.UNKNOWN_ACCOUNTS, sentence)

    def _take_over(self) -> None:
        """What importers and workers left that are gone is ours."""
        for candidates in self._workforce.bury():
            self._give_up(candidates)
            self._next_take_over = self._monotonic()
        self._pipeline.leave_finished()
        if self._monotonic() < self._next_take_over:
            return
        names = {account.id: account.name for account in self._accounts}
        for workspace in workspaces.iter_abandoned(self._root / WORK):
            hand = self._hand_over(workspace)
            try:
                folders = {folder for folder, _ in workspace.iter_claim_ids()}
                unknown = self._find_unknown(
                    set(filter(ACCOUNT_ID.fullmatch, map(_account_id, folders)))
                )
                remains = hand.take_over(without=unknown)
            except StoreError:
                hand.leave()
                raise
            except OSError as error:
                hand.leave()
                self._remarks(
                    f"left over {hand.id}",
                    f"Cannot go on with what an importer left in .work/{hand.id}: "
                    f"{error.strerror}. It is tried again",
                )
                continue
            self._left_claims |= {folder for folder in folders if _account_id(folder) in unknown}
            self._pipeline.inherit(hand, (_named(claim, names) for claim in remains.claims))
            self._intake.suspect(remains.suspects)
            self._pipeline.own.keep_suspects(remains.suspects)
        self._next_take_over = self._monotonic() + TAKE_OVER_S

    def _give_up(self, candidates: Iterable[Candidate]) -> None:
        """Nobody tries these files now, so they are looked for again."""
        for one in candidates:
            inbox = self._intake.land(one)
            if inbox is not None:
                inbox.rhythm.force()

    def _give_workers(self) -> None:
        """There are workers if there is a backlog, and they have enough to do."""
        is_working = self._pipeline.claimed > 0
        self._workforce.mind(backlog=self._intake.backlog, is_working=is_working)
        for worker in self._workforce.iter_free():
            candidates = self._intake.next_batch(worker.id, for_worker=True)
            if candidates:
                worker.give(Batch(candidates, self._pipeline.queues))

    def _hear_workers(self) -> None:
        for batch, answer in self._workforce.iter_answers():
            for report in answer.reports:
                self._filed(report)
            for key, sentence in answer.remarks:
                self._remarks(key, sentence)
            if batch is not None:
                self._after_tries(batch.candidates, answer.left or [])

    def _take(self) -> None:
        """The next files are taken by this process, those that were put away before first."""
        if self._pipeline.claimed > MOST_CLAIMED:
            return
        own_id = self._pipeline.own.id
        batch = self._returns.next_batch(
            own_id, self._options.tuning.batch_files
        ) or self._intake.next_batch(own_id)
        if not batch:
            return
        try:
            left = self._pipeline.take(batch)
        except OSError as error:
            left = [Left(one.claim.id, one.path, Why.TROUBLE, None, error) for one in batch]
        self._after_tries(batch, left)

    def _after_tries(self, candidates: Iterable[Candidate], left: Iterable[Left]) -> None:
        left_by_id = {one.claim_id: one for one in left}
        for one in candidates:
            why_left = left_by_id.get(one.claim.id)
            if one.is_return:
                is_over = why_left is None or why_left.why is Why.GONE
                self._returns.end(one.claim.id, is_over=is_over)
            if one.is_alone:
                self._pipeline.own.end_suspect(one.claim.name_hex)
            if why_left is not None and why_left.why is Why.TROUBLE:
                self._trouble = why_left.error
            self._intake.after_try(one, why_left)

    def _filed(self, report: FileReport) -> None:
        self._tally.add(report)
        self._on_file(report)

    # What people are told

    @property
    def _claimed(self) -> int:
        """Files that are claimed and not filed, by us and by workers."""
        return self._pipeline.claimed + self._workforce.claimed

    def progress(self) -> Progress:
        """How far everything is."""
        inboxes = list(self._intake.inboxes)
        return Progress(
            done=self._tally[FileOutcome.DONE],
            failed=self._tally[FileOutcome.FAILED],
            duplicate=self._tally[FileOutcome.DUPLICATE],
            held=self._tally[FileOutcome.HELD],
            waiting=sum(inbox.waiting for inbox in inboxes) + self._claimed,
            waiting_bytes=sum(inbox.waiting_bytes for inbox in inboxes),
            is_complete=not any(inbox.is_looking for inbox in inboxes),
        )

    def summary(self) -> Summary:
        """What this importer did so far, and what lies in the inbox now."""
        ignored = waiting = 0
        unlisted: set[str] = set()

        def remark(key: str, sentence: str) -> None:
            unlisted.add(name)
            self._remarks(key, sentence)

        with contextlib.suppress(OSError):
            for name in scanning.find_inboxes(str(self._root)):
                folder = f"{self._root}/{name}" if name else str(self._root)
                for seen in scanning.iter_inbox(folder, below=name, remark=remark):
                    ignored += seen.signature is None
                    waiting += seen.signature is not None
        resting = sum(inbox.settling.resting() for inbox in self._intake.inboxes)
        left = sum(inbox.settling.left() for inbox in self._intake.inboxes)
        owned = {inbox.below for inbox in self._intake.inboxes if inbox.account is not None}
        return Summary(
            done=self._tally[FileOutcome.DONE],
            failed=self._tally[FileOutcome.FAILED],
            duplicate=self._tally[FileOutcome.DUPLICATE],
            held=self._tally[FileOutcome.HELD],
            ignored=ignored + resting,
            waiting=waiting - resting + self._claimed,
            stuck=left + len(unlisted & owned) + self._claimed,
        )

    def close(self) -> None:
        """Other importers may take over what is left."""
        self._give_up(self._workforce.end())
        self._hear_workers()
        self._pipeline.leave()


def _account_id(folder: str) -> str:
    """Return the account whose claims lie in the folder."""
    return folder.rpartition("/")[2]


def _has_files(folder: str) -> bool:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return next(entries, None) is not None
    return False


def _named(claim: Claim, names: dict[str, str]) -> Claim:
    return claim if claim.account else claim._replace(account=names.get(claim.account_id, ""))
