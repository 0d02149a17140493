"""Spans of time: those that are what a row is about, and how long clients waited for their answers."""

import threading
from collections.abc import Iterator, Sequence

from tests.support.api.load import Attempt


def let_pass(span_s: float) -> None:
    """So much time has gone by, in which others work."""
    threading.Event().wait(span_s)


def took_ms(attempts: Sequence[Attempt]) -> list[float]:
    """How long each answer took, that came."""
    return [(one.ended_s - one.began_s) * 1_000 for one in attempts if one.answer is not None]


def p99_ms(attempts: Sequence[Attempt]) -> float:
    """The 99th percentile of what the answers took; there has to be one."""
    sorted_ms = sorted(took_ms(attempts))
    return sorted_ms[len(sorted_ms) * 99 // 100]


def between(attempts: Sequence[Attempt], since_s: float, until_s: float) -> list[Attempt]:
    """Those that began in that time."""
    return [one for one in attempts if since_s <= one.began_s < until_s]


def iter_windows(attempts: Sequence[Attempt], window_s: float) -> Iterator[list[Attempt]]:
    """The attempts that began in each time of that length, one after the other; none is empty."""
    windows: dict[int, list[Attempt]] = {}
    for one in attempts:
        windows.setdefault(int(one.began_s // window_s), []).append(one)
    return (windows[number] for number in sorted(windows))
