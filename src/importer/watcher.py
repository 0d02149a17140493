"""The watcher: the system's events show which parts of the inbox to scan.

Events are hints: some get lost, and scans find every file without them. There are two listeners:
one on ROOT itself, for its own files and for new folders, and one on all account folders and the
folders below. A listener on all of ROOT would mostly get events of our own moves into `_done` and
the like. Where the system sends no events, there is no listener, and only scans find new files.
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
"""The minimum lifetime of a listener when the folders keep changing."""
PROVEN_S = 10.0
"""How long a listener must work before the failure of the previous one counts as over."""
MAX_LIFETIME_S = 600.0
"""The maximum lifetime of a listener. It may lose a folder without an error: when events overflow,
at the limit of watches, or when a disk is removed and put back."""
LOCAL_FUSE = frozenset(
    {"fuse.fuse-overlayfs", "fuse.ntfs-3g", "fuse.ntfs", "fuse.exfat", "fuse.ext2", "fuse.fuse2fs"}
)
"""FUSE file systems on a local disk that no other machine writes to. Others are polled: finding a file
a second late does less harm than not finding it."""
EVERYTHING = "/"
"""Marks every part of the inbox; no folder has such a name."""


class Changes:
    """The parts of ROOT to scan: names of account folders, `""` for ROOT's own files, or `EVERYTHING`.
    Any thread may call `mark`, but only one may call `wait` and `take`."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._marked: set[str] = set()
        self._is_due = False

    def mark(self, *names: str) -> None:
        """Mark these parts, and end the current wait, or else the next one immediately."""
        with self._condition:
            self._marked.update(names)
            self._is_due = True
            self._condition.notify_all()

    def take(self) -> set[str]:
        """Return the marked parts, and unmark them."""
        with self._condition:
            marked, self._marked, self._is_due = self._marked, set(), False
            return marked

    def wait(self, timeout_s: float) -> bool:
        """Wait until `mark` is called, unless it was since the last `wait` or `take`; return whether it was."""
        with self._condition:
            is_due = self._condition.wait_for(lambda: self._is_due, timeout_s)
            self._is_due = False
            return is_due


Events = Iterator[Collection[tuple[int, str]]]
"""Groups of events, each a `watchfiles.Change` and an absolute path. The first group may be empty, and
tells that the listening has begun."""
Source = Callable[[Collection[str], bool, threading.Event], Events]
"""Yields the events in the folders at the paths, and below them if `is_recursive`, until the
`threading.Event` is set. An exception means that it cannot continue."""


def native_events(paths: Collection[str], is_recursive: bool, stop: threading.Event) -> Events:
    """Yield the system's own events; an empty group when there were none for a second, which also tells
    that the listening has begun."""
    # A group ends after 40 ms of silence or 100 ms in all; shorter steps cost an idle process more.
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
    """Return why events at the path are unreliable; None if they are reliable, or that is unknown. The
    reason ends a sentence about the path: "it is on nfs4, a network …"."""
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
    """Return the finding for a listener's error; errors of one kind have the same finding."""
    number, text = getattr(error, "errno", None), str(error)
    # watchfiles passes some of the system's errors on only as text.
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
class Attempt:
    """An attempt to listen, shared with its thread. Times are seconds on the monotonic clock."""

    root: str = ""
    folders: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The folders by path, with their identities; `paths` are those of which there are events."""
    paths: Collection[str] = ()
    not_before_s: float = -math.inf
    """When the next attempt may begin, if the folders have changed, and when it is due anyway."""
    renewal_s: float = math.inf
    since_s: float = math.inf
    """When the listening began; infinite before."""
    stop: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    error: BaseException | None = None
    """The error that ended it."""
    is_outdated: bool = False
    """Whether it listens to a folder that is gone, or whose events are no longer reliable."""

    def end(self) -> None:
        """Stop listening; wait for the thread, but at most half a second."""
        self.stop.set()
        if self.thread is not None:
            self.thread.join(0.5)


class Listener:
    """Marks changes in a set of folders, in a thread that is replaced when it fails."""

    def __init__(
        self,
        changes: Changes,
        source: Source,
        why_polled: Callable[[Path], str | None],
        monotonic: Callable[[], float],
        *,
        is_recursive: bool,
    ) -> None:
        self._changes = changes
        self._source = source
        self._why_polled = why_polled
        self._monotonic = monotonic
        self._is_recursive = is_recursive
        self._failures = 0
        self.attempt = Attempt()
        self.failure: ImporterFinding | None = None
        """Why the last attempt failed, until a later one has worked for `PROVEN_S`."""
        self.polled: Mapping[str, str] = {}
        """The paths of folders that only scans cover, each with the reason."""

    def listen(self, root: str, folders: Mapping[str, tuple[int, int]]) -> None:
        """Listen to the folders, by path, immediately or after a pause. Call it repeatedly, since only it
        notices failures."""
        now_s, attempt = self._monotonic(), self.attempt
        if attempt.error is not None:
            self._fail(attempt, attempt.error, now_s)
        elif now_s >= attempt.since_s + PROVEN_S:
            self._failures, self.failure = 0, None
        is_due = folders != attempt.folders or attempt.is_outdated or now_s >= attempt.renewal_s
        if is_due and now_s >= attempt.not_before_s:
            self._begin(root, folders, now_s)

    def _begin(self, root: str, folders: Mapping[str, tuple[int, int]], now_s: float) -> None:
        self.attempt.end()
        self.polled = {path: why for path in folders if (why := self._find_obstacle(path))}
        paths = folders.keys() - self.polled.keys()
        attempt = Attempt(root, folders, paths, now_s + MIN_LIFETIME_S, now_s + MAX_LIFETIME_S)
        self.attempt = attempt
        if paths:
            attempt.thread = threading.Thread(
                target=self._run, args=(attempt,), name="watcher", daemon=True
            )
            attempt.thread.start()
        else:
            self._failures, self.failure = 0, None

    def _find_obstacle(self, folder: str) -> str | None:
        """Return why only scans cover the folder; None if events do too."""
        try:
            folder.encode()
        except UnicodeEncodeError:
            return "its name is not UTF-8"
        is_mount = not self._is_recursive or os.path.ismount(folder)
        if is_mount and (why := self._why_polled(Path(folder))):
            return why
        # Recursive listening would follow links out of the folder, and fail at unreadable folders.
        waiting = [folder] if self._is_recursive else []
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
                continue  # it is gone already
        return None

    def _fail(self, attempt: Attempt, error: BaseException, now_s: float) -> None:
        attempt.end()
        self._failures += 1
        failure = explain(error)
        # At the first failure, a folder may have been removed while the attempt began.
        is_passing = self._failures == 1 and isinstance(error, FileNotFoundError)
        if failure != self.failure and not is_passing:
            if failure.state is ImporterState.DEGRADED:  # other notices say everything
                logger.info("The system's watcher failed", exc_info=error)
            self.failure = failure
        # 0, 1, 2, 4 … 60 s, since a single failure usually has a passing cause. A limit stays until the
        # operator raises it.
        pause_s = 300 if failure.state is ImporterState.POLLING else min(2**self._failures // 4, 60)
        again_s = now_s + pause_s
        self.attempt = Attempt(attempt.root, attempt.folders, (), again_s, again_s)

    def _run(self, attempt: Attempt) -> None:
        error: BaseException = EOFError()
        try:
            for group in self._source(attempt.paths, self._is_recursive, attempt.stop):
                if math.isinf(attempt.since_s):
                    attempt.since_s = self._monotonic()
                    self._changes.mark(EVERYTHING)  # a scan finds earlier changes
                self._mark(group, attempt)
        except BaseException as raised:  # noqa: BLE001  (a panic in Rust is not an Exception)
            error = raised
        if not attempt.stop.is_set():
            attempt.error = error
            self._changes.mark(EVERYTHING)

    def _mark(self, group: Collection[tuple[int, str]], attempt: Attempt) -> None:
        names: set[str] = set()
        below = len(attempt.root) + 1
        for kind, path in group:
            if kind == Change.deleted:
                # A new folder may get the inode number of the removed one, so comparing identities is
                # not enough.
                attempt.is_outdated |= path in attempt.paths
                continue
            inbox, _, inner = path[below:].partition("/")
            name = (inner or inbox).rpartition("/")[2]
            # On a busy machine a system call takes a fifth of a millisecond: the events of a burst of
            # files would come faster than they are handled, and fill the memory.
            is_folder = may_be_folder(name) and os.path.isdir(path) and not os.path.islink(path)  # noqa: PTH112, PTH114
            if kind == Change.added and self._is_recursive and is_folder:
                attempt.is_outdated |= self._find_obstacle(path) is not None
            if not inbox:
                names.add("")
            elif not is_outcome(inbox) and not is_hidden_or_temporary(name):
                names.add(inbox if is_folder or inner else "")
        if attempt.is_outdated:
            names.add(EVERYTHING)
        if names:
            self._changes.mark(*names)


class Watcher:
    """Marks the changes below ROOT that the system announces. For one thread.

    A context manager: on entry it listens to ROOT, and on exit it ends, within a second. With `poll`
    there are only scans; `why_polled` returns why a folder needs them, or None.
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
        self._notices = notices
        reason = (lambda _: "polling was requested") if poll else why_polled
        self._root_listener = Listener(changes, source, reason, monotonic, is_recursive=False)
        self._inbox_listener = Listener(changes, source, reason, monotonic, is_recursive=True)

    def __enter__(self) -> Self:
        self.follow(())
        return self

    def __exit__(self, *_: object) -> None:
        for listener in (self._root_listener, self._inbox_listener):
            listener.attempt.end()

    def follow(self, names: Iterable[str]) -> None:
        """Listen to ROOT and to the account folders of these names.

        Call it after each scan of ROOT, without names if the scan failed. Only this call replaces
        listeners; each new one marks everything when it begins to listen.
        """
        root = os.path.realpath(self._root)
        own: dict[str, tuple[int, int]] = {}
        try:
            own[root] = get_identity(root)
        except OSError as error:
            self._notices.find(
                "root",
                ImporterState.DEGRADED,
                f'The watched folder "{escaped(str(self._root))}" is not available '
                f"({error.strerror}). Nothing will be imported until it is back",
            )
        else:
            self._notices.clear("root")
        self._root_listener.listen(root, own)
        inboxes: dict[str, tuple[int, int]] = {}
        for name in names if not self._root_listener.polled else ():
            with contextlib.suppress(OSError):
                inboxes[f"{root}/{name}"] = get_identity(f"{root}/{name}")
        self._inbox_listener.listen(root, inboxes)
        self._tell()

    def _tell(self) -> None:
        listeners = (self._root_listener, self._inbox_listener)
        if failures := [listener.failure for listener in listeners if listener.failure]:
            worst = max(failures, key=lambda failure: failure.state is ImporterState.DEGRADED)
            self._notices.find(worst.key, worst.state, worst.sentence)
        else:
            self._notices.clear("watcher")
        if polled := {**self._root_listener.polled, **self._inbox_listener.polled}:
            shown = [f'"{escaped(path)}" ({why})' for path, why in sorted(polled.items())[:3]]
            more = f" and {counted(len(polled) - 3, 'more folder')}" if len(polled) > 3 else ""
            self._notices.find(
                "polling",
                ImporterState.POLLING,
                f"New files are found only by scans, with a short delay, in {', '.join(shown)}{more}",
            )
        else:
            self._notices.clear("polling")
