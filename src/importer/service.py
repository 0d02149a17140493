"""The whole importer, as `resumes watch` runs it."""

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
"""How many turns may fail in a row before `--once` gives up."""
STOP_INTERVAL_S = 0.25
"""How soon a stop is noticed during any wait."""
QUIET_S = 10.0
"""`--once` reports the files that it waits for if it waits longer than this."""
PROGRESS_INTERVAL_S = 0.25

CALM_S = 10.0
"""How long nothing must fail before a problem counts as over, unless a file is filed: the failed step
is retried in a later turn, and the turns in between prove nothing."""
HEARTBEAT_INTERVAL_S = 10.0
"""How often the importer's row is written; immediately when its findings change."""
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
    """Import files dropped into ROOT until `stop` is set, or with `once` until none is left.

    `on_file` and `on_progress` are called from this thread, `on_notice` also from the hook's;
    `on_ignored` with `dry_run` alone. Raises InvalidArgument when ROOT is not a folder that can be
    written to, or belongs to another store; StoreError when the store cannot be read at first,
    and with `once` when it stays out of reach.
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
    """Remove done files that are older than `--done-keep` or their account's plan keeps them, up to some
    number; return how many were removed."""
    job = importer.job
    if not importer.lead.is_held:
        return 0
    by_folder: dict[str, int] = {}
    with contextlib.suppress(StoreError):  # the turns report it
        by_folder = keep_days_by_folder(job.store)
    keep_days = job.options.done_keep_days
    if keep_days is None and not by_folder:
        return 0
    root, now_us = Path(job.root), job.store.clock()
    return prune(root, keep_days, now_us, remark=job.notices, by_folder=by_folder)


def find_pause_s(
    failures: int, tuning: Tuning, random: Callable[[], float] = random.random
) -> float:
    """Return the pause after this many failures in a row: longer each time, with a random part so that
    importers do not retry together. `random` returns 0 to 1."""
    # 2 to the power of a thousand failures would overflow a float.
    longer_s = tuning.first_back_off_s * 2.0 ** min(failures - 1, 30)
    return min(longer_s, tuning.longest_back_off_s) * (1 + random()) / 2


class Runner:
    """Calls an importer's turns when they are due."""

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
        """How many turns failed in a row."""
        self._again_at = self._calm_at = self._progress_due = monotonic()
        """When the next turn may run, when the problem is over if nothing fails before, and when to show
        progress again."""
        self._filed_before = 0
        """How many files had been filed when something last failed."""
        self._progress: Progress | None = None

    def run(
        self,
        stop: threading.Event,
        maintain: Callable[[], None] = lambda: None,
        *,
        until_idle: bool = False,
    ) -> bool:
        """Import files until `stop` is set, as they come; call `maintain` between turns.

        With `until_idle`, end when no file is left that can be imported now; return False if it gave up
        before that, because no file could be read or filed. Raises StoreUnavailable when a thread that the
        store depends on has ended; with `until_idle` StoreError when the store stays out of reach.
        """
        importer, schedule = self._importer, self._importer.schedule
        idle_since: float | None = None
        maintain()  # the first turn may take long, and others look for the importer's row
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

    def _try(self, turn: Callable[[], int | None]) -> tuple[int, Exception | None]:
        """Return how many files a turn filed, and the error that cut it off."""
        totals, notices = self._importer.totals, self._importer.job.notices
        try:
            handled = turn() or 0
        except (StoreError, OSError) as error:
            self._note_failure()
            why = error.message if isinstance(error, StoreError) else _describe(error)
            notices(
                "trouble", f"{escaped(why)}. No new files will be imported until this is resolved"
            )
            return 0, error
        if self._importer.schedule.is_stuck:
            self._note_failure()
        elif self._monotonic() >= self._calm_at or totals.filed > self._filed_before:
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
        self._filed_before = self._importer.totals.filed

    def _wait(self, stop: threading.Event, wait_s: float) -> None:
        """Wait until the next turn is due: after so many seconds, or at the end of a pause."""
        pause_s = self._again_at - self._monotonic()
        if pause_s > 0:
            stop.wait(pause_s)
            return
        ends_at = self._monotonic() + wait_s
        while not stop.is_set():
            left_s = ends_at - self._monotonic()
            if left_s <= 0 or self._importer.changes.wait(min(left_s, STOP_INTERVAL_S)):
                return

    def _show_progress(self) -> None:
        if (now := self._monotonic()) < self._progress_due:
            return
        self._progress_due = now + PROGRESS_INTERVAL_S
        progress = self._importer.progress()
        if progress != self._progress:
            self._progress = progress
            self._on_progress(progress)


def _describe(error: OSError) -> str:
    """Return the error for people: `/srv/inbox/.importer: Read-only file system`."""
    if error.strerror is None or not isinstance(error.filename, str):
        return files.describe(error)
    return f"{error.filename}: {error.strerror}"


class Maintenance:
    """The periodic tasks between an importer's turns: follow folders, write its row in the store, prune
    done files."""

    def __init__(self, importer: Importer, watcher: Watcher) -> None:
        self._importer = importer
        self._watcher = watcher
        clock = importer.job.store.clock
        self._id, self._started_at = identifiers.resume_id(clock()), timestamp(clock())
        self._follow_due = self._heartbeat_due = self._prune_due = -math.inf
        self._followed: tuple[int, list[str]] | None = None
        self._announced: object = None

    def __call__(self) -> None:
        now, importer = time.monotonic(), self._importer
        # After each scan of ROOT, and repeatedly while ROOT is out of reach.
        seen = (importer.intake.looks, importer.intake.folders)
        if seen != self._followed or now >= self._follow_due:
            self._followed = seen
            self._follow_due = now + FOLLOW_INTERVAL_S
            self._watcher.follow(seen[1])
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
            # The turns report that the store is out of reach; the next row has the same findings.
            logger.info("Could not register the importer: %s", error.message)

    def leave(self) -> None:
        with contextlib.suppress(StoreError):
            importers.leave(self._importer.job.store, self._id, deadline_s=HEARTBEAT_TIMEOUT_S)


def take_root(store: Store, root: Path, options: Options) -> None:
    """Assign the folder to the store; a dry run only checks that this is possible. Raises InvalidArgument
    for the folder of another store, and StoreError."""
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
    """Return the folder's real path. Raises InvalidArgument unless it can be written to."""
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
