"""Write log lines to a descriptor in a thread, so that callers do not wait for the log."""

import os
import select
import threading
from collections import deque

MAX_WAITING = 20_000
"""The maximum number of lines (a few megabytes) that wait for a slow reader; others are dropped."""

BATCH_INTERVAL_S = 0.05
"""The time for which lines are collected to be written together."""

MAX_WRITE_BYTES = select.PIPE_BUF
"""The maximum size of an atomic write, between whose bytes no other process can write."""

CLOSE_TIMEOUT_S = 2.0
"""The time that `close` waits for a slow reader."""


class LogWriter:
    """Writes lines in a thread. Callers never wait and never get an error.

    If the log cannot be written, because the disk is full or the reader is slow or has exited,
    lines are dropped and counted. All methods are thread-safe. At most `max_waiting` lines wait for
    a slow reader.
    """

    def __init__(self, descriptor: int, *, max_waiting: int = MAX_WAITING) -> None:
        self._descriptor = descriptor
        self._max_waiting = max_waiting
        self._waiting: deque[bytes] = deque()
        self._has_lines = threading.Event()
        self._is_closing = threading.Event()
        self._has_ended = False
        self._is_cut_off = False
        self.dropped_count = 0
        """The number of lines that were not written."""

        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def write(self, lines: str) -> None:
        """Write the text. This method makes the object a stream for a handler of `logging`."""
        self.put(lines.encode("utf-8", "backslashreplace"))

    def put(self, line: bytes) -> None:
        """Write the line, which includes its line break, or count it as dropped."""
        if len(self._waiting) >= self._max_waiting:
            self.dropped_count += 1
            return
        if self._has_ended:
            self._write([line])
            return
        self._waiting.append(line)
        if not self._has_lines.is_set():
            self._has_lines.set()

    def close(self, *, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Write the waiting lines, for at most `timeout_s`. Calling it twice is safe.

        Lines that are added later are written immediately.
        """
        self._is_closing.set()
        self._has_lines.set()
        self._thread.join(timeout_s)
        self._has_ended = not self._thread.is_alive()
        while self._has_ended and self._waiting:  # added while the thread was ending
            self._write(self._next_batch())

    def _run(self) -> None:
        is_last = False
        while not is_last:
            self._has_lines.wait()
            is_last = self._is_closing.wait(BATCH_INTERVAL_S)
            self._has_lines.clear()
            while self._waiting:
                self._write(self._next_batch())

    def _next_batch(self) -> list[bytes]:
        lines = [self._waiting.popleft()]
        size_bytes = len(lines[0])
        while self._waiting and size_bytes + len(self._waiting[0]) < MAX_WRITE_BYTES:
            lines.append(self._waiting.popleft())
            size_bytes += len(lines[-1])
        return lines

    def _write(self, lines: list[bytes]) -> None:
        # If the previous line was cut off, end it first, so that the next one is readable.
        rest = memoryview((b"\n" if self._is_cut_off else b"") + b"".join(lines))
        try:
            while rest:
                try:
                    written_bytes = os.write(self._descriptor, rest)
                except BlockingIOError:
                    # Another process that shares the descriptor has made it non-blocking.
                    select.select([], [self._descriptor], [], BATCH_INTERVAL_S)
                    continue
                self._is_cut_off = rest[written_bytes - 1] != ord("\n")
                rest = rest[written_bytes:]
        except OSError:
            self.dropped_count += bytes(rest).count(b"\n")
