"""Log lines that wait: on the terminal they would be drawn over the screens."""

import contextlib
import logging
from collections import deque
from collections.abc import Iterator

MOST_HELD = 200


class _Holder(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.held: deque[logging.LogRecord] = deque(maxlen=MOST_HELD)

    def emit(self, record: logging.LogRecord) -> None:
        self.held.append(record)


@contextlib.contextmanager
def held_logs() -> Iterator[None]:
    """What handlers would write to a stream is written after the block, the last 200 lines of it.

    Handlers that write to files go on as before.
    """
    root = logging.getLogger()
    streams = [handler for handler in root.handlers if type(handler) is logging.StreamHandler]
    holder = _Holder()
    root.addHandler(holder)
    for handler in streams:
        root.removeHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(holder)
        for handler in streams:
            root.addHandler(handler)
        for record in holder.held:
            for handler in streams:
                handler.handle(record)
