"""Inboxes: the files waiting in an account's folder, when to scan it, and which files settle.

Each part of ROOT has its own schedule and queue, so that no account has to wait for another
account's backlog or problem (pitfalls I12). The folder's content is authoritative; events only
trigger scans. This module opens no files.
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
    SkipReason,
    find_extension,
    is_document,
    is_hidden_or_temporary,
    is_outcome,
    is_system_folder,
    may_be_folder,
)


class Seen(NamedTuple):
    """A name in an inbox: its path below ROOT, as text with surrogates, and either its signature or
    the reason why it is never imported. Files to import sort by age, the oldest first."""

    mtime_ns: int
    name: str
    signature: Signature | None = None
    why: SkipReason | None = None


def iter_inbox(root: Path, below: str, *, analyzes: bool = False, remark: Remark) -> Iterator[Seen]:
    """Yield the files in an inbox lazily, folder by folder, in no particular order. `below` is the
    inbox's name in ROOT; if it is empty, only the files directly in ROOT are yielded. With
    `analyzes`, documents are imported."""
    waiting = [(f"{root}/{below}" if below else str(root), below)]
    while waiting:
        path, name = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if not name and is_outcome(entry.name):
                        continue
                    inner = f"{name}/{entry.name}" if name else entry.name
                    # Do not enter links to folders, or folders whose names have a file extension.
                    if entry.is_dir(follow_symlinks=False) and may_be_folder(entry.name):
                        if below:
                            waiting.append((entry.path, inner))
                    elif (seen := _see(entry, inner, analyzes=analyzes)) is not None:
                        yield seen
        except FileNotFoundError:
            pass
        except OSError as error:
            shown = escaped(name) or "the watched folder"
            remark(
                f"unlisted {shown}", f"Cannot read {shown}: {error.strerror}. Its files are waiting"
            )


def find_why(entry: os.DirEntry[str], *, analyzes: bool = False) -> SkipReason | None:
    """Return why the entry's name or type prevents its import, or None if it can be imported. With
    `analyzes`, documents are imported."""
    if is_hidden_or_temporary(entry.name):
        return SkipReason.SYSTEM if is_system_folder(entry.name) else SkipReason.HIDDEN
    if entry.is_symlink():  # a link to a folder has no extension
        return SkipReason.LINK
    if find_extension(entry.name) is None and not (analyzes and is_document(entry.name)):
        return SkipReason.ENDING
    return None if entry.is_file(follow_symlinks=False) else SkipReason.NO_FILE


def _see(entry: os.DirEntry[str], name: str, *, analyzes: bool) -> Seen | None:
    """Return the entry with its signature or why it is ignored, or None if it no longer exists."""
    if (why := find_why(entry, analyzes=analyzes)) is not None:
        return Seen(0, name, why=why)
    try:
        signature = signature_of(entry.stat(follow_symlinks=False))
        return Seen(signature.mtime_ns, name, signature)
    except FileNotFoundError:
        return None


def find_inboxes(root: Path) -> list[str]:
    """Return the names of the inboxes in ROOT: the empty name for ROOT's own files, and each folder
    that may have an account's name. Raises OSError."""
    with os.scandir(root) as entries:
        names = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        # RECYCLER is a system folder of old Windows versions; `recycler` may be an account.
        found = [name for name in names if NAME.fullmatch(name) or may_be_folder(name)]
    return ["", *sorted(name for name in found if not is_outcome(name))]


MAX_SCAN_LOAD = 10
"""Without an event, the next scan starts after at least this many times the scan's duration."""
MAX_ASKED_LOAD = 2
"""The same factor after an event, so that frequent events in a large folder leave time for work."""


class ScanSchedule:
    """When to scan a folder: at the start, every `scan_s` seconds, and after an event."""

    def __init__(self, scan_s: float, monotonic: Callable[[], float]) -> None:
        self._scan_s = scan_s
        self._monotonic = monotonic
        self.due = self.earliest = monotonic()
        """The monotonic times of the next scan and of the earliest scan after an event."""

    @property
    def is_due(self) -> bool:
        return self._monotonic() >= self.due

    def ask(self, at_s: float = -math.inf) -> None:
        """Make a scan due now or at a later time, as soon as the last scan's duration allows."""
        self.due = min(self.due, max(self._monotonic(), at_s, self.earliest))

    def force(self) -> None:
        """Make a scan due now, regardless of how long the last one took."""
        self.due = self.earliest = self._monotonic()

    def done(self, took_s: float) -> None:
        """Schedule the next scan after a scan that took this long."""
        now = self._monotonic()
        self.due = now + max(self._scan_s, MAX_SCAN_LOAD * took_s)
        self.earliest = now + MAX_ASKED_LOAD * took_s


UNJUDGED_INTERVAL_S = 0.2
"""The pause before a settled file that could not be checked is tried again."""


@dataclass(slots=True)
class _Settling:
    signature: Signature
    since: float
    due: float
    look: int
    is_left: bool


class Settling:
    """The files that have not been judged yet, by name, and when to try each file again."""

    def __init__(self, settle_s: float, monotonic: Callable[[], float]) -> None:
        self._settle_s = settle_s
        self._monotonic = monotonic
        self._files: dict[str, _Settling] = {}
        self._look = 0

    def is_due(self, name: str, signature: Signature) -> bool:
        file = self._files.get(name)
        if file is None:
            return True
        file.look = self._look
        return self._monotonic() >= file.due or file.signature != signature

    def find_known(self, name: str) -> Known | None:
        """Return the file's signature and how long it has been the same, or None for a new file."""
        file = self._files.get(name)
        return None if file is None else Known(file.signature, self._monotonic() - file.since)

    def note(
        self, name: str, signature: Signature, again_s: float | None, *, is_left: bool
    ) -> float:
        """Try the file again after `again_s` seconds, when it has settled (None), or when it
        changes (infinity). If `is_left`, the file is not awaited. Return the time of the next try,
        on the monotonic clock."""
        now = self._monotonic()
        known = self._files.get(name)
        since = known.since if known is not None and known.signature == signature else now
        due = since + self._settle_s if again_s is None else now + again_s
        if due <= now:
            due = now + max(self._settle_s, UNJUDGED_INTERVAL_S)
        self._files[name] = _Settling(signature, since, due, self._look, is_left)
        return due

    def forget(self, name: str) -> None:
        """Treat the file as new when a scan finds it again."""
        self._files.pop(name, None)

    def end_look(self) -> float:
        """Forget files that a complete scan has not found. Return when the next file is due."""
        self._files = {name: file for name, file in self._files.items() if file.look == self._look}
        self._look += 1
        now = self._monotonic()
        return min((file.due for file in self._files.values() if file.due > now), default=math.inf)

    def list_awaited(self) -> list[tuple[float, str]]:
        files = self._files.items()
        return [(it.due, name) for name, it in files if not it.is_left and it.due < math.inf]

    def count_left(self) -> int:
        """Return the number of files that cannot be imported for now."""
        return sum(file.is_left for file in self._files.values())

    def count_resting(self) -> int:
        """Return the number of files that are not tried again until they change."""
        return sum(file.due == math.inf for file in self._files.values())


MAX_QUEUE_FILES = 50_000
"""The maximum number of an inbox's files in memory. If there are more, the oldest are kept."""
LOOK_SLICE_FILES = 2_000
"""The number of names that are scanned before other work gets its turn."""
MAX_UNDER_WAY = 2_000
"""The maximum number of an inbox's files under way. If so many are, most cannot be moved."""
MAX_DOCUMENTS = 500
"""The maximum number of an inbox's documents under way, so that other files need not wait."""
SPARE_PLACES = 1_000
"""How much of the quota other processes may use before the accounts are read again."""


@dataclass(slots=True)
class Scan:
    """The result of a scan of an inbox."""

    waiting: int = 0
    ignored: int = 0
    """The numbers of waiting and ignored files, without those under way."""
    unlisted: set[str] = field(default_factory=set)
    """The keys of the notices on folders that could not be read."""
    system_folders: set[str] = field(default_factory=set)
    """The system folders that were already counted; each is reported once."""


class Inbox:
    """A part of ROOT with one owner. `below` is its name in ROOT, or empty for ROOT's own files."""

    def __init__(self, job: Job, below: str, names_under_way: Container[str]) -> None:
        self._job = job
        self.below = below
        self.account: AccountInfo | None = None
        self.settling = Settling(job.options.settle_s, job.monotonic)
        self.schedule = ScanSchedule(job.options.scan_s, job.monotonic)
        self.queue: deque[Seen] = deque()
        """The files to try, oldest first."""
        self.under_way = 0
        """The number of its files that are under way."""
        self._names_under_way = names_under_way
        self._look: Iterator[None] | None = None
        self.scan = Scan()
        """The last scan."""

    @property
    def is_nearly_full(self) -> bool:
        """Whether the account's quota may not be enough for all waiting files."""
        free = None if self.account is None else self.account.free_places
        return free is not None and free < self.scan.waiting + self.under_way + SPARE_PLACES

    @property
    def is_looking(self) -> bool:
        return self._look is not None

    def look(self) -> bool:
        """Do the next part of a scan that is due, and return whether a scan was due. After the last
        part, the queue contains the files to try. No scan begins until these files are taken."""
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
        found: list[Seen] = []
        documents: list[Seen] = []
        room, waiting, ignored, is_cut = MAX_DOCUMENTS, 0, 0, False
        unlisted: set[str] = set()
        system_folders = SystemFolders()

        def remark(key: str, sentence: str) -> None:
            if self.account is not None:  # otherwise none of its files are imported
                unlisted.add(key)
                self.scan.unlisted.add(key)
                self._job.notices(key, sentence)

        analyzes = self._job.options.analyzer is not None
        seen_files = iter_inbox(Path(self._job.root), self.below, analyzes=analyzes, remark=remark)
        for count, seen in enumerate(seen_files, 1):
            if count % LOOK_SLICE_FILES == 0:
                took_s += self._job.monotonic() - started
                yield
                started = self._job.monotonic()
            if seen.signature is None:
                ignored += 1
                if seen.why is SkipReason.SYSTEM and self._is_new_system_folder(seen.name):
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
                listed.append(seen)
                if len(listed) >= 2 * MAX_QUEUE_FILES:
                    is_cut |= _cut(listed)
        found += sorted(documents)[: max(0, room)]
        is_cut |= _cut(found)
        self.queue.extend(found)
        self.scan.waiting, self.scan.ignored = waiting, ignored
        self.forget_unlisted(unlisted)
        if system_folders.counts:
            self._job.notices.tell(left_alone(system_folders))
        again_at = self.settling.end_look()
        self.schedule.done(took_s + self._job.monotonic() - started)
        self.schedule.ask(-math.inf if is_cut else again_at)

    def _is_new_system_folder(self, name: str) -> bool:
        """Return whether this system folder has not been counted before."""
        if name in self.scan.system_folders:
            return False
        self.scan.system_folders.add(name)
        return bool(self.below) or NAME.fullmatch(name) is None  # otherwise it is an inbox

    def forget_unlisted(self, still: Collection[str] = ()) -> None:
        """Withdraw the notices on folders that are readable again."""
        for key in self.scan.unlisted.difference(still):
            self._job.notices.resolve(key)
        self.scan.unlisted = {*still}

    def list_awaited(self) -> list[tuple[float, str]]:
        awaited = self.settling.list_awaited()
        return [file for file in awaited if file[1] not in self._names_under_way]

    def take(self) -> Seen | None:
        """Remove the next file to try from the queue; the file is then under way."""
        if not self.queue or self.under_way >= MAX_UNDER_WAY:
            return None
        seen = self.queue.popleft()
        self.under_way += 1
        self.scan.waiting = max(0, self.scan.waiting - 1)
        return seen

    def wait_s(self) -> float:
        if self.is_looking or (self.queue and self.under_way < MAX_UNDER_WAY):
            return 0.0
        return max(0.0, self.schedule.due - self._job.monotonic())


def _cut(found: list[Seen]) -> bool:
    """Sort the files and keep only the oldest, up to the limit. Return whether there were more."""
    found.sort()
    is_cut = len(found) > MAX_QUEUE_FILES
    del found[MAX_QUEUE_FILES:]
    return is_cut
