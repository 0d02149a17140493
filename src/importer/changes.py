"""Which parts of the inbox to look at: marked by who hears of changes, taken by who looks."""

import threading
from dataclasses import dataclass


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
