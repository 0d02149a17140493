"""The complete importer, as run by `resumes watch`."""

import contextlib
import logging
import math
import os
import random
import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

from importer import files
from importer.dry_run import DryRun, Ignored
from importer.files import escaped
from importer.hook import Hook
from importer.loop import Importer
from importer.notices import FileReport, Notices, Progress, Summary
from importer.options import Options, Tuning
from importer.prune import prune
from importer.watcher import Watcher
from resumes import watched_folder
from resumes.clock import timestamp
from resumes.errors import InvalidArgument, StoreError
from resumes.store import Store, identifiers, importers
from resumes.store.importers import ImporterFinding
from resumes.store.retention import keep_days_by_folder
from resumes.watched_names import OWN

__all__ = ["FileReport", "Ignored", "Options", "Progress", "Summary", "watch"]

logger = logging.getLogger("resumes.importer")

MAX_ONCE_FAILURES = 3
"""The number of turns that may fail in a row before `--once` gives up."""
QUIET_S = 10.0
"""How long `--once` waits for files before it reports which files it is waiting for."""
PROGRESS_INTERVAL_S = 0.25

CALM_S = 10.0
"""How long nothing must fail before a problem counts as solved, unless a file is filed. The failed
step is retried only in a later turn, so success of the turns in between proves nothing."""
HEARTBEAT_INTERVAL_S = 10.0
"""How often the importer's row is written. It is also written when the findings change."""
HEARTBEAT_TIMEOUT_S = 1.0
PRUNE_INTERVAL_S = 60.0
FOLLOW_INTERVAL_S = 2.0


def watch(
    store: Store,
    root: Path,
    options: Options,
    *,
    stop: threading.Event,
    on_file: Callable[[FileReport], None],
    on_notice: Callable[[str], None],
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_ignored: Callable[[Ignored], None] = lambda ignored: None,
) -> Summary:
    """Import files dropped into ROOT until `stop` is set, or with `once` until no file is left.

    `on_file` and `on_progress` are called from this thread, `on_notice` also from the hook's
    thread, and `on_ignored` only with `dry_run`. Raises InvalidArgument if ROOT is not a writable
    folder or belongs to another store. Raises StoreError if the store cannot be read at the start,
    or with `once` if it stays unreachable.
    """
    root = check_root(root)
    take_root(store, root, options)
    files.ignore_breaks()
    notices = Notices(on_notice)
    if options.dry_run:
        return DryRun(store, root, options, notices, on_file, on_ignored).run()
    is_drained = True
    with contextlib.ExitStack() as stack:
        hook = None
        if options.on_import is not None:
            hook = Hook(options.on_import, root, on_notice=on_notice)
            stack.callback(hook.finish, stop)

        def filed(report: FileReport) -> None:
            if hook is not None:
                hook.note(report)
            on_file(report)

        importer = Importer(store, root, options, on_file=filed, notices=notices)
        stack.callback(importer.close)
        runner = Runner(importer, on_progress=on_progress)
        if options.once:
            is_drained = runner.run(stop, until_idle=True)
            while _prune(importer):
                pass
        else:
            watcher = stack.enter_context(
                Watcher(root, importer.changes, notices, poll=options.poll)
            )
            maintenance = Maintenance(importer, watcher)
            stack.callback(maintenance.leave)
            runner.run(stop, maintenance)
        summary = importer.summary()
        if not is_drained:
            summary.stuck = max(1, summary.waiting)
        return summary


def _prune(importer: Importer) -> int:
    """Remove some of the done files that are older than `--done-keep` or their account's plan
    allows. Return how many were removed."""
    job = importer.job
    if not importer.lead.is_held:
        return 0
    by_folder: dict[str, int] = {}
    with contextlib.suppress(StoreError):  # the turns report the error
        by_folder = keep_days_by_folder(job.store)
    keep_days = job.options.done_keep_days
    if keep_days is None and not by_folder:
        return 0
    root, now_us = Path(job.root), job.store.clock()
    return prune(root, keep_days, now_us, remark=job.notices, by_folder=by_folder)


def find_pause_s(
    failures: int, tuning: Tuning, random: Callable[[], float] = random.random
) -> float:
    """Return the pause after this many failures in a row. Pauses grow and have a random part, so
    that importers do not all retry at the same time. `random` returns a number from 0 to 1."""
    # 2 to the power of a thousand failures would be too large for a float.
    longer_s = tuning.first_back_off_s * 2.0 ** min(failures - 1, 30)
    return min(longer_s, tuning.longest_back_off_s) * (1 + random()) / 2


class Runner:
    """Runs an importer's turns when they are due."""

    def __init__(
        self,
        importer: Importer,
        *,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._importer = importer
        self._on_progress = on_progress
        self._monotonic = monotonic
        self._failures = 0
        """The number of turns that failed in a row."""
        self._again_at = self._calm_at = self._progress_due = monotonic()
        """The times at which the next turn may run, at which the problem counts as solved if
        nothing fails before, and at which progress is shown again."""
        self._progress: Progress | None = None

    def run(
        self,
        stop: threading.Event,
        maintain: Callable[[], None] = lambda: None,
        *,
        until_idle: bool = False,
    ) -> bool:
        """Import files as they arrive, until `stop` is set; call `maintain` between turns.

        With `until_idle`, return when no file is left that can be imported now. Return False if
        files could not be read or filed after several attempts. Raises StoreUnavailable if a thread
        of the store has ended, and with `until_idle`, StoreError if the store stays unreachable.
        """
        importer, schedule = self._importer, self._importer.schedule
        idle_since: float | None = None
        maintain()  # the first turn may take long, and other processes look for the importer's row
        while not stop.is_set():
            importer.job.store.check_threads()
            handled, error = self._try(importer.round if until_idle else importer.turn)
            self._show_progress()
            maintain()
            is_cut_off = error is not None or schedule.is_stuck
            if until_idle and is_cut_off and self._failures >= MAX_ONCE_FAILURES:
                if isinstance(error, StoreError):
                    raise error
                return False
            if is_cut_off or handled or schedule.has_work or not until_idle:
                idle_since = None
                self._wait(stop, 0.0 if until_idle else schedule.wait_s())
                continue
            if (due := schedule.next_due) is None:
                return True
            idle_since = self._monotonic() if idle_since is None else idle_since
            if due - idle_since >= QUIET_S and (names := schedule.awaited):
                more = f" and {len(names) - 1} more" if names[1:] else ""
                reason = "incomplete, not readable, or still open for writing"
                importer.job.notices("awaited", f"Waiting for {names[0]}{more}: {reason}")
            stop.wait(max(0.0, due - self._monotonic()))
        return True

    def _try(self, turn: Callable[[], object]) -> tuple[int, Exception | None]:
        """Return how many files a turn filed, and the error that ended it."""
        totals, notices = self._importer.totals, self._importer.job.notices
        before = totals.filed
        try:
            turn()
        except (StoreError, OSError) as error:
            self._note_failure()
            why = error.message if isinstance(error, StoreError) else _describe(error)
            notices(
                "trouble", f"{escaped(why)}. No new files will be imported until this is resolved"
            )
            return 0, error
        handled = totals.filed - before
        if self._importer.schedule.is_stuck:
            self._note_failure()
        elif handled or self._monotonic() >= self._calm_at:
            self._failures = 0
            notices.resolve("unfiled")
            if notices.resolve("trouble"):
                notices.tell("Importing resumed")
        return handled, None

    def _note_failure(self) -> None:
        self._failures += 1
        pause_s = find_pause_s(self._failures, self._importer.job.options.tuning)
        self._again_at = self._monotonic() + pause_s
        self._calm_at = self._again_at + CALM_S

    def _wait(self, stop: threading.Event, wait_s: float) -> None:
        """Wait until the next turn is due: after `wait_s` seconds, or at the end of a pause.
        Setting `stop` ends only a pause, since other waits are short."""
        pause_s = self._again_at - self._monotonic()
        if pause_s > 0:
            stop.wait(pause_s)
        else:
            self._importer.changes.wait(wait_s)

    def _show_progress(self) -> None:
        if (now := self._monotonic()) < self._progress_due:
            return
        self._progress_due = now + PROGRESS_INTERVAL_S
        progress = self._importer.progress()
        if progress != self._progress:
            self._progress = progress
            self._on_progress(progress)


def _describe(error: OSError) -> str:
    """Return the error's message for display: `/srv/inbox/.importer: Read-only file system`."""
    if error.strerror is None or not isinstance(error.filename, str):
        return files.describe(error)
    return f"{error.filename}: {error.strerror}"


class Maintenance:
    """The periodic tasks between turns: follow folders, write the importer's row, prune files."""

    def __init__(self, importer: Importer, watcher: Watcher) -> None:
        self._importer = importer
        self._watcher = watcher
        clock = importer.job.store.clock
        self._id, self._started_at = identifiers.resume_id(clock()), timestamp(clock())
        self._follow_due = self._heartbeat_due = self._prune_due = -math.inf
        self._followed = -1
        self._announced: object = None

    def __call__(self) -> None:
        now, importer = time.monotonic(), self._importer
        # Follow the folders after each scan of ROOT, and repeatedly while ROOT is unreachable.
        intake = importer.intake
        if intake.looks != self._followed or now >= self._follow_due:
            self._followed = intake.looks
            self._follow_due = now + FOLLOW_INTERVAL_S
            self._watcher.follow(filter(None, intake.inboxes))
        if importer.lead.stands_by:
            return  # an importer on standby does not work in the folder
        findings = importer.job.notices.findings()
        if findings != self._announced or now >= self._heartbeat_due:
            self._heartbeat_due = now + HEARTBEAT_INTERVAL_S
            self._announced = findings
            self._announce(findings)
        if now >= self._prune_due:
            _prune(importer)
            self._prune_due = now + PRUNE_INTERVAL_S

    def _announce(self, findings: tuple[ImporterFinding, ...]) -> None:
        job = self._importer.job
        row = importers.ImporterReport(
            id=self._id,
            host=socket.gethostname(),
            pid=os.getpid(),
            root=watched_folder.shown_root(job.root),
            state=job.notices.state,
            findings=findings,
            waiting=self._importer.progress().waiting,
            started_at=self._started_at,
        )
        try:
            importers.register(job.store, row, deadline_s=HEARTBEAT_TIMEOUT_S)
        except StoreError as error:
            # The turns report that the store is unreachable; the next row has the same findings.
            logger.info("Could not register the importer: %s", error.message)

    def leave(self) -> None:
        with contextlib.suppress(StoreError):
            importers.leave(self._importer.job.store, self._id, deadline_s=HEARTBEAT_TIMEOUT_S)


def take_root(store: Store, root: Path, options: Options) -> None:
    """Assign the folder to the store; a dry run only checks that this is possible. Raises
    StoreError, and InvalidArgument if the folder belongs to another store."""
    owner = watched_folder.owner_of(store)
    try:
        if not options.dry_run:
            watched_folder.set_owner(root, owner, adopts=options.adopts)
        elif not options.adopts:
            watched_folder.check_owner(root, owner)
    except OSError as error:
        where = escaped(str(root / OWN))
        raise InvalidArgument(f"Cannot use {where}: {error.strerror}") from None


def check_root(root: Path) -> Path:
    """Return the folder's real path. Raises InvalidArgument unless the folder is writable."""
    shown = escaped(str(root))
    try:
        mode = root.stat().st_mode
    except FileNotFoundError:
        raise InvalidArgument(f"Folder not found: {shown}. Create it, or choose another") from None
    except OSError as error:
        raise InvalidArgument(f"Cannot use {shown}: {error.strerror}") from None
    if not stat.S_ISDIR(mode):
        raise InvalidArgument(f"Not a folder: {shown}. Use the folder that the analyzer writes to")
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        raise InvalidArgument(f"Cannot write to {shown}: imported files are moved out of it")
    return root.resolve()
