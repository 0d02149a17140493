"""The inboxes: what waits in each, and when each is looked through.

Each part of ROOT has a rhythm, a settling clock and a queue of its own, so that one account's
backlog or trouble makes no other wait (pitfalls I12).
"""

import math
import os
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from importer.files import Known, Signature, escaped, find_extension, signature_of
from importer.notices import Remark
from resumes.file_names import SYSTEM_FOLDERS as SYSTEM_FOLDERS
from resumes.file_names import TEMPORARY as TEMPORARY
from resumes.file_names import is_outcome as is_outcome
from resumes.file_names import is_passed_over as is_passed_over
from resumes.store.accounts import AccountInfo


class Seen(NamedTuple):
    """A name in an inbox: its path, and its path below ROOT, both as text with surrogates.

    `signature` is None for what is never imported.
    """

    path: str
    name: str
    signature: Signature | None


def iter_inbox(folder: str, *, below: str, remark: Remark) -> Iterator[Seen]:
    """What lies in an inbox, in no order, folder by folder; nothing more is in memory.

    `below` leads the names, and is empty for ROOT itself, whose folders are inboxes of their own.
    """
    waiting = [(folder, below)]
    while waiting:
        path, name = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if not name and is_outcome(entry.name):
                        continue
                    inner = f"{name}/{entry.name}" if name else entry.name
                    if not is_folder(entry):
                        if (seen := _seen(entry, inner)) is not None:
                            yield seen
                    elif below:
                        waiting.append((entry.path, inner))
        except FileNotFoundError:
            pass
        except OSError as error:
            shown = escaped(name) or "the watched folder"
            remark(
                f"unlisted {shown}", f"Cannot look into {shown}: {error.strerror}. Its files wait"
            )


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether to look into it: not through links, nor into what poses as a file."""
    name = entry.name
    return (
        entry.is_dir(follow_symlinks=False)
        and not is_passed_over(name)
        and find_extension(name) is None
    )


def _seen(entry: os.DirEntry[str], below: str) -> Seen | None:
    """What the entry is; None when it vanished between two looks."""
    name = entry.name
    is_candidate = find_extension(name) is not None and not is_passed_over(name)
    if not is_candidate or not entry.is_file(follow_symlinks=False):
        return Seen(entry.path, below, None)
    try:
        return Seen(entry.path, below, signature_of(entry.stat(follow_symlinks=False)))
    except FileNotFoundError:
        return None


def find_inboxes(root: str) -> list[str]:
    """The parts of ROOT: its own files, under the empty name, and each folder in it that may bear
    an account's name. Raises OSError."""
    with os.scandir(root) as entries:
        names = sorted(
            entry.name for entry in entries if not is_outcome(entry.name) and is_folder(entry)
        )
    return ["", *names]


SCAN_SHARE = 10
"""A scan that took a second is repeated after ten at the earliest, unless an event asks."""

ASKED_SHARE = 2
"""The same for events, so that a storm of them in a large folder leaves time for work."""


class Rhythm:
    """Times on the monotonic clock, in seconds. A scan is due at first."""

    def __init__(self, scan_s: float, *, monotonic: Callable[[], float]) -> None:
        self._scan_s = scan_s
        self._monotonic = monotonic
        self._next_scan = monotonic()
        self._earliest = self._next_scan

    @property
    def is_scan_due(self) -> bool:
        """Whether to look through the folder now."""
        return self._monotonic() >= self._next_scan

    def ask(self, at: float | None = None) -> None:
        """A scan is due now, or at the time, or as soon as the last one's length allows."""
        wanted = self._monotonic() if at is None else at
        self._next_scan = min(self._next_scan, max(wanted, self._earliest))

    def force(self) -> None:
        """A scan is due now, whatever the last one took."""
        self._next_scan = self._earliest = self._monotonic()

    def scanned(self, took_s: float) -> None:
        """A scan ended that spent so long on looking alone."""
        now = self._monotonic()
        self._next_scan = now + max(self._scan_s, SCAN_SHARE * took_s)
        self._earliest = now + ASKED_SHARE * took_s

    def until_scan_s(self) -> float:
        """Seconds until a scan is due."""
        return max(0.0, self._next_scan - self._monotonic())

    def until_earliest_s(self) -> float:
        """Seconds until a scan may be asked for."""
        return max(0.0, self._earliest - self._monotonic())


SOON_S = 0.2
"""How soon a file is looked at again that was quiet and could not be judged all the same."""


@dataclass(slots=True)
class _File:
    signature: Signature
    since: float
    due: float
    seen_in_round: int
    is_left: bool = False


class Settling:
    """The files that are not judged yet, by path. `monotonic` returns seconds."""

    def __init__(self, settle_s: float, monotonic: Callable[[], float]) -> None:
        self._settle_s = settle_s
        self._monotonic = monotonic
        self._files: dict[str, _File] = {}
        self._round = 0
        self._soonest = math.inf

    def is_due(self, path: str, signature: Signature | None) -> bool:
        """Whether the file is worth a look: it is new, has changed, or was quiet long enough."""
        file = self._files.get(path)
        if file is None:
            return True
        file.seen_in_round = self._round
        return self._monotonic() >= file.due or file.signature != signature

    def find_known(self, path: str) -> Known | None:
        """The file's signature, and how long it has been the same; None for a new file."""
        file = self._files.get(path)
        return None if file is None else Known(file.signature, self._monotonic() - file.since)

    def note(self, path: str, signature: Signature, *, again_s: float | None = None) -> None:
        """The file has this signature now. It is due again after `again_s`; unless told
        otherwise when it was quiet for the settling time."""
        now = self._monotonic()
        known = self._files.get(path)
        since = known.since if known is not None and known.signature == signature else now
        due = now + again_s if again_s is not None else since + self._settle_s
        if due <= now:
            due = now + max(self._settle_s, SOON_S)
        self._files[path] = _File(signature, since, due, self._round)
        self._soonest = min(self._soonest, due)

    def leave(self, path: str, signature: Signature, *, again_s: float) -> None:
        """The file cannot be taken; it is tried again then, and nobody waits for it."""
        self.note(path, signature, again_s=again_s)
        self._files[path].is_left = True

    def rest(self, path: str, signature: Signature) -> None:
        """The file is not looked at again before it changes."""
        self.note(path, signature, again_s=math.inf)

    def forget(self, path: str) -> None:
        """The file is unknown, as it was taken or is gone."""
        self._files.pop(path, None)

    def end_round(self) -> None:
        """After a look at everything, files that were not seen in it are unknown."""
        gone = [path for path, file in self._files.items() if file.seen_in_round != self._round]
        for path in gone:
            del self._files[path]
        self._round += 1

    def resting(self) -> int:
        """How many files are not looked at again before they change."""
        return sum(file.due == math.inf for file in self._files.values())

    def left(self) -> int:
        """How many files cannot be taken."""
        return sum(file.is_left for file in self._files.values())

    def awaited(self) -> list[str]:
        """The files that somebody waits for, by path."""
        files = self._files.items()
        return [path for path, file in files if not file.is_left and file.due != math.inf]

    def next_due(self) -> float | None:
        """When the first file will have been quiet long enough; None when none is waiting."""
        return self._first(file for file in self._files.values() if not file.is_left)

    def next_try(self) -> float:
        """When the first file is to be tried again, also of those that nobody waits for."""
        return self._soonest

    def take_due(self) -> bool:
        """Whether a file has become due since this was last asked."""
        now = self._monotonic()
        if self._soonest > now:
            return False
        later = (file.due for file in self._files.values() if file.due > now)
        self._soonest = min(later, default=math.inf)
        return True

    @staticmethod
    def _first(files: Iterable[_File]) -> float | None:
        due = min((file.due for file in files), default=math.inf)
        return None if due == math.inf else due


QUEUE_FILES = 50_000
"""Files of an inbox in memory; when there are more, the oldest."""

SLICE_FILES = 2_000
"""Names looked at before other work gets its turn."""

BACKLOG_FILES = 5_000
"""With so many to try, more are found by looking again, and not by listening."""

MOST_OUT = 2_000
"""Files of an inbox that may be under way, most of them since they cannot be moved away."""

SPARE_PLACES = 1_000
"""Places that others may take before accounts are looked at again."""


class Inbox:
    """A part of ROOT with one owner. `below` is its name in ROOT, empty for ROOT's own files."""

    def __init__(
        self,
        folder: str,
        below: str,
        *,
        under_way: Container[str],
        settling: Settling,
        rhythm: Rhythm,
        monotonic: Callable[[], float],
        remark: Remark,
    ) -> None:
        self.folder = folder
        self.below = below
        self.account: AccountInfo | None = None
        self.settling = settling
        self.rhythm = rhythm
        self.queue: deque[Seen] = deque()
        """Files to try, the oldest first."""
        self.out = 0
        """How many of its files are under way."""
        self.is_flooded = False
        """Whether the last look found a backlog. Most of what is heard of it is our own taking
        away, and nothing that is heard is looked at before all is taken."""
        self.ignored = 0
        self.waiting = 0
        self.waiting_bytes = 0
        """What the last look saw."""
        self.found = 0
        """How many files to try the look under way has found so far."""
        self._under_way = under_way
        self._monotonic = monotonic
        self._remark = remark
        self._look: Iterator[None] | None = None

    @property
    def is_nearly_full(self) -> bool:
        """Whether the account may not have room for all that waits."""
        free = None if self.account is None else self.account.free_places
        return free is not None and free < self.waiting + self.out + SPARE_PLACES

    @property
    def wants_look(self) -> bool:
        """Whether to go on looking, or to begin: not before everything found was tried."""
        return self._look is not None or (not self.queue and self.rhythm.is_scan_due)

    @property
    def is_looking(self) -> bool:
        """Whether a look is under way."""
        return self._look is not None

    def look(self) -> None:
        """A part of the look is done, so that it can be gone on with; at the end the queue holds
        what is to be tried."""
        if self._look is None:
            self._look = self._look_through()
        if next(self._look, _END) is _END:
            self._look = None

    def _look_through(self) -> Iterator[None]:
        took_s = 0.0
        started = self._monotonic()
        found: list[tuple[int, str, Seen]] = []
        seen_in_all = ignored = waiting = waiting_bytes = 0
        is_cut = False
        for seen in iter_inbox(self.folder, below=self.below, remark=self._remark):
            seen_in_all += 1
            if seen_in_all % SLICE_FILES == 0:
                took_s += self._monotonic() - started
                self.found = len(found)
                yield
                started = self._monotonic()
            if seen.signature is None:
                ignored += 1
                continue
            waiting += 1
            waiting_bytes += seen.signature.size_bytes
            if self._is_to_try(seen.path, seen.signature):
                found.append((seen.signature.mtime_ns, seen.name, seen))
                if len(found) >= 2 * QUEUE_FILES:
                    is_cut |= _cut(found)
        is_cut |= _cut(found)
        self.queue.extend(seen for _, _, seen in found)
        self.found = 0
        self.ignored, self.waiting, self.waiting_bytes = ignored, waiting, waiting_bytes
        self.is_flooded = len(self.queue) >= BACKLOG_FILES
        self.settling.end_round()
        took_s += self._monotonic() - started
        self.rhythm.scanned(took_s)
        if is_cut:
            self.rhythm.ask()

    def _is_to_try(self, path: str, signature: Signature) -> bool:
        is_due = self.settling.is_due(path, signature)
        return is_due and self.account is not None and path not in self._under_way

    @property
    def may_take(self) -> bool:
        """Whether there is a file to try, and files can be moved away."""
        return bool(self.queue) and self.out < MOST_OUT

    def take(self) -> Seen | None:
        """The next file to try, which is under way from now on."""
        if not self.may_take:
            return None
        seen = self.queue.popleft()
        if self.is_flooded and not self.queue:
            self.rhythm.ask()
        self.out += 1
        self._count(seen, -1)
        return seen

    def note_left(self, seen_size_bytes: int) -> None:
        """A file that was tried stays in the inbox."""
        self.waiting += 1
        self.waiting_bytes += seen_size_bytes

    def _count(self, seen: Seen, by: int) -> None:
        size_bytes = seen.signature.size_bytes if seen.signature else 0
        self.waiting = max(0, self.waiting + by)
        self.waiting_bytes = max(0, self.waiting_bytes + by * size_bytes)

    def next_due_s(self) -> float:
        """Seconds until there is something to do here."""
        if self.is_looking or self.may_take:
            return 0.0
        until_due_s = self.settling.next_try() - self._monotonic()
        until_look_s = max(0.0, until_due_s, self.rhythm.until_earliest_s())
        return min(self.rhythm.until_scan_s(), until_look_s)

    def wake_due(self) -> None:
        """A look is due if a file has settled."""
        if self.settling.take_due():
            self.rhythm.ask()


def _cut(found: list[tuple[int, str, Seen]]) -> bool:
    """The oldest that there is room for are left, in order; whether there were more."""
    found.sort()
    is_cut = len(found) > QUEUE_FILES
    del found[QUEUE_FILES:]
    return is_cut


_END = object()
