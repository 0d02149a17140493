"""An inbox: the files that wait in one account's folder, when to scan it, and which files settle.

Each part of ROOT has its own schedule and queue, so that no account waits for another's backlog or
problem (pitfalls I12). The directory is the truth; events only trigger scans. This module opens no
files.
"""

import math
import os
from collections import deque
from collections.abc import Callable, Collection, Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from importer.files import Known, Signature, SystemFolders, escaped, signature_of
from importer.job import Job
from importer.notices import Remark, left_alone
from resumes.store.accounts import NAME, AccountInfo
from resumes.watched_names import (
    find_extension,
    find_filed_extension,
    is_document,
    is_hidden_or_temporary,
    is_outcome,
    is_system_folder,
    may_be_folder,
)


class Seen(NamedTuple):
    """A name in an inbox: its path below ROOT, as text with surrogates. `signature` is None for a name that
    is never imported."""

    name: str
    signature: Signature | None


def iter_inbox(root: Path, below: str, *, analyzes: bool = False, remark: Remark) -> Iterator[Seen]:
    """Yield the files in an inbox lazily, folder by folder, in no order. `below` is its name in ROOT, and
    empty for ROOT itself, whose folders are separate inboxes. With `analyzes`, documents are imported."""
    find_type = find_filed_extension if analyzes else find_extension
    waiting = [(f"{root}/{below}" if below else str(root), below)]
    while waiting:
        path, name = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if not name and is_outcome(entry.name):
                        continue
                    inner = f"{name}/{entry.name}" if name else entry.name
                    # Not a link to a folder, nor a folder with a file's ending.
                    if entry.is_dir(follow_symlinks=False) and may_be_folder(entry.name):
                        if below:
                            waiting.append((entry.path, inner))
                    elif (seen := _see(entry, inner, find_type)) is not None:
                        yield seen
        except FileNotFoundError:
            pass
        except OSError as error:
            shown = escaped(name) or "the watched folder"
            remark(
                f"unlisted {shown}", f"Cannot read {shown}: {error.strerror}. Its files are waiting"
            )


def _see(entry: os.DirEntry[str], name: str, find_type: Callable[[str], str | None]) -> Seen | None:
    """Return the entry with its signature; None if it vanished meanwhile."""
    is_candidate = find_type(entry.name) is not None and not is_hidden_or_temporary(entry.name)
    if not is_candidate or not entry.is_file(follow_symlinks=False):
        return Seen(name, None)
    try:
        return Seen(name, signature_of(entry.stat(follow_symlinks=False)))
    except FileNotFoundError:
        return None


def find_inboxes(root: Path) -> list[str]:
    """Return the inboxes of ROOT: the empty name for its own files, and each folder in it that may have
    an account's name. Raises OSError."""
    with os.scandir(root) as entries:
        names = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        # RECYCLER is a system folder of old Windows versions; `recycler` may be an account.
        found = [name for name in names if NAME.fullmatch(name) or may_be_folder(name)]
    return ["", *sorted(name for name in found if not is_outcome(name))]


MAX_SCAN_LOAD = 10
"""A scan is repeated after this many times its duration at the earliest, unless an event asks."""
MAX_ASKED_LOAD = 2
"""The same if an event asks, so that many events in a large folder leave time for work."""


class ScanSchedule:
    """When to scan a folder: at first, every `scan_s`, and when an event asks for it."""

    def __init__(self, scan_s: float, monotonic: Callable[[], float]) -> None:
        self._scan_s = scan_s
        self._monotonic = monotonic
        self.due = self.earliest = monotonic()
        """When the next scan is due, and the earliest time that an event can make it due, on the
        monotonic clock."""

    @property
    def is_due(self) -> bool:
        return self._monotonic() >= self.due

    def ask(self) -> None:
        """Make a scan due, as soon as the duration of the last one allows."""
        self.due = min(self.due, max(self._monotonic(), self.earliest))

    def force(self) -> None:
        """Make a scan due now, however long the last one took."""
        self.due = self.earliest = self._monotonic()

    def done(self, took_s: float) -> None:
        """Schedule the next scan after one that took this long."""
        now = self._monotonic()
        self.due = now + max(self._scan_s, MAX_SCAN_LOAD * took_s)
        self.earliest = now + MAX_ASKED_LOAD * took_s


UNJUDGED_INTERVAL_S = 0.2
"""How soon a settled file that could not be checked is tried again."""


@dataclass(slots=True)
class _Settling:
    signature: Signature
    since: float
    due: float
    look: int
    is_left: bool


class Settling:
    """The files that are not judged yet, by name, and when to try each again."""

    def __init__(self, settle_s: float, monotonic: Callable[[], float]) -> None:
        self._settle_s = settle_s
        self._monotonic = monotonic
        self._files: dict[str, _Settling] = {}
        self._look = 0
        self.soonest = math.inf
        """When to try the first of them again, on the monotonic clock."""

    def is_due(self, name: str, signature: Signature) -> bool:
        file = self._files.get(name)
        if file is None:
            return True
        file.look = self._look
        return self._monotonic() >= file.due or file.signature != signature

    def find_known(self, name: str) -> Known | None:
        """Return the file's signature, and how long it has been the same; None for a new file."""
        file = self._files.get(name)
        return None if file is None else Known(file.signature, self._monotonic() - file.since)

    def note(
        self, name: str, signature: Signature, again_s: float | None, *, is_left: bool
    ) -> None:
        """Try the file again after `again_s` seconds: None is when it has settled, infinite when it
        changes. A file that `is_left` is not awaited."""
        now = self._monotonic()
        known = self._files.get(name)
        since = known.since if known is not None and known.signature == signature else now
        due = since + self._settle_s if again_s is None else now + again_s
        if due <= now:
            due = now + max(self._settle_s, UNJUDGED_INTERVAL_S)
        self._files[name] = _Settling(signature, since, due, self._look, is_left)
        self.soonest = min(self.soonest, due)

    def forget(self, name: str) -> None:
        """Treat the file as new when it is seen again."""
        self._files.pop(name, None)

    def end_look(self) -> None:
        """Forget the files that a complete scan has not seen."""
        self._files = {name: file for name, file in self._files.items() if file.look == self._look}
        self._look += 1
        now = self._monotonic()
        later = (file.due for file in self._files.values() if file.due > now)
        self.soonest = min(later, default=math.inf)

    def list_awaited(self) -> list[tuple[float, str]]:
        files = self._files.items()
        return [(it.due, name) for name, it in files if not it.is_left and it.due < math.inf]

    def count_left(self) -> int:
        """Return how many files cannot be taken."""
        return sum(file.is_left for file in self._files.values())

    def count_resting(self) -> int:
        """Return how many files are not tried before they change."""
        return sum(file.due == math.inf for file in self._files.values())


MAX_QUEUE_FILES = 50_000
"""The maximum number of an inbox's files in memory; the oldest if there are more."""
LOOK_SLICE_FILES = 2_000
"""How many names are scanned before other work gets its turn."""
BACKLOG_FILES = 5_000
"""With this many files to try, more are found by scanning, not by events."""
MAX_UNDER_WAY = 2_000
"""The maximum number of an inbox's files under way; most of so many cannot be moved away."""
MAX_DOCUMENTS = 500
"""The maximum number of an inbox's documents under way, so that its other files are not kept waiting."""
SPARE_PLACES = 1_000
"""How much of the quota others may use before accounts are read again."""


@dataclass(slots=True)
class Scan:
    """What a scan of an inbox found."""

    waiting: int = 0
    ignored: int = 0
    """How many files it saw, apart from those under way."""
    found: int = 0
    """How many files to try it has found so far; 0 once they are in the queue."""
    has_backlog: bool = False
    """Whether it found so many that most events are of our own moves: no event triggers another scan before
    all files are taken."""
    unlisted: set[str] = field(default_factory=set)
    """The keys of notices on folders that it could not read."""
    system_folders: set[str] = field(default_factory=set)
    """System folders that were counted by now; each is reported once."""


class Inbox:
    """A part of ROOT with one owner. `below` is its name in ROOT, empty for ROOT's own files."""

    def __init__(self, job: Job, below: str, names_under_way: Container[str]) -> None:
        self._job = job
        self.below = below
        self.account: AccountInfo | None = None
        self.settling = Settling(job.options.settle_s, job.monotonic)
        self.schedule = ScanSchedule(job.options.scan_s, job.monotonic)
        self.queue: deque[Seen] = deque()
        """Files to try, the oldest first."""
        self.under_way = 0
        """How many of its files are under way."""
        self._names_under_way = names_under_way
        self._look: Iterator[None] | None = None
        self.scan = Scan()
        """The last scan."""

    @property
    def is_next_document(self) -> bool:
        return bool(self.queue) and is_document(self.queue[0].name)

    @property
    def is_nearly_full(self) -> bool:
        """Whether the account may not have room for all waiting files."""
        free = None if self.account is None else self.account.free_places
        return free is not None and free < self.scan.waiting + self.under_way + SPARE_PLACES

    @property
    def is_looking(self) -> bool:
        return self._look is not None

    def look(self) -> bool:
        """Do the next part of a scan that is due; return whether one was. At its end the queue holds the
        files to try. No scan begins before they are taken."""
        if self._job.monotonic() >= self.settling.soonest:
            self.settling.soonest = math.inf
            self.schedule.ask()
        if self._look is None:
            if self.queue or not self.schedule.is_due:
                return False
            self._look = self._look_through()
        for _ in self._look:
            break
        else:
            self._look = None
        return True

    def _look_through(self) -> Iterator[None]:
        took_s, started = 0.0, self._job.monotonic()
        found: list[tuple[int, Seen]] = []
        documents: list[tuple[int, Seen]] = []
        room, waiting, ignored, is_cut = MAX_DOCUMENTS, 0, 0, False
        unlisted: set[str] = set()
        system_folders = SystemFolders()

        def remark(key: str, sentence: str) -> None:
            if self.account is not None:  # else none of its files are imported
                unlisted.add(key)
                self.scan.unlisted.add(key)
                self._job.notices(key, sentence)

        analyzes = self._job.options.analyzer is not None
        seen_files = iter_inbox(Path(self._job.root), self.below, analyzes=analyzes, remark=remark)
        for count, seen in enumerate(seen_files, 1):
            if count % LOOK_SLICE_FILES == 0:
                took_s += self._job.monotonic() - started
                self.scan.found = len(found)
                yield
                started = self._job.monotonic()
            if seen.signature is None:
                ignored += 1
                if self._is_new_system_folder(seen.name):
                    system_folders.add(f"{self._job.root}/{seen.name}", escaped(seen.name))
                continue
            is_due = self.settling.is_due(seen.name, seen.signature)
            is_analyzed = analyzes and is_document(seen.name)
            if seen.name in self._names_under_way:
                room -= is_analyzed
                continue
            waiting += 1
            if is_due and self.account is not None:
                listed = documents if is_analyzed else found
                listed.append((seen.signature.mtime_ns, seen))
                if len(listed) >= 2 * MAX_QUEUE_FILES:
                    is_cut |= _cut(listed)
        found += sorted(documents)[: max(0, room)]
        is_cut |= _cut(found)
        self.queue.extend(seen for _, seen in found)
        self.scan.found = 0
        self.scan.waiting, self.scan.ignored = waiting, ignored
        self.forget_unlisted(unlisted)
        if system_folders.counts:
            self._job.notices.tell(left_alone(system_folders))
        self.scan.has_backlog = len(self.queue) >= BACKLOG_FILES
        self.settling.end_look()
        self.schedule.done(took_s + self._job.monotonic() - started)
        if is_cut:
            self.schedule.ask()

    def _is_new_system_folder(self, name: str) -> bool:
        """Return whether it is a system folder that was not counted before."""
        if name in self.scan.system_folders or not is_system_folder(name.rpartition("/")[2]):
            return False
        self.scan.system_folders.add(name)
        return bool(self.below) or NAME.fullmatch(name) is None  # else it is an inbox

    def forget_unlisted(self, still: Collection[str] = ()) -> None:
        """Withdraw the notices on unreadable folders, except for those that are still unreadable."""
        for key in self.scan.unlisted.difference(still):
            self._job.notices.resolve(key)
        self.scan.unlisted = {*still}

    def list_awaited(self) -> list[tuple[float, str]]:
        awaited = self.settling.list_awaited()
        return [file for file in awaited if file[1] not in self._names_under_way]

    def take(self) -> Seen | None:
        """Take the next file to try out of the queue; it is under way from now on."""
        if not self.queue or self.under_way >= MAX_UNDER_WAY:
            return None
        seen = self.queue.popleft()
        if self.scan.has_backlog and not self.queue:
            self.schedule.ask()
        self.under_way += 1
        self.scan.waiting = max(0, self.scan.waiting - 1)
        return seen

    def wait_s(self) -> float:
        if self.is_looking or (self.queue and self.under_way < MAX_UNDER_WAY):
            return 0.0
        due = min(self.schedule.due, max(self.schedule.earliest, self.settling.soonest))
        return max(0.0, due - self._job.monotonic())


def _cut(found: list[tuple[int, Seen]]) -> bool:
    """Sort the files and keep only the oldest, up to the limit; return whether there were more."""
    found.sort()
    is_cut = len(found) > MAX_QUEUE_FILES
    del found[MAX_QUEUE_FILES:]
    return is_cut
