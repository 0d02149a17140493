"""Answers that take long to find, kept while asking again would cost too much."""

import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from resumes.health.fonts import read_names
from resumes.store import counters, tallies
from resumes.store.counters import ResumeCounter
from resumes.store.engine import Store
from resumes.store.tallies import FileTally

T = TypeVar("T")

KEEP_TIMES = 50
"""So many times as long as asking took, an answer counts: at most one part in 50 goes into asking."""


class Kept(Generic[T]):
    """The answer to one question of a store. Threads may share it; at worst two of them ask."""

    def __init__(self, ask: Callable[[Store], T], monotonic: Callable[[], float]) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._last: tuple[T, float] | None = None
        """The answer, and until when it counts."""

    def get(self, store: Store) -> T:
        """The answer, not older than `KEEP_TIMES` says. Raises what asking raises."""
        last = self._last
        begin = self._monotonic()
        if last is not None and begin < last[1]:
            return last[0]
        answer = self._ask(store)
        end = self._monotonic()
        self._last = (answer, end + KEEP_TIMES * (end - begin))
        return answer

    def forget(self) -> None:
        """The next answer is a new one."""
        self._last = None


class SlowAnswers:
    """What takes time in proportion to what the store holds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.wrong_counters: Kept[Sequence[ResumeCounter]] = Kept(counters.list_wrong, monotonic)
        self.file_tallies: Kept[Sequence[FileTally]] = Kept(tallies.tally_files, monotonic)
        self.names: Kept[Sequence[str]] = Kept(read_names, monotonic)

    def forget(self) -> None:
        """Everything is asked again when it is wanted next."""
        self.wrong_counters.forget()
        self.file_tallies.forget()
        self.names.forget()
