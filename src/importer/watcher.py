"""Hearing of changes soon, and knowing whether that works.

Events only say "look": some are lost, and scans find everything. Two watchers hear them: one on
ROOT alone, for its own files and the folders that appear, and one on all account folders with
what is below. So our own moves into `_done` and its like are not heard; over the whole of ROOT
they would be most of what is. Where events do not come there is no watcher, and scans do alone.
"""

import contextlib
import errno
import logging
import math
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import watchfiles

from importer.files import escaped
from importer.notices import Notices
from resumes.file_names import is_outcome, is_passed_over
from resumes.mounts import SHARED, find_kind
from resumes.store.importers import State


@dataclass(frozen=True, slots=True)
class Marked:
    """What was marked. A part is named by an account folder, or is ROOT's own files: `""`."""

    names: frozenset[str]
    is_all: bool

    def __contains__(self, name: str) -> bool:
        return self.is_all or name in self.names

    def __bool__(self) -> bool:
        return self.is_all or bool(self.names)


class Changes:
    """Marks for one inbox. Any thread may call anything; one thread takes.

    The lock is reentrant, so that a signal's handler may call `wake` in the thread that waits.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.RLock())
        self._names: set[str] = set()
        self._is_all = False
        self._is_woken = False

    def mark(self, name: str) -> None:
        """The part is looked at next: an account folder's name, or `""` for ROOT's own files."""
        with self._condition:
            self._names.add(name)
            self._condition.notify_all()

    def mark_all(self) -> None:
        """Everything is looked at next."""
        with self._condition:
            self._is_all = True
            self._condition.notify_all()

    def take(self) -> Marked:
        """What was marked since it was last taken; nothing is marked any more."""
        with self._condition:
            marked = Marked(frozenset(self._names), self._is_all)
            self._names.clear()
            self._is_all = False
            return marked

    def wait(self, timeout_s: float) -> bool:
        """Something is marked, somebody woke the wait, or the time is over: the first of these.

        Says whether anything is marked; it stays so until it is taken.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._is_woken or self._is_marked, timeout_s)
            self._is_woken = False
            return self._is_marked

    def wake(self) -> None:
        """The wait ends with nothing marked; without one, the next ends at once."""
        with self._condition:
            self._is_woken = True
            self._condition.notify_all()

    @property
    def _is_marked(self) -> bool:
        return self._is_all or bool(self._names)


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


USER_SPACE = "a file system in user space, and not all of those announce what is written"

LOCAL_FUSE = frozenset(
    {"fuse.fuse-overlayfs", "fuse.ntfs-3g", "fuse.ntfs", "fuse.exfat", "fuse.ext2", "fuse.fuse2fs"}
)
"""In user space, but on a disk of this machine that nobody else writes to. Of the rest nobody
knows; when in doubt, a file that is found a second later harms less than one that is not."""


def polling_reason(
    path: Path, mountinfo: str | None = None, *, platform: str = sys.platform
) -> str | None:
    """Why the system's events are not to be relied on at the path; None when they are.

    The reason is the end of a sentence about the path: "it lies on nfs4, a network …". None also
    where the kind of file system cannot be found out (`find_kind`).
    """
    kind = find_kind(path, mountinfo, platform=platform)
    why = None if kind is None else _why_polled(kind)
    return None if kind is None or why is None else f"it lies on {escaped(kind)}, {why}"


def _why_polled(kind: str) -> str | None:
    if sharing := SHARED.get(kind):
        return f"{sharing.nature}, and what {sharing.others} there is not announced"
    is_unknown_fuse = kind == "fuse" or (kind.startswith("fuse.") and kind not in LOCAL_FUSE)
    return USER_SPACE if is_unknown_fuse else None


logger = logging.getLogger("resumes.importer")

LONGEST_PAUSE_S = 60.0
"""Between a listener that failed and the next: none at first, then 1 s, twice as long each time."""

LIMIT_PAUSE_S = 300.0
"""After a limit of the system, which only people raise."""

PROVEN_S = 10.0
"""How long one must have heard for its forerunner's failure to be over."""

ANEW_S = 1.0
"""The shortest between two that did not fail, when the folders keep changing."""

RENEW_S = 600.0
"""After this long one is made anew although it seems to serve. It may have lost a folder without
a word: when events overflow, at the limit of watches, when a disk was taken away and put back."""

END_S = 0.5
"""How long the end of a listener is waited for."""

SYSCTLS = Path("/proc/sys")

Identity = tuple[int, int]
"""A folder's device and number."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why there is no listener that serves."""

    state: State
    sentence: str


class Keeper:
    """Keeps a listener on the folders that are asked for. For one thread."""

    def __init__(
        self,
        listen: Callable[[Sequence[str]], Listener],
        find_obstacle: Callable[[str], str | None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listen = listen
        self._find_obstacle = find_obstacle
        self._monotonic = monotonic
        self._listener: Listener | None = None
        self._kept: Mapping[str, Identity] = {}
        self._failures = 0
        self._earliest_s = -math.inf
        self._renewal_s = math.inf
        self.unheard: Mapping[str, str] = {}
        """The folders that are left to scans, each with the reason."""
        self.trouble: Trouble | None = None
        """What the listener failed of, until another has proven itself."""

    def keep(self, wanted: Mapping[str, Identity]) -> None:
        """A listener is on the wanted folders, by path, or will be after a pause.

        To be called again and again: it is here that a failure is seen.
        """
        now_s = self._monotonic()
        if self._listener is not None:
            self._judge(self._listener, now_s)
        if now_s >= self._earliest_s and self._must_begin(wanted, now_s):
            self._begin(wanted, now_s)

    def end(self) -> None:
        """There is no listener."""
        if self._listener is not None:
            self._listener.end(END_S)
            self._listener = None

    def stop(self) -> None:
        """The listener ends soon."""
        if self._listener is not None:
            self._listener.stop()

    def _judge(self, listener: Listener, now_s: float) -> None:
        if listener.is_over:
            self._failed(listener.error, now_s)
        elif listener.alive_since_s is not None and now_s - listener.alive_since_s >= PROVEN_S:
            self._failures = 0
            self.trouble = None

    def _must_begin(self, wanted: Mapping[str, Identity], now_s: float) -> bool:
        is_outdated = self._listener is not None and self._listener.is_outdated
        has_failed = self._failures > 0 and self._listener is None
        return wanted != self._kept or is_outdated or has_failed or now_s >= self._renewal_s

    def _begin(self, wanted: Mapping[str, Identity], now_s: float) -> None:
        self.end()
        self._kept = wanted
        self._earliest_s = now_s + ANEW_S
        self._renewal_s = now_s + RENEW_S
        obstacles = {path: self._find_obstacle(path) for path in wanted}
        self.unheard = {path: why for path, why in obstacles.items() if why is not None}
        paths = [path for path in wanted if path not in self.unheard]
        if paths:
            self._listener = self._listen(paths)
        else:
            self._failures = 0
            self.trouble = None

    def _failed(self, error: Exception | None, now_s: float) -> None:
        self.end()
        self._failures += 1
        trouble = trouble_of(error)
        # The first time, a folder went away while the listener was made.
        if trouble != self.trouble and not (
            self._failures == 1 and isinstance(error, FileNotFoundError)
        ):
            logger.info("The system's watcher failed", exc_info=error)
            self.trouble = trouble
        self._earliest_s = now_s + self._pause_s(error)

    def _pause_s(self, error: Exception | None) -> float:
        if find_limit(error) is not None:
            return LIMIT_PAUSE_S
        # A single failure has a passing cause more often than not.
        return 0.0 if self._failures == 1 else min(2.0 ** (self._failures - 2), LONGEST_PAUSE_S)


def trouble_of(error: Exception | None) -> Trouble:
    """What a listener's failure means; the sentence is the same for each of its kind."""
    limit = find_limit(error)
    if limit is not None:
        return Trouble(
            State.POLLING,
            f"The system makes no more watchers (limit {limit}{_value_of(limit)}), so new files "
            "are found by scans, a little later. Raise that limit with sysctl",
        )
    if "Unable to decode path" in str(error):
        why = "over a file name that is not UTF-8"
    else:
        why = f"({type(error).__name__})" if error is not None else "by itself"
    return Trouble(
        State.DEGRADED,
        f"The system's watcher ended {why} and is made anew; meanwhile new files are found by "
        "scans, a little later",
    )


def _value_of(limit: str) -> str:
    try:
        return f", now {(SYSCTLS / limit.replace('.', '/')).read_text().strip()}"
    except OSError:
        return ""


SHOWN = 3
"""How many folders a sentence names."""


class Watcher:
    """Marks what changes below ROOT, as far as the system says so. For one thread."""

    def __init__(
        self,
        root: Path,
        changes: Changes,
        notices: Notices,
        *,
        poll: bool,
        source: Source,
        why_polled: Callable[[Path], str | None],
        monotonic: Callable[[], float],
    ) -> None:
        self._root = root
        self._changes = changes
        self._notices = notices
        self._poll = poll
        self._source = source
        self._why_polled = why_polled
        self._monotonic = monotonic
        self._own = Keeper(self._listen_to_root, self._find_root_obstacle, monotonic=monotonic)
        self._inboxes = Keeper(
            self._listen_to_inboxes, self._find_inbox_obstacle, monotonic=monotonic
        )

    @property
    def is_polling(self) -> bool:
        """Whether some part of the inbox is left to scans for a reason that may last."""
        return bool(self._own.unheard or self._inboxes.unheard) or any(
            trouble.state is State.POLLING for trouble in self._troubles()
        )

    def follow(self, folders: Iterable[str]) -> None:
        """These are the account folders now, by name; they and ROOT are watched.

        To be called after each look through ROOT, also after one that failed, then without
        names. Watchers that fail, or whose folders were replaced, are made anew only here. When
        a new one hears, everything is marked.
        """
        root = os.path.realpath(self._root)
        try:
            identity = _get_identity(root)
        except OSError as error:
            self._notices.find("root", State.DEGRADED, self._unreachable(error))
            self._own.keep({})
            self._inboxes.keep({})
        else:
            self._notices.clear("root")
            self._own.keep({root: identity})
            self._inboxes.keep({} if self._own.unheard else _find_identities(root, folders))
        worst = max(self._troubles(), key=lambda one: one.state is State.DEGRADED, default=None)
        self._say("watcher", worst)
        self._say("polling", self._find_polled())

    def end(self) -> None:
        """Nothing is marked any more. Takes a second at most."""
        for keeper in (self._own, self._inboxes):
            keeper.stop()
        for keeper in (self._own, self._inboxes):
            keeper.end()

    def _listen_to_root(self, paths: Sequence[str]) -> Listener:
        return self._listen(paths[0], paths, is_recursive=False)

    def _listen_to_inboxes(self, paths: Sequence[str]) -> Listener:
        return self._listen(os.path.dirname(paths[0]), paths, is_recursive=True)  # noqa: PTH120  (text, as names are)

    def _listen(self, root: str, paths: Sequence[str], *, is_recursive: bool) -> Listener:
        return Listener(
            root,
            paths,
            self._changes,
            is_recursive=is_recursive,
            source=self._source,
            monotonic=self._monotonic,
        )

    def _find_root_obstacle(self, root: str) -> str | None:
        if self._poll:
            return "polling was asked for"
        return _find_name_obstacle(root) or self._why_polled(Path(root))

    def _find_inbox_obstacle(self, folder: str) -> str | None:
        return (
            _find_name_obstacle(folder)
            or (self._why_polled(Path(folder)) if os.path.ismount(folder) else None)
            or find_obstacle(folder)
        )

    def _troubles(self) -> list[Trouble]:
        return [keeper.trouble for keeper in (self._own, self._inboxes) if keeper.trouble]

    def _find_polled(self) -> Trouble | None:
        unheard = {**self._own.unheard, **self._inboxes.unheard}
        if not unheard:
            return None
        shown = [f'"{escaped(path)}" ({why})' for path, why in sorted(unheard.items())[:SHOWN]]
        more = len(unheard) - len(shown)
        return Trouble(
            State.POLLING,
            f"New files are found by scans alone, a little later, in {', '.join(shown)}"
            + (f" and {more} more folders" if more else ""),
        )

    def _say(self, key: str, trouble: Trouble | None) -> None:
        if trouble is None:
            self._notices.clear(key)
        else:
            self._notices.find(key, trouble.state, trouble.sentence)

    def _unreachable(self, error: OSError) -> str:
        return (
            f'The watched folder "{escaped(str(self._root))}" cannot be reached '
            f"({error.strerror}). Nothing is imported until it is there again"
        )


@contextlib.contextmanager
def watching(
    root: Path,
    changes: Changes,
    notices: Notices,
    *,
    poll: bool = False,
    source: Source = native_events,
    why_polled: Callable[[Path], str | None] = polling_reason,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[Watcher]:
    """During the block what changes is marked soon; ROOT itself from the beginning.

    With `poll` nothing is, and the health says so. `why_polled` says of a folder why its file
    system announces no changes, or None.
    """
    watcher = Watcher(
        root,
        changes,
        notices,
        poll=poll,
        source=source,
        why_polled=why_polled,
        monotonic=monotonic,
    )
    try:
        watcher.follow(())
        yield watcher
    finally:
        watcher.end()


def _get_identity(folder: str) -> Identity:
    """Raises OSError for what is no folder."""
    found = os.stat(folder, follow_symlinks=False)  # noqa: PTH116  (text, as names are)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return found.st_dev, found.st_ino


def _find_identities(root: str, names: Iterable[str]) -> Mapping[str, Identity]:
    """Of the folders that are there, by path."""
    found: dict[str, Identity] = {}
    for name in names:
        path = f"{root}/{name}"
        with contextlib.suppress(OSError):
            found[path] = _get_identity(path)
    return found


def _find_name_obstacle(path: str) -> str | None:
    try:
        path.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    return None
