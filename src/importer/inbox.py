"""An inbox: what waits in one account's folder, when to look through it, and which files settle.

Each part of ROOT has a schedule and a queue of its own, so that one account's backlog or problem
makes no other wait (pitfalls I12). The directory is the truth; events only say that a look is
worth while. Nothing is opened here.
"""

import math
import os
from collections import deque
from collections.abc import Callable, Collection, Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from importer.files import Known, Signature, SystemFolders, escaped, signature_of
from importer.notices import Notices, Remark, left_alone
from importer.options import Options
from resumes.store.accounts import NAME, AccountInfo
from resumes.watched_names import (
    find_extension,
    is_hidden_or_temporary,
    is_outcome,
    is_system_folder,
    may_be_folder,
)


class Seen(NamedTuple):
    """A name in an inbox: its path below ROOT, as text with surrogates.

    `signature` is None for what is never imported.
    """

    name: str
    signature: Signature | None


def iter_inbox(root: Path, below: str, *, remark: Remark) -> Iterator[Seen]:
    """Yield the files in an inbox, in no order, folder by folder; nothing more is in memory.

    `below` is its name in ROOT, and empty for ROOT itself, whose folders are inboxes of their own.
    """
    waiting = [(f"{root}/{below}" if below else str(root), below)]
    while waiting:
        path, name = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if not name and is_outcome(entry.name):
                        continue
                    inner = f"{name}/{entry.name}" if name else entry.name
                    if not _is_folder(entry):
                        if (seen := _see(entry, inner)) is not None:
                            yield seen
                    elif below:
                        waiting.append((entry.path, inner))
        except FileNotFoundError:
            pass
        except OSError as error:
            shown = escaped(name) or "the watched folder"
            remark(
                f"unlisted {shown}", f"Cannot read {shown}: {error.strerror}. Its files are waiting"
            )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether to look into it: not through links, nor into what poses as a file."""
    return entry.is_dir(follow_symlinks=False) and may_be_folder(entry.name)


def _is_inbox(entry: os.DirEntry[str]) -> bool:
    """Return whether the entry of ROOT is a folder that may have an account's name."""
    # Windows had RECYCLER, and an account may be called so in lower case.
    is_name = NAME.fullmatch(entry.name) is not None
    return entry.is_dir(follow_symlinks=False) and (is_name or may_be_folder(entry.name))


def _see(entry: os.DirEntry[str], name: str) -> Seen | None:
    """Return what the entry is; None when it vanished between two looks."""
    is_candidate = find_extension(entry.name) is not None and not is_hidden_or_temporary(entry.name)
    if not is_candidate or not entry.is_file(follow_symlinks=False):
        return Seen(name, None)
    try:
        return Seen(name, signature_of(entry.stat(follow_symlinks=False)))
    except FileNotFoundError:
        return None


def find_inboxes(root: Path) -> list[str]:
    """Return the parts of ROOT: its own files, under the empty name, and each folder in it that may
    have an account's name. Raises OSError."""
    with os.scandir(root) as entries:
        names = [one.name for one in entries if not is_outcome(one.name) and _is_inbox(one)]
    return ["", *sorted(names)]


MAX_SCAN_LOAD = 10
"""A scan that took a second is repeated after ten at the earliest, unless an event asks."""

MAX_ASKED_LOAD = 2
"""The same for events, so that a storm of them in a large folder leaves time for work."""


class ScanSchedule:
    """When to look through a folder: at first, every `scan_s`, and when an event asks for it."""

    def __init__(self, scan_s: float, monotonic: Callable[[], float]) -> None:
        self._scan_s = scan_s
        self._monotonic = monotonic
        self.due = self.earliest = monotonic()
        """On the monotonic clock; `earliest` when it may be asked for."""

    @property
    def is_due(self) -> bool:
        """Whether to look now."""
        return self._monotonic() >= self.due

    def ask(self) -> None:
        """Make a look due, as soon as the last one's length allows."""
        self.due = min(self.due, max(self._monotonic(), self.earliest))

    def force(self) -> None:
        """Make a look due now, whatever the last one took."""
        self.due = self.earliest = self._monotonic()

    def done(self, took_s: float) -> None:
        """Schedule the next look; the last one took this long."""
        now = self._monotonic()
        self.due = now + max(self._scan_s, MAX_SCAN_LOAD * took_s)
        self.earliest = now + MAX_ASKED_LOAD * took_s


UNJUDGED_INTERVAL_S = 0.2
"""How soon a file is looked at again that was unchanged, but could still not be checked."""


@dataclass(slots=True)
class _Settling:
    signature: Signature
    since: float
    due: float
    look: int
    is_left: bool


class Settling:
    """The files that are not judged yet, by name, and when each is to be tried again."""

    def __init__(self, settle_s: float, monotonic: Callable[[], float]) -> None:
        self._settle_s = settle_s
        self._monotonic = monotonic
        self._files: dict[str, _Settling] = {}
        self._look = 0
        self.soonest = math.inf
        """When the first of them is to be tried again, on the monotonic clock."""

    def is_due(self, name: str, signature: Signature) -> bool:
        """Return whether to try the file: it is new, has changed, or was quiet long enough."""
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
        self,
        name: str,
        signature: Signature,
        *,
        again_s: float | None = None,
        is_left: bool = False,
    ) -> None:
        """Try the file again after `again_s`, by default when it was quiet for the settling time;
        with infinity when it changes. Nobody waits for one that `is_left`."""
        now = self._monotonic()
        known = self._files.get(name)
        since = known.since if known is not None and known.signature == signature else now
        due = since + self._settle_s if again_s is None else now + again_s
        if due <= now:
            due = now + max(self._settle_s, UNJUDGED_INTERVAL_S)
        self._files[name] = _Settling(signature, since, due, self._look, is_left)
        self.soonest = min(self.soonest, due)

    def forget(self, name: str) -> None:
        """Take the file for a new one when it is seen again."""
        self._files.pop(name, None)

    def end_look(self) -> None:
        """Forget files that a look at everything has not seen."""
        self._files = {name: one for name, one in self._files.items() if one.look == self._look}
        self._look += 1
        now = self._monotonic()
        later = (one.due for one in self._files.values() if one.due > now)
        self.soonest = min(later, default=math.inf)

    def list_awaited(self) -> list[tuple[float, str]]:
        """Return when the files are due that somebody waits for, and their names."""
        files = self._files.items()
        return [(one.due, name) for name, one in files if not one.is_left and one.due < math.inf]

    def count_left(self) -> int:
        """Return how many files cannot be taken."""
        return sum(file.is_left for file in self._files.values())

    def count_resting(self) -> int:
        """Return how many files are not tried before they change."""
        return sum(file.due == math.inf for file in self._files.values())


MAX_QUEUE_FILES = 50_000
"""Files of an inbox in memory; when there are more, the oldest."""

LOOK_SLICE_FILES = 2_000
"""Names looked at before other work gets its turn."""

BACKLOG_FILES = 5_000
"""With this many to try, more are found by scanning, not by events."""

MAX_UNDER_WAY = 2_000
"""Files of an inbox that may be under way, most of them since they cannot be moved away."""

SPARE_PLACES = 1_000
"""Places that others may take before accounts are looked at again."""


class Inbox:
    """A part of ROOT with one owner. `below` is its name in ROOT, empty for ROOT's own files."""

    def __init__(
        self,
        root: Path,
        below: str,
        options: Options,
        *,
        under_way: Container[str],
        monotonic: Callable[[], float],
        notices: Notices,
    ) -> None:
        self.below = below
        self.account: AccountInfo | None = None
        self.settling = Settling(options.settle_s, monotonic)
        self.schedule = ScanSchedule(options.scan_s, monotonic)
        self.queue: deque[Seen] = deque()
        """Files to try, the oldest first."""
        self.under_way = 0
        """How many of its files are under way."""
        self.has_backlog = False
        """Whether the last look found a backlog. Most events are then of our own moves, and nothing is
        looked at because of an event before all files are taken."""
        self.waiting = self.ignored = 0
        """What the last look saw, apart from what is under way."""
        self.unlisted: set[str] = set()
        """The keys of notices on folders that the last look could not read."""
        self._system_folders: set[str] = set()
        """System folders that were counted already; each is reported once."""
        self.found = 0
        """How many files to try the look under way has found so far."""
        self._root = root
        self._names_under_way = under_way
        self._monotonic = monotonic
        self._notices = notices
        self._look: Iterator[None] | None = None

    @property
    def is_nearly_full(self) -> bool:
        """Whether the account may not have room for all that waits."""
        free = None if self.account is None else self.account.free_places
        return free is not None and free < self.waiting + self.under_way + SPARE_PLACES

    @property
    def is_looking(self) -> bool:
        """Whether a look is under way."""
        return self._look is not None

    @property
    def may_take(self) -> bool:
        """Whether there is a file to try, and files can be moved away."""
        return bool(self.queue) and self.under_way < MAX_UNDER_WAY

    def look(self) -> bool:
        """Do a part of the look that is due, if one is; return whether it was.

        At the end of it the queue holds what is to be tried. None begins before that is taken.
        """
        if self._monotonic() >= self.settling.soonest:
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
        took_s = 0.0
        started = self._monotonic()
        found: list[tuple[int, Seen]] = []
        waiting = ignored = 0
        is_cut = False
        unlisted: set[str] = set()
        system_folders = SystemFolders()

        def remark(key: str, sentence: str) -> None:
            if self.account is not None:  # else nothing of it is imported
                unlisted.add(key)
                self.unlisted.add(key)
                self._notices(key, sentence)

        for count, seen in enumerate(iter_inbox(self._root, self.below, remark=remark), 1):
            if count % LOOK_SLICE_FILES == 0:
                took_s += self._monotonic() - started
                self.found = len(found)
                yield
                started = self._monotonic()
            if seen.signature is None:
                ignored += 1
                if self._is_new_system_folder(seen.name):
                    system_folders.add(f"{self._root}/{seen.name}", escaped(seen.name))
                continue
            is_due = self.settling.is_due(seen.name, seen.signature)
            if seen.name in self._names_under_way:
                continue
            waiting += 1
            if is_due and self.account is not None:
                found.append((seen.signature.mtime_ns, seen))
                if len(found) >= 2 * MAX_QUEUE_FILES:
                    is_cut |= _cut(found)
        is_cut |= _cut(found)
        self.queue.extend(seen for _, seen in found)
        self.found = 0
        self.waiting, self.ignored = waiting, ignored
        self.forget_unlisted(unlisted)
        if system_folders.counts:
            self._notices.tell(left_alone(system_folders))
        self.has_backlog = len(self.queue) >= BACKLOG_FILES
        self.settling.end_look()
        self.schedule.done(took_s + self._monotonic() - started)
        if is_cut:
            self.schedule.ask()

    def _is_new_system_folder(self, name: str) -> bool:
        """Return whether it is a system folder that was not there before."""
        if name in self._system_folders or not is_system_folder(name.rpartition("/")[2]):
            return False
        self._system_folders.add(name)
        return bool(self.below) or NAME.fullmatch(name) is None  # else it is an inbox

    def forget_unlisted(self, still: Collection[str] = ()) -> None:
        """Withdraw the notices on unreadable folders, except for those that are still unreadable."""
        for key in self.unlisted.difference(still):
            self._notices.resolve(key)
        self.unlisted = {*still}

    def list_awaited(self) -> list[tuple[float, str]]:
        """Return when the files are due that are waited for, and their names. Those under way were judged
        since they settled."""
        awaited = self.settling.list_awaited()
        return [one for one in awaited if one[1] not in self._names_under_way]

    def take(self) -> Seen | None:
        """Return the next file to try, which is under way from now on."""
        if not self.may_take:
            return None
        seen = self.queue.popleft()
        if self.has_backlog and not self.queue:
            self.schedule.ask()
        self.under_way += 1
        self.waiting = max(0, self.waiting - 1)
        return seen

    def wait_s(self) -> float:
        """Seconds until there is something to do here."""
        if self.is_looking or self.may_take:
            return 0.0
        due = min(self.schedule.due, max(self.schedule.earliest, self.settling.soonest))
        return max(0.0, due - self._monotonic())


def _cut(found: list[tuple[int, Seen]]) -> bool:
    """Keep the oldest that there is room for, in order; return whether there were more."""
    found.sort()
    is_cut = len(found) > MAX_QUEUE_FILES
    del found[MAX_QUEUE_FILES:]
    return is_cut
