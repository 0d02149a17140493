"""Running the terminal UI, for `resumes tui`.

The imports of this module must not load the store, because that would delay the first frame.
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
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, Final

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

from resumes.errors import InvalidArgument
from resumes.text import counted
from tui.app import ResumesApp
from tui.keys import MODES
from tui.text import safe_lines, safe_text
from tui.widths import aligned

if TYPE_CHECKING:
    from resumes.store.sqlite.first_rows import FirstRows
    from resumes.store.write_queue import WriteQueue
    from tui.session import UiSession

MAX_HELD = 200


@contextlib.contextmanager
def held_logs() -> Iterator[None]:
    """Hold back log lines for the terminal during the block, then write the last MAX_HELD lines.

    Handlers that write to files are not affected.
    """
    root, held = logging.getLogger(), deque[str](maxlen=MAX_HELD)
    holder, handlers = logging.StreamHandler(SimpleNamespace(write=held.append)), root.handlers
    holder.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
    files = [handler for handler in handlers if type(handler) is not logging.StreamHandler]
    root.handlers = [holder, *files]
    try:
        yield
    finally:
        root.handlers = handlers
        with contextlib.suppress(OSError):  # the terminal may be closed
            sys.stderr.write("\n".join(safe_lines("".join(held))))


END_SIGNALS: Final = (signal.SIGHUP, signal.SIGTERM)

END_TIMEOUT_S: Final = 3.0
"""The maximum time for exiting, which a closed terminal or a hanging read can block."""


def end_soon(code: int, finish: Callable[[], object] = lambda: None) -> None:
    """After END_TIMEOUT_S, run `finish` and end the process, even if threads are still waiting."""

    def end() -> None:
        finish()
        os._exit(code)

    last_resort = threading.Timer(END_TIMEOUT_S, end)
    last_resort.daemon = True
    last_resort.start()


def finish_writes(queue: "WriteQueue", committed: threading.Event) -> None:
    """Close the queue once no write is in progress and none was committed for END_TIMEOUT_S.

    After a commit, a call may be about to write again. The queue must set `committed`.
    """
    while True:
        with queue.paused():
            pass  # wait for the writes in progress
        if not committed.is_set():
            break
        committed.clear()
        committed.wait(END_TIMEOUT_S)
    queue.close()


@contextlib.contextmanager
def ended_by_signals(app: App[int]) -> Iterator[None]:
    """Within the block, restore the terminal before a signal ends the process.

    The process ends within a few seconds, even if it hangs. Its exit code is 128 + the signal.
    """

    def end(number: int, _: FrameType | None) -> None:
        code = 128 + number
        end_soon(code)
        try:
            asyncio.get_running_loop().call_soon_threadsafe(app.exit, None, code)
        except RuntimeError:  # the app is not running
            sys.exit(code)

    # The event loop's own signal handlers would not run while the loop is blocked.
    before = {number: signal.signal(number, end) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


HANGUP_CODE = 129
"""The exit code after the terminal was closed: 128 + SIGHUP."""


class TerminalDriver(LinuxDriver):
    """Textual's driver, except that it aligns columns and drops unreadable input."""

    def write(self, data: str) -> None:
        super().write(aligned(data))

    def run_input_thread(self) -> None:
        """Pass keys to the app until the driver stops; drop unreadable input."""
        threading.Thread(target=self._watch, daemon=True).start()
        while not self.exit_event.is_set():
            try:
                super().run_input_thread()
            except (ValueError, OverflowError):
                continue  # bytes that are not UTF-8, or numbers too large for any terminal
            except OSError:
                return  # the terminal was closed

    def _watch(self) -> None:
        """End the program when the terminal is closed, even if no signal arrives."""
        poller = select.poll()
        poller.register(self.fileno, 0)
        poller.poll()
        if not self.exit_event.is_set():
            end_soon(HANGUP_CODE)
            self._app.call_later(self._app.exit, None, HANGUP_CODE)


ELSEWHERE: Final = "Use `resumes list`, `resumes show` and the other commands with --json instead"


def run(
    open_session: "Callable[[], UiSession]",
    *,
    read_first: "Callable[[], tuple[str, FirstRows | None]]" = lambda: ("dark", None),
    screen: str = "resumes",
    read_only: bool = False,
    stop: Callable[[], object] = lambda: None,
) -> int:
    """Run the terminal UI and return the exit code: 0, 1 after a crash, or 128 + a signal.

    Once the first frame is painted, a thread calls `read_first`, which returns the theme and, if
    available, the first rows; then it calls `open_session`. If one of them raises ResumesError, the
    error is raised here after the terminal is restored. `stop` ends everything else that writes to
    the store. Raises InvalidArgument if the screen is unknown or the terminal is not suitable.

    If a session was opened, only exit after this call: the process ends a few seconds after the UI
    has ended and its last write is done, even if this call still waits for a hanging read.
    """
    if screen not in (names := [mode.name for mode in MODES]):
        raise InvalidArgument(f'Unknown screen "{screen[:80]}": use one of {", ".join(names)}')
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise InvalidArgument(f"The terminal UI needs a terminal. {ELSEWHERE}")
    if (kind := os.environ.get("TERM", "")) in ("", "dumb"):  # such a terminal can only print lines
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
        # Use standard error because the screen is already closed.
        titles = ", ".join(f'"{safe_text(deletion.title[:80])}"' for deletion in kept[:5])
        sys.stderr.write(f"{counted(len(kept), 'pending deletion')} canceled: {titles}\n")
    if (begun := session.deletions.under_way) is not None:
        title = safe_text(begun.title[:80])
        sys.stderr.write(f'Deletion under way, check whether it was carried out: "{title}"\n')
    queue, committed = session.store.write_queue, threading.Event()
    queue.observe = lambda *_: committed.set()
    end_soon(app.return_code or 0, partial(finish_writes, queue, committed))
    stop()  # may block, but the timer for the exit is already running
