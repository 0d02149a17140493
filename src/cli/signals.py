"""Ending on request: SIGTERM and Ctrl-C as an event that long commands wait for."""

import contextlib
import os
import queue
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

STOPPING = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def stop_event() -> Iterator[threading.Event]:
    """An event that the first SIGTERM or SIGINT sets; the second one acts as it always did.

    Only for the main thread, where Python runs handlers.
    """
    stop = threading.Event()
    before: dict[int, Any] = {number: signal.getsignal(number) for number in STOPPING}
    # A handler may interrupt the very thread that holds the event's lock, waiting for it; so it
    # only puts a word into a queue that is made for that, and a thread sets the event.
    requests: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def set_when_requested() -> None:
        if requests.get():
            stop.set()

    setter = threading.Thread(target=set_when_requested, name="stop-event", daemon=True)
    setter.start()

    def request_stop(number: int, _: FrameType | None) -> None:
        requests.put(True)
        signal.signal(number, before[number])

    for number in STOPPING:
        signal.signal(number, request_stop)
    try:
        yield stop
    finally:
        for stopping, handler in before.items():
            signal.signal(stopping, handler)
        requests.put(False)
        setter.join()


def end_with_standard_input() -> None:
    """From now on this process gets SIGTERM when its standard input ends.

    The parent holds the other end of that pipe and never writes, so it ends with the parent,
    however that dies.
    """

    def wait() -> None:
        # Not through sys.stdin: its lock would be held, waiting, when the interpreter ends.
        with contextlib.suppress(OSError):
            while os.read(0, 1_024):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="end-with-standard-input", daemon=True).start()
