"""How long an input may take: a stranger must not buy much of our time with few bytes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

BASE_S: Final = 2.0
"""For any input, however short: what else runs on the machine slows the processor too."""

PER_BYTE_S: Final = 50e-6


@contextmanager
def bounded(size_bytes: int) -> Iterator[None]:
    """What is done within took no more processor time than its input of so many bytes may."""
    began_s = time.thread_time()
    yield
    took_s = time.thread_time() - began_s
    allowed_s = BASE_S + size_bytes * PER_BYTE_S
    assert took_s <= allowed_s, f"{took_s:.2f} s for {size_bytes} bytes: {allowed_s:.2f} s allowed"
