"""Files that may still be written to: none is judged for good before it was quiet for a while.

Real writers create an empty file first, write `{}`, preallocate zeros, pause in the middle or
copy with the old times. So quiet is measured on our own monotonic clock, from when we first saw
the signature, and never by a file's age.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from importer.reading import Signature
from importer.trying import Known

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
