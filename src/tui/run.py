"""Running the terminal UI, for `resumes tui`.

No import of this module loads the store, which would delay the first frame.
"""

import asyncio
import contextlib
import logging
import os
import select
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from logging.handlers import MemoryHandler
from types import FrameType
from typing import TYPE_CHECKING, Final

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

from resumes.errors import InvalidArgument
from resumes.text import counted
from tui.app import ResumesApp
from tui.keys import MODES
from tui.text import safe_text
from tui.widths import aligned

if TYPE_CHECKING:
    from resumes.store.sqlite.first_rows import FirstRows
    from resumes.store.write_queue import WriteQueue
    from tui.session import UiSession

MAX_HELD = 200


@contextlib.contextmanager
def held_logs() -> Iterator[None]:
    """Hold back log lines for streams during the block, then write the last 200.

    Handlers that write to files continue as before.
    """
    root = logging.getLogger()
    streams = [handler for handler in root.handlers if type(handler) is logging.StreamHandler]
    holder = MemoryHandler(MAX_HELD)  # without a target it writes nothing
    holder.buffer = deque(maxlen=MAX_HELD)  # type: ignore[assignment]  # it is only appended to
    root.addHandler(holder)
    for handler in streams:
        root.removeHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(holder)
        for handler in streams:
            root.addHandler(handler)
        for record in holder.buffer:
            for handler in streams:
                handler.handle(record)


END_SIGNALS: Final = (signal.SIGHUP, signal.SIGTERM)

END_TIMEOUT_S: Final = 3.0
"""A closed terminal, which reads no output, can block the exit; so can a hanging read."""


def end_soon(code: int, finish: Callable[[], object] = lambda: None) -> None:
    """Run `finish` END_TIMEOUT_S from now, then end the process, whatever else it waits for."""

    def end() -> None:
        finish()
        os._exit(code)

    last_resort = threading.Timer(END_TIMEOUT_S, end)
    last_resort.daemon = True
    last_resort.start()


def finish_writes(queue: "WriteQueue", committed: threading.Event) -> None:
    """Close the queue once no write is in progress and none was committed for END_TIMEOUT_S.

    Until then a call may be between two of its writes. The queue must set `committed`.
    """
    while True:
        with queue.paused():
            pass  # the writes in progress have ended
        if not committed.is_set():
            break
        committed.clear()
        committed.wait(END_TIMEOUT_S)
    queue.close()


@contextlib.contextmanager
def ended_by_signals(app: App[int]) -> Iterator[None]:
    """Within the block, restore the terminal before a signal ends the process.

    The process ends within a few seconds in any case. Its exit code tells the signal.
    """

    def end(number: int, _: FrameType | None) -> None:
        code = 128 + number
        end_soon(code)
        try:
            asyncio.get_running_loop().call_soon_threadsafe(app.exit, None, code)
        except RuntimeError:  # the app is not running
            sys.exit(code)

    # Not handlers of the event loop, because the loop may be blocked.
    before = {number: signal.signal(number, end) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


HANGUP_CODE = 129
"""The exit code after the terminal has gone: 128 + SIGHUP."""


class TerminalDriver(LinuxDriver):
    """Textual's driver, but columns are aligned, and unreadable input is dropped, not fatal."""

    def write(self, data: str) -> None:
        super().write(aligned(data))

    def run_input_thread(self) -> None:
        """Pass keys to the app until the end; drop unreadable input."""
        threading.Thread(target=self._watch, daemon=True).start()
        while not self.exit_event.is_set():
            try:
                super().run_input_thread()
            except (ValueError, OverflowError):
                continue  # bytes that are not UTF-8, or numbers too large for any terminal
            except OSError:
                return  # the terminal is gone

    def _watch(self) -> None:
        """End the program when the terminal is closed, even without a signal."""
        poller = select.poll()
        poller.register(self.fileno, 0)
        poller.poll()
        if not self.exit_event.is_set():
            end_soon(HANGUP_CODE)
            self._app.call_later(self._app.exit, None, HANGUP_CODE)


ELSEWHERE: Final = "Use `resumes list`, `resumes show` and the other commands with --json instead"
DUMB: Final = ("", "dumb")
"""Values of TERM for terminals that can only print lines."""


def run(
    open_session: "Callable[[], UiSession]",
    *,
    read_first: "Callable[[], tuple[str, FirstRows | None]]" = lambda: ("dark", None),
    screen: str = "resumes",
    read_only: bool = False,
    stop: Callable[[], object] = lambda: None,
) -> int:
    """Run the terminal UI; return the exit code: 0, or 1 after a crash.

    Once the first frame is painted, a thread calls `read_first`, which returns the theme and the
    first rows if available, and then `open_session`. Their ResumesError is raised here after the
    terminal is restored. `stop` ends everything else that writes to the store. Raises
    InvalidArgument for an unknown screen, and without a suitable terminal.

    Once a session was opened, the process exits a few seconds after the UI and its last write,
    even while this call still waits for a hanging read: the caller must only exit after it.
    """
    if screen not in (names := [mode.name for mode in MODES]):
        raise InvalidArgument(f'Unknown screen "{screen[:80]}": use one of {", ".join(names)}')
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise InvalidArgument(f"The terminal UI needs a terminal. {ELSEWHERE}")
    if (kind := os.environ.get("TERM", "")) in DUMB:
        raise InvalidArgument(f'The terminal UI cannot run with TERM="{kind}". {ELSEWHERE}')
    app = ResumesApp(open_session, read_first=read_first, screen=screen, read_only=read_only)
    app.driver_class = TerminalDriver
    with ended_by_signals(app):
        asyncio.run(_run(app, stop))
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0


async def _run(app: ResumesApp, stop: Callable[[], object]) -> None:
    """Run the app, then finish its writes without waiting for a hanging read."""
    with held_logs():
        await app.run_async()
    if (session := app.session) is None:
        return
    if kept := [*session.deletions.waiting.values()]:
        # To standard error: the screen is already closed.
        titles = ", ".join(f'"{safe_text(deletion.title[:80])}"' for deletion in kept[:5])
        sys.stderr.write(f"{counted(len(kept), 'pending deletion')} canceled: {titles}\n")
    if (begun := session.deletions.under_way) is not None:
        title = safe_text(begun.title[:80])
        sys.stderr.write(f'Deletion under way, check whether it was carried out: "{title}"\n')
    queue, committed = session.store.write_queue, threading.Event()
    queue.observe = lambda *_: committed.set()
    end_soon(app.return_code or 0, partial(finish_writes, queue, committed))
    stop()  # may block, like a hanging read
