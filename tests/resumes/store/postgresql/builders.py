"""Requests of accounts, and waiting for what threads and servers come to."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Of:
    """A request of an account."""

    account_id: str
    number: int = 0


def wait_until(condition: Callable[[], object]) -> None:
    """The condition has come true. Raises AssertionError when it does not within 20 seconds."""
    ends_at = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < ends_at
        time.sleep(0.005)
