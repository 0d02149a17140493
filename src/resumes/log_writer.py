"""Where a service's log lines go: a descriptor, written by a thread, so that no log is waited for."""

import os
import select
import threading
from collections import deque

MAX_WAITING = 20_000
"""Lines that may wait for a slow reader, some megabytes; what comes beyond them is dropped."""

GATHER_S = 0.05
"""Lines are written together that come within this time."""

PIECE_BYTES = select.PIPE_BUF
"""Whole lines up to so many bytes are written at once: no other process comes between them."""

CLOSE_S = 2.0
"""How long the end waits for a reader that is slow."""


class LogWriter:
    """Writes lines behind their callers, who never wait and never see an error.

    A log that cannot be written (a full disk, a reader that is gone or slow) costs lines, which
    are counted, and nothing else. Any thread may call anything. At most `max_waiting` lines wait
    for a slow reader.
    """

    def __init__(self, descriptor: int, *, max_waiting: int = MAX_WAITING) -> None:
        self._descriptor = descriptor
        self._max_waiting = max_waiting
        self._waiting: deque[bytes] = deque()
        self._has_lines = threading.Event()
        self._is_closing = threading.Event()
        self._is_over = False
        self._is_torn = False
        self.dropped_count = 0
        """Lines that nobody will see."""
        self._thread = threading.Thread(target=self._live, name="log-writer", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """The line, which ends with its line end, will be written, or was counted as dropped."""
        if len(self._waiting) >= self._max_waiting:
            self.dropped_count += 1
            return
        if self._is_over:
            self._write([line])
            return
        self._waiting.append(line)
        if not self._has_lines.is_set():
            self._has_lines.set()

    def close(self, *, within_s: float = CLOSE_S) -> None:
        """What was put is written, unless that takes longer. Safe to call twice.

        What is put later is written at once.
        """
        self._is_closing.set()
        self._has_lines.set()
        self._thread.join(within_s)
        self._is_over = not self._thread.is_alive()
        while self._is_over and self._waiting:  # put while the thread was ending
            self._write(self._take())

    def _live(self) -> None:
        is_last = False
        while not is_last:
            self._has_lines.wait()
            is_last = self._is_closing.wait(GATHER_S)
            self._has_lines.clear()
            while self._waiting:
                self._write(self._take())

    def _take(self) -> list[bytes]:
        lines = [self._waiting.popleft()]
        size_bytes = len(lines[0])
        while self._waiting and size_bytes + len(self._waiting[0]) < PIECE_BYTES:
            lines.append(self._waiting.popleft())
            size_bytes += len(lines[-1])
        return lines

    def _write(self, lines: list[bytes]) -> None:
        # A line that was cut off is ended first, so that the next can be read.
        rest = memoryview((b"\n" if self._is_torn else b"") + b"".join(lines))
        try:
            while rest:
                rest = rest[self._write_some(rest) :]
        except OSError:
            self.dropped_count += bytes(rest).count(b"\n")

    def _write_some(self, content: memoryview) -> int:
        try:
            written_bytes = os.write(self._descriptor, content)
        except BlockingIOError:
            # Somebody who shares the descriptor made it non-blocking.
            select.select([], [self._descriptor], [], GATHER_S)
            return 0
        self._is_torn = content[written_bytes - 1] != ord("\n")
        return written_bytes
