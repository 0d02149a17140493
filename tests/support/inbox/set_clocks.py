"""Clocks that somebody sets."""

from resumes.clock import system_clock


class JumpingClock:
    """Now, and off by as much as somebody sets it. Microseconds."""

    def __init__(self) -> None:
        self.off_us = 0

    def __call__(self) -> int:
        return system_clock() + self.off_us


HOUR_US = 3_600 * 1_000_000
