"""Threads in which a service works on its store in the background."""

import contextlib
import logging
import threading
from abc import abstractmethod
from typing import ClassVar, Final, Self

from resumes.errors import ResumesError
from resumes.store.store import Store

logger = logging.getLogger("resumes.store")

RETRY_S: Final = 5.0
"""The pause after a failure."""


class BackgroundThread:
    """A thread that calls `step` repeatedly while the context is entered.

    If it fails, it is retried, and the failure is logged once.
    """

    NAME: ClassVar[str]
    FAILURE: ClassVar[str]
    """The beginning of the log message, which the error follows."""

    def __init__(self, store: Store, *, interval_s: float, retry_s: float = RETRY_S) -> None:
        self._store = store
        self._interval_s = interval_s
        self._retry_s = retry_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.NAME, daemon=True)

    @abstractmethod
    def step(self) -> float:
        """Do a part of the work, and return the seconds until the next step.

        Raises the same errors as `Store.write`.
        """

    def __enter__(self) -> Self:
        self._thread.start()
        self._store.threads.append(self._thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._store.threads.remove(self._thread)
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        pause_s = self._interval_s
        is_failing = False
        while not self._stopping.wait(pause_s):
            try:
                pause_s = self.step()
                is_failing = False
            except Exception as error:  # no error may stop the thread
                with contextlib.suppress(Exception):
                    if not is_failing and isinstance(error, ResumesError):
                        logger.warning("%s: %s", self.FAILURE, error.message)
                    elif not is_failing:
                        logger.error(self.FAILURE, exc_info=error)
                is_failing = True
                pause_s = self._retry_s
