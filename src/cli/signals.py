"""What SIGTERM, Ctrl-C and SIGHUP do to a command: it stops, or ignores a hangup without a terminal."""

import _thread
import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextlib.contextmanager
def stop_event() -> Iterator[threading.Event]:
    """Yield an event that the first SIGTERM or SIGINT sets; the second one acts as it always did.

    So does SIGHUP, the end of the terminal, unless it is ignored, as below `nohup`.
    Only for the main thread, where Python runs handlers.
    """
    stop = threading.Event()
    before: dict[int, Any] = {number: signal.getsignal(number) for number in STOPPING}
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]

    def request_stop(number: int, _: FrameType | None) -> None:
        # In a thread, as this may interrupt the very one that holds the event's lock, waiting for
        # it; and without the locks of `threading`, which that may hold as well.
        _thread.start_new_thread(stop.set, ())
        if number != signal.SIGHUP:  # the system sends it, and so may the shell
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
    """Have the first SIGTERM during the block raise KeyboardInterrupt, as Ctrl-C does.

    So what is half written is removed before the process ends by the signal.
    Only for the main thread, where Python runs handlers.
    """
    before = signal.getsignal(signal.SIGTERM)
    is_told = False

    def interrupt(number: int, _: FrameType | None) -> None:
        nonlocal is_told
        is_told = True
        signal.signal(number, before)
        raise KeyboardInterrupt

    if before is not signal.SIG_DFL:  # somebody waits for it, or wants it ignored
        yield
        return
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if is_told:
            signal.raise_signal(signal.SIGTERM)


def end_with_standard_input() -> None:
    """Send this process SIGTERM when its standard input ends.

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


def ignore_hangup_without_terminal() -> None:
    """Ignore SIGHUP, in child processes too, if this process has no controlling terminal.

    No terminal can hang up then: the signal is that of logrotate or `systemctl kill`, to services that
    have nothing to reload.
    """
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
