"""The importer as a whole: what `resumes watch` runs."""

import contextlib
import logging
import os
import random as system_random
import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from importer import files
from importer.dry_run import Ignored, rehearse
from importer.files import escaped
from importer.hook import Hook
from importer.loop import Importer
from importer.notices import FileReport, Notices, Progress, Summary
from importer.options import DEFAULT_TUNING, Options, Tuning
from importer.prune import prune
from importer.watcher import Changes, Watcher
from resumes import memory, watched_folder
from resumes.clock import timestamp
from resumes.errors import InvalidArgument, StoreError
from resumes.file_names import OWN
from resumes.store import Store, importers

ONCE_FAILURES = 3
"""Turns that may fail in a row before a drain gives up."""

WAIT_STEP_S = 0.25
"""How soon a stop is heard of, whatever is waited for."""

SILENT_S = 10.0
"""A drain that waits for longer than this says for what."""

PROGRESS_S = 0.25

CALM_S = 10.0
"""So long nothing must fail for trouble to be over, unless a file is filed: what failed is tried
again at some later turn, and those between say nothing of it."""

Beat = Callable[[], None]
"""Called between turns; cheap unless it is time for something."""


class BackOff:
    """How long nothing is tried after failures in a row. `random` returns 0 to 1."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float],
        random: Callable[[], float],
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self._monotonic = monotonic
        self._random = random
        self._tuning = tuning
        self._until = monotonic()
        self.failures = 0
        """In a row."""

    def failed(self) -> None:
        """Nothing is tried for a while, longer each time, and not by all importers at once."""
        back_off_s = min(
            self._tuning.first_back_off_s * 2**self.failures, self._tuning.longest_back_off_s
        )
        self.failures += 1
        self._until = self._monotonic() + back_off_s * (1 + self._random()) / 2

    def succeeded(self) -> None:
        """The next failure is the first again."""
        self.failures = 0
        self._until = self._monotonic()

    def left_s(self) -> float:
        """Seconds until the next try; 0 unless the last one failed."""
        return max(0.0, self._until - self._monotonic())


class Runner:
    """Calls an importer's turns when it is time for them."""

    def __init__(
        self,
        importer: Importer,
        changes: Changes,
        notices: Notices,
        *,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        beats: tuple[Beat, ...] = (),
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = system_random.random,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self._importer = importer
        self._changes = changes
        self._notices = notices
        self._on_progress = on_progress
        self._beats = beats
        self._monotonic = monotonic
        self._back_off = BackOff(monotonic=monotonic, random=random, tuning=tuning)
        self._calm_at = monotonic()
        """When trouble is over if nothing fails before,"""
        self._filed = 0
        """and how many files had been filed when it began."""
        self._told: Progress | None = None
        self._next_progress = monotonic()

    def drain(self, stop: threading.Event) -> bool:
        """Nothing is left that can be imported now, or `stop` is set; False when it gave up
        before, as no file could be taken or filed away.

        Raises StoreError when the store stays out of reach.
        """
        idle_since: float | None = None
        while not stop.is_set():
            handled, error = self._try(lambda: self._importer.round())
            self._tell_progress()
            if error is not None or self._importer.is_stuck:
                if self._back_off.failures >= ONCE_FAILURES:
                    if isinstance(error, StoreError):
                        raise error
                    return False
                stop.wait(self._back_off.left_s())
            elif not handled and not self._importer.has_work:
                due = self._importer.next_due
                if due is None:
                    return True
                idle_since = self._monotonic() if idle_since is None else idle_since
                if due - idle_since >= SILENT_S:
                    self._tell_awaited()
                stop.wait(max(0.0, due - self._monotonic()))
                continue
            idle_since = None
        return True

    def _tell_awaited(self) -> None:
        names = self._importer.awaited
        if names:
            more = f" and {len(names) - 1} more" if names[1:] else ""
            self._notices(
                "awaited",
                f"Waiting for {names[0]}{more}: not whole yet, not readable, or still open for "
                "writing",
            )

    def run(self, stop: threading.Event) -> None:
        """Files are imported as they come, until `stop` is set."""
        while not stop.is_set():
            self._importer.mark(self._changes.take())
            self._try(self._importer.turn)
            self._tell_progress()
            for beat in self._beats:
                beat()
            self._wait(stop)

    def _try(self, turn: Callable[[], int | None]) -> tuple[int, Exception | None]:
        """A turn: how many files it brought to an end, and the error that cut it off."""
        try:
            handled = turn()
        except (StoreError, OSError) as error:
            self._failed()
            why = error.message if isinstance(error, StoreError) else _words_of(error)
            self._notices("trouble", f"{escaped(why)}. Nothing new is taken until that is over")
            return 0, error
        if self._importer.is_stuck:
            self._failed()
            return handled or 0, None
        if self._monotonic() >= self._calm_at or self._importer.filed > self._filed:
            self._succeeded()
        return handled or 0, None

    def _failed(self) -> None:
        self._back_off.failed()
        self._calm_at = self._monotonic() + self._back_off.left_s() + CALM_S
        self._filed = self._importer.filed

    def _succeeded(self) -> None:
        self._back_off.succeeded()
        self._notices.over("unfiled")
        if self._notices.over("trouble"):
            self._notices.tell("Importing goes on")

    def _wait(self, stop: threading.Event) -> None:
        """Until it is time for the next turn."""
        back_off_s = self._back_off.left_s()
        if back_off_s:
            stop.wait(back_off_s)
            return
        ends_at = self._monotonic() + self._importer.wait_s()
        while not stop.is_set():
            left_s = ends_at - self._monotonic()
            if left_s <= 0 or self._changes.wait(min(left_s, WAIT_STEP_S)):
                return
            if self._importer.has_answers:
                return

    def _tell_progress(self) -> None:
        now = self._monotonic()
        if now < self._next_progress:
            return
        self._next_progress = now + PROGRESS_S
        progress = self._importer.progress()
        if progress != self._told:
            self._told = progress
            self._on_progress(progress)


def _words_of(error: OSError) -> str:
    """Return the error as people read it: `/srv/inbox/.work: Read-only file system`."""
    if error.strerror is None or not isinstance(error.filename, str):
        return error.strerror or str(error)
    return f"{error.filename}: {error.strerror}"


logger = logging.getLogger("resumes.importer")

BEAT_S = 10.0
"""How often the row is written anew; and at once when the health changes."""


DEADLINE_S = 1.0


class Presence:
    """During the block the importer is announced; afterwards it is gone."""

    def __init__(
        self,
        store: Store,
        root: Path,
        importer: Importer,
        notices: Notices,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._root = root
        self._importer = importer
        self._notices = notices
        self._monotonic = monotonic
        self._id = importer.id
        self._started_at = timestamp(store.clock())
        self._due = monotonic()
        self._said: object = None

    def __enter__(self) -> Self:
        self.beat()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with contextlib.suppress(StoreError):
            importers.leave(self._store, self._id, deadline_s=DEADLINE_S)

    def beat(self) -> None:
        """The row says how the importer fares now, if it is time or that has changed."""
        if self._importer.stands_by:
            return  # nothing of the folder depends on this one
        findings = self._notices.findings()
        if findings == self._said and self._monotonic() < self._due:
            return
        self._due = self._monotonic() + BEAT_S
        self._said = findings
        row = importers.Importer(
            id=self._id,
            host=socket.gethostname(),
            pid=os.getpid(),
            root=escaped(str(self._root)),
            state=self._notices.state,
            findings=findings,
            waiting=self._importer.progress().waiting,
            started_at=self._started_at,
        )
        try:
            importers.announce(self._store, row, deadline_s=DEADLINE_S)
        except StoreError as error:
            # The turns say that the store is out of reach; this is no more than a sign of life,
            # and the next one says what this one would have.
            logger.info("Could not announce the importer: %s", error.message)


__all__ = ["FileReport", "Ignored", "Options", "Progress", "Summary", "watch"]

PRUNE_S = 60.0
FOLLOW_S = 2.0


def watch(
    store: Store,
    root: Path,
    options: Options,
    *,
    stop: threading.Event,
    on_file: Callable[[FileReport], None],
    on_notice: Callable[[str], None],
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_ignored: Callable[[Ignored], None] = lambda one: None,
) -> Summary:
    """Files dropped into ROOT become resumes, until `stop` is set, or with `once` until it is drained.

    Raises InvalidArgument when ROOT is no folder that can be written to, or belongs to another
    store; StoreError when the store cannot be read at first, and with `once` when it stays out of
    reach. `on_file` and `on_progress` are called from this thread, notices also from those of
    watchers and hooks; `on_ignored` with `dry_run` alone.
    """
    root = check_root(root)
    take_root(store, root, options)
    files.ignore_breaks()
    memory.collect_seldom()
    notices = Notices(on_notice)
    if options.dry_run:
        return rehearse(
            store, root, options, on_file=on_file, on_ignored=on_ignored, remark=notices
        )
    is_drained = True
    with contextlib.ExitStack() as stack:
        if options.on_import is not None:
            hook = Hook(options.on_import, root, on_notice=on_notice)
            stack.callback(hook.finish, stop)
            on_file = _both(hook.note, on_file)
        changes = Changes()
        importer = Importer(store, root, options, on_file=on_file, notices=notices, changes=changes)
        stack.callback(importer.close)
        if options.once:
            runner = Runner(
                importer, changes, notices, on_progress=on_progress, tuning=options.tuning
            )
            is_drained = runner.drain(stop)
            if options.done_keep_days is not None:
                while prune(root, options.done_keep_days, store.clock(), remark=notices):
                    pass
        else:
            watcher = stack.enter_context(Watcher(root, changes, notices, poll=options.poll))
            presence = stack.enter_context(Presence(store, root, importer, notices))
            beats = (
                _follower(watcher, importer),
                presence.beat,
                _pruner(store, root, options, importer, notices),
            )
            Runner(
                importer,
                changes,
                notices,
                on_progress=on_progress,
                beats=beats,
                tuning=options.tuning,
            ).run(stop)
        summary = importer.summary()
        if not is_drained:
            summary.stuck = max(1, summary.waiting)
        return summary


def _follower(watcher: Watcher, importer: Importer) -> Callable[[], None]:
    """Called often, it has the folders watched that are worth it: after each look through ROOT,
    when they change, and now and then while ROOT is out of reach."""
    seen: tuple[int, list[str]] = (-1, [])
    due = time.monotonic()

    def beat() -> None:
        nonlocal seen, due
        sees = (importer.looks, importer.folders)
        if seen != sees or time.monotonic() >= due:
            seen = sees
            due = time.monotonic() + FOLLOW_S
            watcher.follow(sees[1])

    return beat


def _both(
    first: Callable[[FileReport], None], second: Callable[[FileReport], None]
) -> Callable[[FileReport], None]:
    def call(report: FileReport) -> None:
        first(report)
        second(report)

    return call


def _pruner(
    store: Store, root: Path, options: Options, importer: Importer, notices: Notices
) -> Callable[[], None]:
    """Called often, it prunes done files now and then, if that was chosen."""
    keep_days = options.done_keep_days
    due = time.monotonic()

    def beat() -> None:
        nonlocal due
        if keep_days is not None and time.monotonic() >= due and not importer.stands_by:
            prune(root, keep_days, store.clock(), remark=notices)
            due = time.monotonic() + PRUNE_S

    return beat


def take_root(store: Store, root: Path, options: Options) -> None:
    """Have the folder belong to the store from now on; a dry run changes nothing.

    Raises InvalidArgument for the folder of another store, and StoreError.
    """
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
    """The folder's real path. Raises InvalidArgument unless it is a folder that can be written to."""
    shown = escaped(str(root))
    try:
        mode = root.stat().st_mode
    except FileNotFoundError:
        raise InvalidArgument(f"Folder not found: {shown}. Create it, or name another") from None
    except OSError as error:
        raise InvalidArgument(f"Cannot use {shown}: {error.strerror}") from None
    if not stat.S_ISDIR(mode):
        raise InvalidArgument(f"Not a folder: {shown}. Name the folder that the analyzer writes to")
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        raise InvalidArgument(
            f"Cannot write in {shown}: files are moved away from it once imported"
        )
    return root.resolve()
