"""A drill: the events one after the other, each with an account, a load and a check of its own."""

import contextlib
import time
from pathlib import Path
from typing import Final

from benchmarks.cluster import checker, report
from benchmarks.cluster.checker import Finding
from benchmarks.cluster.cluster import Cluster
from benchmarks.cluster.events import Event
from benchmarks.cluster.history import History
from benchmarks.cluster.load import Load
from benchmarks.cluster.pooler import Pooler
from benchmarks.cluster.service import Service, read_contents

QUIET_S: Final = 3.0
"""How long the load runs before an event, and after the cluster is whole again."""

SERVED_S: Final = 60.0
"""How long the API may take to serve once the cluster is whole again."""

IMPORT_S: Final = 60.0
"""How long the importer may take for what was dropped."""


class Drill:
    """A cluster, and the service over it, straight or through a pooler."""

    def __init__(
        self, cluster: Cluster, pooler: Pooler, pgbouncer: Path | None, folder: Path
    ) -> None:
        self._cluster = cluster
        self._pooler = pooler
        self._pgbouncer = pgbouncer
        self._folder = folder
        self._running = contextlib.ExitStack()
        self._service: Service | None = None
        self._is_pooled = False
        self._histories: list[History] = []

    def run(self, event: Event) -> tuple[list[str], list[Finding]]:
        """The event has happened under load: its row of the table, and what is wrong since."""
        service = self._serve(is_pooled=event.is_pooled)
        history = History(event.name)
        key = service.make_account(history.account)
        self._histories.append(history)
        with Load(history, service.urls, key, service.inbox):
            time.sleep(QUIET_S)
            begin_s = time.monotonic()
            event.happen(self._cluster)
            self._cluster.wait_until_whole()
            _wait_until_served(history, len(service.urls))
            time.sleep(QUIET_S)
            window = report.Window(begin_s, time.monotonic())
        self._wait_for_importer(service, history)
        findings = [
            *self._check(history),
            *report.misses(history, window, len(service.urls), is_planned=event.is_planned),
        ]
        return report.row(event.name, history, window, findings, len(service.urls)), findings

    def errors(self) -> list[str]:
        """What the last event's load was answered with 5xx."""
        return report.errors(self._histories[-1].answers)

    def check_all(self) -> list[Finding]:
        """What is wrong with any account now, after all that came later."""
        return [finding for history in self._histories for finding in self._check(history)]

    def end(self) -> None:
        """Neither service nor pooler run."""
        self._running.close()

    def _serve(self, *, is_pooled: bool) -> Service:
        if self._service is not None and self._is_pooled == is_pooled:
            return self._service
        self.end()
        name, address = "straight", self._cluster.url()
        if is_pooled:
            assert self._pgbouncer is not None, "there is no PgBouncer"
            self._running.callback(self._pooler.end)
            name, address = (
                "pooled",
                self._pooler.start(self._pgbouncer, self._cluster.leader().port),
            )
        service = Service(address, self._folder / f"{name}-{len(self._histories)}")
        self._running.callback(service.end)
        service.start()
        self._service, self._is_pooled = service, is_pooled
        return service

    def _check(self, history: History) -> list[Finding]:
        return checker.check(history, read_contents(self._cluster.leader_url(), history.account))

    def _wait_for_importer(self, service: Service, history: History) -> None:
        """All files have been put away, or their time is over."""
        ends_at = time.monotonic() + IMPORT_S
        while len(history.done) < len(history.dropped) and time.monotonic() < ends_at:
            time.sleep(0.5)
            history.done = service.done_files(history.account)


def _wait_until_served(history: History, processes: int) -> None:
    """Each API process has created something from now on, or its time is over."""
    began_s = time.monotonic()
    while time.monotonic() < began_s + SERVED_S:
        answers = history.answers_since(began_s)
        if {one.process for one in answers if one.is_create} == set(range(processes)):
            return
        time.sleep(0.1)
