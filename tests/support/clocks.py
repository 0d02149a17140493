"""Clocks of tests, which go on only when they are told to."""


class SteppingClock:
    """A clock that stands still until it is moved. Microseconds."""

    def __init__(self, now_us: int = 1_800_000_000_000_000) -> None:
        self.now_us = now_us

    def __call__(self) -> int:
        return self.now_us

    def advance(self, seconds: float) -> None:
        self.now_us += int(seconds * 1_000_000)


class FakeMonotonic:
    """A monotonic clock that stands still until it is moved. Seconds."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
