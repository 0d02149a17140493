"""Trying again what may pass: a store that is away for a moment, a lock that somebody else has."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

R = TypeVar("R")


def keep_trying(
    action: Callable[[], R],
    *,
    is_passing: Callable[[Exception], bool],
    within_s: float,
    pauses_s: Sequence[float],
) -> R:
    """What the action gives, at once or tried again within so many seconds; 0 tries once.

    Each further try comes after the next of the pauses, of which the last one goes on. Raises what
    the action raises: an error that is passing when the time is over, any other at once.
    """
    ends_at = time.monotonic() + within_s
    tries = 0
    while True:
        try:
            return action()
        except Exception as error:
            if not is_passing(error) or time.monotonic() >= ends_at:
                raise
            time.sleep(pauses_s[min(tries, len(pauses_s) - 1)])
            tries += 1
