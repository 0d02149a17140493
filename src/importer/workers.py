"""The processes that help an importer with a backlog, as the importer sees them."""

import contextlib
import fcntl
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from queue import SimpleQueue

from importer.worker import Answer, Batch, Setup

BATCHES_AHEAD = 2
"""Batches that a worker has at once, so that it need not wait for the next."""

PIPE_BYTES = 1024 * 1024

END_S = 2.0
"""How long a worker is waited for that was told to end."""


class Worker:
    """A process that imports the files of batches. `on_answer` is called from another thread."""

    def __init__(self, setup: Setup, on_answer: Callable[[], None]) -> None:
        self.slot = setup.slot
        self.batches: deque[Batch] = deque()
        """Those that are not worked off."""
        self.is_ready = False
        self.under_way = 0
        """Files that it read and did not bring to their end, as last said."""
        self.is_stuck = False
        """Whether it cannot go on with them for now, as last said."""
        self._on_answer = on_answer
        self._answers: SimpleQueue[Answer | None] = SimpleQueue()
        task_end, self._in = _pipe(to_child=True)
        answer_end, self._out = _pipe(to_child=False)
        # -P: nothing that lies in the current folder is imported. Not -m: what is pickled there
        # must be known here by the same name.
        command = [sys.executable, "-P", "-c", "from importer.worker import main; main()"]
        try:
            self._process = subprocess.Popen(command, stdin=task_end, stdout=answer_end)
        except OSError:
            self._in.close()
            self._out.close()
            raise
        finally:
            os.close(task_end)
            os.close(answer_end)
        self.is_alive = self._send(setup)
        self._reader = threading.Thread(target=self._read, name="worker-answers", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def is_free(self) -> bool:
        """Whether it should get another batch."""
        return self.is_ready and self.is_alive and len(self.batches) < BATCHES_AHEAD

    @property
    def has_answers(self) -> bool:
        """Whether something came back."""
        return not self._answers.empty()

    def kill(self) -> None:
        """The process ends at once; what it had under way is gone on with."""
        self._process.kill()

    def give(self, batch: Batch) -> None:
        """The batch is the worker's."""
        self.batches.append(batch)
        if not self._send(batch):
            self.is_alive = False

    def iter_answers(self) -> Iterator[tuple[Batch | None, Answer]]:
        """What came back since it was last asked, with the batch that it is about. A worker that
        died is not alive any more, and keeps the batches that it did not answer."""
        while self.has_answers:
            answer = self._answers.get()
            if answer is None:
                self.is_alive = False
                continue
            self.is_ready = True
            self.under_way = answer.under_way
            self.is_stuck = answer.is_stuck
            yield (None if answer.left is None else self.batches.popleft()), answer

    def end(self) -> None:
        """The process has ended; by force, if it does not within two seconds."""
        self._in.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._out.close()
        self.is_alive = False

    def _send(self, message: object) -> bool:
        try:
            self._in.send(message)
        except OSError:
            return False
        return True

    def _read(self) -> None:
        # A thread of its own: a worker that cannot get rid of its answers takes no batches.
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._answers.put(self._out.recv())
                self._on_answer()
        self._answers.put(None)
        self._on_answer()


def _pipe(*, to_child: bool) -> tuple[int, Connection]:
    """A child's end of a pipe, and ours."""
    reading_end, writing_end = os.pipe()
    with contextlib.suppress(OSError, AttributeError):
        # Room for all batches that a worker has, so that giving it one never waits for it.
        fcntl.fcntl(writing_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    if to_child:
        return reading_end, Connection(writing_end, readable=False)
    return writing_end, Connection(reading_end, writable=False)
