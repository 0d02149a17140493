"""The importer's row in the store, by which people elsewhere see that it is there and how it fares."""

import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from importer.health import Health
from importer.names import escaped
from importer.rounds import Importer
from resumes.clock import timestamp
from resumes.errors import StoreError
from resumes.store import Store, importers

logger = logging.getLogger("resumes.importer")

BEAT_S = 10.0
"""How often the row is written anew; and at once when the health changes."""


DEADLINE_S = 1.0


class Presence:
    """During the block the importer is announced; afterwards it is gone."""

    def __init__(
        self,
        store: Store,
        root: Path,
        importer: Importer,
        health: Health,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._root = root
        self._importer = importer
        self._health = health
        self._monotonic = monotonic
        self._id = importer.id
        self._started_at = timestamp(store.clock())
        self._due = monotonic()
        self._said: object = None

    def __enter__(self) -> Self:
        self.beat()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with contextlib.suppress(StoreError):
            importers.leave(self._store, self._id, deadline_s=DEADLINE_S)

    def beat(self) -> None:
        """The row says how the importer fares now, if it is time or that has changed."""
        if self._importer.stands_by:
            return  # nothing of the folder depends on this one
        findings = self._health.findings()
        if findings == self._said and self._monotonic() < self._due:
            return
        self._due = self._monotonic() + BEAT_S
        self._said = findings
        row = importers.Importer(
            id=self._id,
            host=socket.gethostname(),
            pid=os.getpid(),
            root=escaped(str(self._root)),
            state=importers.State(self._health.state.value),
            findings=tuple(
                importers.Finding(one.key, importers.State(one.state.value), one.sentence)
                for one in findings
            ),
            waiting=self._importer.progress().waiting,
            started_at=self._started_at,
        )
        try:
            importers.announce(self._store, row, deadline_s=DEADLINE_S)
        except StoreError as error:
            # The turns say that the store is out of reach; this is no more than a sign of life,
            # and the next one says what this one would have.
            logger.info("Could not announce the importer: %s", error.message)
