"""Files that may still be written to: none is judged for good before it was quiet for a while.

Real writers create an empty file first, write `{}`, preallocate zeros, pause in the middle or
copy with the old times. So quiet is measured on our own monotonic clock, from when we first saw
the signature, and never by a file's age.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from importer.reading import Signature


@dataclass(slots=True)
class _Settling:
    signature: Signature
    due: float
    seen_in_round: int
    is_left: bool = False


class Settling:
    """The files that are not taken yet, by path. `monotonic` returns seconds."""

    def __init__(self, settle_s: float, monotonic: Callable[[], float]) -> None:
        self._settle_s = settle_s
        self._monotonic = monotonic
        self._files: dict[str, _Settling] = {}
        self._round = 0

    def is_due(self, path: str, signature: Signature) -> bool:
        """Whether the file is worth a look: it is new, has changed, or was quiet long enough."""
        known = self._files.get(path)
        if known is None:
            return True
        known.seen_in_round = self._round
        return known.signature != signature or self._monotonic() >= known.due

    def is_quiet(self, path: str, signature: Signature) -> bool:
        """Whether the file has kept this signature for the settling time; the time runs from now
        if it is new or has changed."""
        known = self._files.get(path)
        if known is None or known.signature != signature:
            self.restart(path, signature)
            return self._settle_s <= 0
        return self._monotonic() >= known.due

    def restart(self, path: str, signature: Signature) -> None:
        """The settling time runs from now."""
        due = self._monotonic() + self._settle_s
        self._files[path] = _Settling(signature, due, self._round)

    def leave(self, path: str, signature: Signature) -> None:
        """The file is quiet but cannot be taken; it is tried again after the settling time, and
        nobody waits for that."""
        self.restart(path, signature)
        self._files[path].is_left = True

    def rest(self, path: str, signature: Signature) -> None:
        """The file is not looked at again before it changes."""
        self._files[path] = _Settling(signature, math.inf, self._round)

    def forget(self, path: str) -> None:
        """The file is unknown, as it was taken or is gone."""
        self._files.pop(path, None)

    def end_round(self, *, is_complete: bool) -> None:
        """After a complete look at everything, files that were not seen in it are unknown."""
        if not is_complete:
            return
        gone = [path for path, file in self._files.items() if file.seen_in_round != self._round]
        for path in gone:
            del self._files[path]
        self._round += 1

    def resting(self) -> int:
        """How many files are not looked at again before they change."""
        return sum(file.due == math.inf for file in self._files.values())

    def next_due(self) -> float | None:
        """When the first file will have been quiet long enough; None when none is waiting."""
        waited_for = (file.due for file in self._files.values() if not file.is_left)
        due = min(waited_for, default=math.inf)
        return None if due == math.inf else due
