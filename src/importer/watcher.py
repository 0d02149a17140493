"""The watcher: events from the system show which parts of the inbox to scan.

Events are hints: some get lost, and scans find every file without them. There are two listeners:
one for ROOT itself, with its own files and new folders, and one for all account folders and their
subfolders. A listener for all of ROOT would mostly receive events about this importer's own moves
into `_done` and similar folders. Without events from the system, there are only scans.
"""

import contextlib
import errno
import logging
import math
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Self

from watchfiles import Change, watch

from importer.files import escaped
from importer.notices import Notices
from resumes.filesystems import OF_A_HOST, SHARED, find_kind
from resumes.store.importers import ImporterFinding, ImporterState
from resumes.text import counted
from resumes.watched_names import is_hidden_or_temporary, is_outcome, may_be_folder

logger = logging.getLogger("resumes.importer")

MIN_LIFETIME_S = 1.0
"""The minimum lifetime of a listener while the folders keep changing."""
PROVEN_S = 10.0
"""How long a listener must work before the failure of the previous one counts as solved."""
MAX_LIFETIME_S = 600.0
"""The maximum lifetime of a listener. A listener may lose a folder without an error: on an overflow
of events, at the limit of watches, or when a disk is removed and reattached."""
LOCAL_FUSE = frozenset(
    {"fuse.fuse-overlayfs", "fuse.ntfs-3g", "fuse.ntfs", "fuse.exfat", "fuse.ext2", "fuse.fuse2fs"}
)
"""FUSE file systems on a local disk that no other machine writes to. Other FUSE file systems are
polled: it is better to find a file a second late than not at all."""
EVERYTHING = "/"
"""Marks every part of the inbox; no folder can have this name."""


class Changes:
    """The parts of ROOT to scan: names of account folders, `""` for ROOT's own files, or
    `EVERYTHING`. Any thread may call `mark`, but only one thread may call `wait` and `take`."""

    def __init__(self) -> None:
        self._marked: SimpleQueue[str] = SimpleQueue()
        self._is_due = threading.Event()

    def mark(self, *names: str) -> None:
        """Mark these parts, and end the current or next `wait`."""
        for name in names:
            self._marked.put(name)
        self._is_due.set()

    def take(self) -> set[str]:
        """Return and unmark the marked parts."""
        self._is_due.clear()
        return {self._marked.get() for _ in range(self._marked.qsize())}

    def wait(self, timeout_s: float) -> bool:
        """Wait for a `mark` since the last `wait` or `take`; return whether there was one."""
        is_due = self._is_due.wait(timeout_s)
        self._is_due.clear()
        return is_due


Events = Iterator[Collection[tuple[int, str]]]
"""Groups of events, each a `watchfiles.Change` and an absolute path. The first group may be empty,
and means that listening has begun."""
Source = Callable[[Collection[str], bool, threading.Event], Events]
"""Yields the events in the folders at the paths, and below them if `is_recursive`, until the
`threading.Event` is set. An exception means that no more events can be received."""


def native_events(paths: Collection[str], is_recursive: bool, stop: threading.Event) -> Events:
    """Yield the system's own events. After a second without events, yield an empty group, which
    also means that listening has begun."""
    # A group ends after 40 ms of silence or 100 ms in total; shorter steps use more CPU when idle.
    return watch(
        *paths,
        watch_filter=None,
        debounce=100,
        step=40,
        stop_event=stop,
        rust_timeout=1_000,
        yield_on_timeout=True,
        debug=False,
        raise_interrupt=False,
        force_polling=False,
        recursive=is_recursive,
        ignore_permission_denied=False,  # True would ignore the limit of watches too
    )


def polling_reason(path: Path, mountinfo: str | None = None) -> str | None:
    """Return why events at the path are unreliable, or None if they are reliable or this is
    unknown. The reason ends a sentence about the path: "it is on nfs4, a network …"."""
    kind = find_kind(path, mountinfo)
    if kind is None:
        return None
    if nature := SHARED.get(kind):
        others = "the host" if nature == OF_A_HOST else "other machines"
        why = f"{nature}, and changes by {others} are not reported"
    elif kind.partition(".")[0] == "fuse" and kind not in LOCAL_FUSE:
        why = "a user-space file system, and not all of those report changes"
    else:
        return None
    return f"it is on {escaped(kind)}, {why}"


def get_identity(folder: str) -> tuple[int, int]:
    """Return the device and inode numbers of a folder. Raises OSError for anything else."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return found.st_dev, found.st_ino


def explain(error: BaseException) -> ImporterFinding:
    """Return the finding for a listener's error. Errors of the same kind have the same finding."""
    number, text = getattr(error, "errno", None), str(error)
    # watchfiles passes on some of the system's errors only as text.
    if number == errno.ENOSPC or "watch limit reached" in text:
        limit = "fs.inotify.max_user_watches"
    elif number in (errno.EMFILE, errno.ENFILE) or "Too many open files" in text:
        limit = "fs.inotify.max_user_instances"
    else:
        is_name = "Unable to decode path" in text
        why = "at a file name that is not UTF-8" if is_name else f"({type(error).__name__})"
        return ImporterFinding(
            "watcher",
            ImporterState.DEGRADED,
            f"The system's file watcher stopped {why} and is being restarted. Until then, new files are "
            "found by scans, with a short delay",
        )
    value = ""
    with contextlib.suppress(OSError):
        value = f", now {Path('/proc/sys', *limit.split('.')).read_text().strip()}"
    return ImporterFinding(
        "watcher",
        ImporterState.POLLING,
        f"The system's limit on file watches was reached ({limit}{value}), so new files are found by "
        "scans, with a short delay. Raise the limit with sysctl",
    )


@dataclass(eq=False)
class Listener:
    """An attempt to listen to folders, in its own thread. Times are monotonic, in seconds."""

    is_recursive: bool
    """Whether it also listens to subfolders."""
    root: str = ""
    folders: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The folders by path, with their identities."""
    polled: Mapping[str, str] = field(default_factory=dict)
    """The folders that only scans cover, each with the reason."""
    failures: int = 0
    """How many attempts in a row failed, and the last failure, until one works for `PROVEN_S`."""
    failure: ImporterFinding | None = None
    began_s: float = -math.inf
    renewal_s: float = math.inf
    """The time of the next attempt, even if the folders have not changed."""
    since_s: float = math.inf
    """The time at which listening began, or infinity if it has not begun yet."""
    stop: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    error: BaseException | None = None
    """The error that stopped the listener."""
    is_outdated: bool = False
    """Whether it listens to a folder that is gone or whose events are no longer reliable."""

    def end(self) -> None:
        """Stop listening. Wait for the thread, but at most half a second."""
        self.stop.set()
        if self.thread is not None:
            self.thread.join(0.5)


class Watcher:
    """Marks the changes below ROOT that the system reports. Use it from one thread only.

    The watcher is a context manager: on entry it starts to listen to ROOT, and on exit it stops
    within a second. With `poll`, there are only scans. `why_polled` returns why a folder needs
    scans, or None.
    """

    def __init__(
        self,
        root: Path,
        changes: Changes,
        notices: Notices,
        *,
        poll: bool = False,
        source: Source = native_events,
        why_polled: Callable[[Path], str | None] = polling_reason,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._changes = changes
        self._notices = notices
        self._source = source
        self._why_polled = (lambda _: "polling was requested") if poll else why_polled
        self._monotonic = monotonic
        self._of_root = Listener(is_recursive=False)
        self._of_inboxes = Listener(is_recursive=True)

    def __enter__(self) -> Self:
        self.follow(())
        return self

    def __exit__(self, *_: object) -> None:
        self._of_root.end()
        self._of_inboxes.end()

    def follow(self, names: Iterable[str]) -> None:
        """Listen to ROOT and to the account folders with these names, immediately or after a pause.

        Call this after each scan of ROOT, without names if the scan failed, and also repeatedly:
        only this method notices failures and replaces listeners. New listeners mark everything.
        """
        root = os.path.realpath(self._root)
        own: dict[str, tuple[int, int]] = {}
        missing = ""
        try:
            own[root] = get_identity(root)
        except OSError as error:
            missing = (
                f'The watched folder "{escaped(str(self._root))}" is not available '
                f"({error.strerror}). Nothing will be imported until it is back"
            )
        self._notices.find("root", missing)
        self._of_root = self._listen(self._of_root, root, own)
        inboxes: dict[str, tuple[int, int]] = {}
        for name in names if not self._of_root.polled else ():
            with contextlib.suppress(OSError):
                inboxes[f"{root}/{name}"] = get_identity(f"{root}/{name}")
        self._of_inboxes = self._listen(self._of_inboxes, root, inboxes)
        self._tell()

    def _listen(
        self, listener: Listener, root: str, folders: Mapping[str, tuple[int, int]]
    ) -> Listener:
        """Return the listener, or a new one if it failed or is outdated."""
        now_s = self._monotonic()
        if listener.error is not None:
            self._fail(listener, listener.error, now_s)
        elif now_s >= listener.since_s + PROVEN_S:
            listener.failures, listener.failure = 0, None
        is_other = folders != listener.folders or listener.is_outdated
        if now_s < (listener.began_s + MIN_LIFETIME_S if is_other else listener.renewal_s):
            return listener
        listener.end()
        polled = {path: why for path in folders if (why := self._find_obstacle(path, listener))}
        new = Listener(
            listener.is_recursive,
            root,
            folders,
            polled,
            began_s=now_s,
            renewal_s=now_s + MAX_LIFETIME_S,
        )
        if paths := folders.keys() - polled.keys():
            new.failures, new.failure = listener.failures, listener.failure
            new.thread = threading.Thread(
                target=self._run, args=(new, paths), name="watcher", daemon=True
            )
            new.thread.start()
        return new

    def _find_obstacle(self, folder: str, listener: Listener) -> str | None:
        """Return why only scans cover the folder, or None if events also cover it."""
        try:
            folder.encode()
        except UnicodeEncodeError:
            return "its name is not UTF-8"
        is_mount = not listener.is_recursive or os.path.ismount(folder)
        if is_mount and (why := self._why_polled(Path(folder))):
            return why
        # A recursive listener would follow links out of the folder, and fail at unreadable folders.
        waiting = [folder] if listener.is_recursive else []
        while waiting:
            try:
                with os.scandir(waiting.pop()) as entries:
                    for entry in entries:
                        if entry.is_symlink():
                            return "it contains symbolic links"
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
            except PermissionError:
                return "it contains a folder that cannot be listed"
            except OSError:
                continue  # the folder no longer exists
        return None

    def _fail(self, listener: Listener, error: BaseException, now_s: float) -> None:
        listener.failures += 1
        failure = explain(error)
        # On the first failure, the cause may be that a folder was removed during the attempt.
        is_passing = listener.failures == 1 and isinstance(error, FileNotFoundError)
        if failure != listener.failure and not is_passing:
            if failure.state is ImporterState.DEGRADED:  # other notices contain the details
                logger.info("The system's watcher failed", exc_info=error)
            listener.failure = failure
        # The pauses are 0, 1, 2, 4 … 60 s, since the cause of a single failure is usually
        # temporary. A limit remains until the operator raises it.
        is_limit = failure.state is ImporterState.POLLING
        pause_s = 300 if is_limit else min(2**listener.failures // 4, 60)
        listener.renewal_s = now_s + pause_s
        listener.began_s = listener.renewal_s - MIN_LIFETIME_S
        listener.since_s, listener.error = math.inf, None

    def _run(self, listener: Listener, paths: Collection[str]) -> None:
        error: BaseException = EOFError()
        try:
            for group in self._source(paths, listener.is_recursive, listener.stop):
                if math.isinf(listener.since_s):
                    listener.since_s = self._monotonic()
                    self._changes.mark(EVERYTHING)  # a scan finds earlier changes
                self._mark(group, listener, paths)
        except BaseException as raised:  # noqa: BLE001  (a panic in Rust is not an Exception)
            error = raised
        if not listener.stop.is_set():
            listener.error = error
            self._changes.mark(EVERYTHING)

    def _mark(
        self, group: Collection[tuple[int, str]], listener: Listener, paths: Collection[str]
    ) -> None:
        names: set[str] = set()
        below = len(listener.root) + 1
        for kind, path in group:
            if kind == Change.deleted:
                # Comparing identities is not enough: inode numbers of removed folders are reused.
                listener.is_outdated |= path in paths
                continue
            inbox, _, inner = path[below:].partition("/")
            name = (inner or inbox).rpartition("/")[2]
            # On a busy machine, a system call takes 0.2 ms: in a burst of files, events would
            # arrive faster than they are handled, and fill the memory.
            is_folder = may_be_folder(name) and os.path.isdir(path) and not os.path.islink(path)  # noqa: PTH112, PTH114
            if kind == Change.added and listener.is_recursive and is_folder:
                listener.is_outdated |= self._find_obstacle(path, listener) is not None
            if not inbox:
                names.add("")
            elif not is_outcome(inbox) and not is_hidden_or_temporary(name):
                names.add(inbox if is_folder or inner else "")
        if listener.is_outdated:
            names.add(EVERYTHING)
        if names:
            self._changes.mark(*names)

    def _tell(self) -> None:
        listeners = (self._of_root, self._of_inboxes)
        if failures := [listener.failure for listener in listeners if listener.failure]:
            worst = max(failures, key=lambda failure: failure.state is ImporterState.DEGRADED)
            self._notices.find(worst.key, worst.sentence, worst.state)
        else:
            self._notices.find("watcher", "")
        polled = {**self._of_root.polled, **self._of_inboxes.polled}
        shown = [f'"{escaped(path)}" ({why})' for path, why in sorted(polled.items())[:3]]
        more = f" and {counted(len(polled) - 3, 'more folder')}" if len(polled) > 3 else ""
        text = f"New files are found only by scans, with a short delay, in {', '.join(shown)}{more}"
        self._notices.find("polling", text if polled else "", ImporterState.POLLING)
