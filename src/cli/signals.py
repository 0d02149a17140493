"""Stop on SIGTERM, Ctrl-C and SIGHUP, and ignore SIGHUP without a terminal."""

import _thread
import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopEvent(threading.Event):
    """An event that a signal sets. `is_requested`, which needs no lock, is set a moment earlier."""

    is_requested = False


@contextlib.contextmanager
def stop_event() -> Iterator[StopEvent]:
    """Yield an event that the first SIGTERM or SIGINT sets. A second one acts as before the block.

    SIGHUP, which a closing terminal sends, sets the event too, unless it is ignored, as with
    `nohup`. Use this only in the main thread, where Python runs signal handlers.
    """
    stop = StopEvent()
    before: dict[int, Any] = {number: signal.getsignal(number) for number in STOPPING}
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]

    def request_stop(number: int, _: FrameType | None) -> None:
        stop.is_requested = True
        # Use a thread, because the interrupted thread may hold the event's lock, and `_thread`,
        # because it may also hold locks of `threading`.
        _thread.start_new_thread(stop.set, ())
        if number != signal.SIGHUP:  # both the kernel and the shell may send SIGHUP
            signal.signal(number, before[number])

    for number in before:
        signal.signal(number, request_stop)
    try:
        yield stop
    finally:
        for stopping, handler in before.items():
            signal.signal(stopping, handler)


@contextlib.contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Make the first SIGTERM during the block raise KeyboardInterrupt, as Ctrl-C does.

    Partially written files are then removed before the signal ends the process.
    Use this only in the main thread, where Python runs signal handlers.
    """
    before = signal.getsignal(signal.SIGTERM)
    is_requested = False

    def interrupt(number: int, _: FrameType | None) -> None:
        nonlocal is_requested
        is_requested = True
        signal.signal(number, before)
        raise KeyboardInterrupt

    if before is not signal.SIG_DFL:  # SIGTERM is already handled, or ignored on purpose
        yield
        return
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if is_requested:
            signal.raise_signal(signal.SIGTERM)


def end_with_standard_input() -> None:
    """Send this process SIGTERM when its standard input ends.

    The parent holds the other end of the pipe and never writes, so the input ends whenever the
    parent ends.
    """

    def wait() -> None:
        # Do not use sys.stdin, whose lock would still be held when the interpreter exits.
        with contextlib.suppress(OSError):
            while os.read(0, 1_024):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="end-with-standard-input", daemon=True).start()


def ignore_hangup_without_terminal() -> None:
    """Ignore SIGHUP, in child processes too, if this process has no controlling terminal.

    Without a terminal, logrotate or `systemctl kill` sends the signal to make services reload,
    which these services do not support.
    """
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
