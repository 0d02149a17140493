"""One of the system's watchers, and the thread that hears it.

A watcher is kept for as long as it serves: leaving it and entering it again loses what happens in
between. It can be lost for good all the same, with an error (a file name that is not UTF-8) or
without a word (its folder was replaced); then another is made, and everything looked at.
"""

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

import watchfiles

from importer.changes import Changes
from importer.scanning import is_outcome, is_passed_over

GROUPING_MS = 100
"""The longest that changes are collected for while more keep coming."""

STEP_MS = 40
"""How long it must be silent for changes to be passed on; an event costs about twice this. In
each step the watcher's thread wakes, which is what an idle watcher costs."""

Change = tuple[watchfiles.Change, str]
"""What happened, and the absolute path that it happened to."""


class Ending(Protocol):
    """Says whether to end; whoever asks is at work."""

    def is_set(self) -> bool:
        """Whether to end."""


class Source(Protocol):
    """Where changes come from.

    It yields groups of changes in the folders at the paths. It asks `ending` only once it hears,
    and then often, and ends when told to. What it raises says that it cannot go on.
    """

    def __call__(
        self, paths: Sequence[str], *, is_recursive: bool, ending: Ending
    ) -> Iterator[Collection[Change]]: ...


def native_events(
    paths: Sequence[str], *, is_recursive: bool, ending: Ending
) -> Iterator[Collection[Change]]:
    """The system's own events, as watchfiles passes them on."""
    return watchfiles.watch(
        *paths,
        watch_filter=None,
        debounce=GROUPING_MS,
        step=STEP_MS,
        stop_event=ending,
        rust_timeout=0,  # at each timeout it may throw away a change; the end is asked for anyway
        raise_interrupt=False,
        force_polling=False,  # nor by a variable of the environment: polling is our own scans
        recursive=is_recursive,
        ignore_permission_denied=False,  # it would ignore the limit of watches too
    )


class Listener:
    """A thread that hears a source and marks what changed. Daemon; ended by `end`."""

    def __init__(
        self,
        root: str,
        paths: Sequence[str],
        changes: Changes,
        *,
        is_recursive: bool,
        source: Source,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._paths = frozenset(paths)
        self._changes = changes
        self._is_recursive = is_recursive
        self._source = source
        self._monotonic = monotonic
        self._stop = threading.Event()
        self.alive_since_s: float | None = None
        """Since when it hears, on the monotonic clock; None before."""
        self.is_over = False
        """Whether it ended by itself, which is a failure."""
        self.error: Exception | None = None
        """What it failed of, if it said so."""
        self.is_outdated = False
        """Whether it must be made anew, for it watches what it should not or no longer can."""
        self._thread = threading.Thread(target=self._listen, name="watcher", daemon=True)
        self._thread.start()

    def is_set(self) -> bool:
        """Whether to end. The source asks, so it hears."""
        if self.alive_since_s is None:
            self.alive_since_s = self._monotonic()
            # What came while nobody heard is found by looking.
            self._changes.mark_all()
        return self._stop.is_set()

    def stop(self) -> None:
        """It ends soon."""
        self._stop.set()

    def end(self, timeout_s: float) -> None:
        """It has ended, or the time is over."""
        self.stop()
        self._thread.join(timeout_s)

    def _listen(self) -> None:
        paths = sorted(self._paths)
        try:
            for group in self._source(paths, is_recursive=self._is_recursive, ending=self):
                self._hear(group)
        except Exception as error:  # noqa: BLE001  (told by the one who makes it anew)
            self.error = error
        finally:
            if not self._stop.is_set():
                self.is_over = True
                self._changes.mark_all()

    def _hear(self, group: Collection[Change]) -> None:
        was_outdated = self.is_outdated
        names: set[str] = set()
        for kind, path in group:
            if kind is watchfiles.Change.deleted:
                # A number that a removed folder had is given to the next new one, so this is
                # how a folder made again is told from the one that was there.
                self.is_outdated |= path in self._paths
                continue
            if kind is watchfiles.Change.added and self._is_recursive and _is_folder(path):
                self.is_outdated |= find_obstacle(path) is not None
            if (name := self._find_name(path)) is not None:
                names.add(name)
        if self.is_outdated and not was_outdated:
            self._changes.mark_all()
        for name in names:
            self._changes.mark(name)

    def _find_name(self, path: str) -> str | None:
        """The part of the inbox that the path is in; None for what is never imported."""
        if path == self._root:
            return ""
        first, slash, rest = path.removeprefix(f"{self._root}/").partition("/")
        if is_outcome(first) or is_passed_over(rest.rpartition("/")[2] or first):
            return None
        return first if slash or _is_folder(path) else ""


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path, follow_symlinks=False).st_mode)  # noqa: PTH116  (text, as events are)
    except OSError:
        return False


def find_obstacle(folder: str) -> str | None:
    """Why a recursive watcher is not to be let loose on the folder; None when it may be.

    It goes through links wherever they lead, and one folder that it may not list ends it.
    """
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        return "it has links in it"
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except PermissionError:
            return "it has a folder in it that may not be listed"
        except OSError:
            continue  # gone again
    return None


def find_limit(error: Exception | None) -> str | None:
    """The system's limit that the error is about, as sysctl names it; None for other errors."""
    number = getattr(error, "errno", None)
    # watchfiles passes on the text alone.
    if number == errno.ENOSPC or "watch limit reached" in str(error):
        return "fs.inotify.max_user_watches"
    if number in (errno.EMFILE, errno.ENFILE) or "Too many open files" in str(error):
        return "fs.inotify.max_user_instances"
    return None
