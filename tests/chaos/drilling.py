"""What befalls one PostgreSQL while two API processes and an importer work on it.

The load, and the check of what it leaves behind, are those of `benchmarks.cluster`, which does this
to three servers under Patroni.
"""

import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from benchmarks.cluster import checker, report
from benchmarks.cluster.checker import Finding, Kind
from benchmarks.cluster.history import History
from benchmarks.cluster.load import Load
from benchmarks.cluster.processes import tell, tree, wait_until_ended
from benchmarks.cluster.service import API_PROCESSES, Service, read_contents

from resumes.store import open_store
from tests.chaos.checker import check_soundness
from tests.support import postgres
from tests.support.api.serving import wait_until

ENOUGH: Final = 10
"""So many creates of each API process tell that the service works."""

WITHIN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What clients met while the server came to harm, and what is wrong since."""

    history: History
    findings: Sequence[Finding]
    outage_s: float
    """The longest time in which an API process has created nothing."""
    back_s: float
    """The longest time from the end of a harm until each API process had created something."""

    def count(self, *kinds: Kind) -> int:
        """How much is wrong in these ways."""
        return sum(finding.kind in kinds for finding in self.findings)

    @property
    def figures(self) -> dict[str, float]:
        """What is told of it."""
        answers = self.history.answers
        lost, doubled = self.count(Kind.LOST), self.count(Kind.DOUBLED)
        return {
            "requests": len(answers),
            "resumes_acknowledged": sum(bool(one.ids) for one in self.history.creations.values()),
            "files": len(self.history.dropped),
            "lost": lost,
            "duplicated": doubled,
            "other_errors": len(self.findings) - lost - doubled,
            "responses_with_status_5xx": sum(
                one.status is not None and one.status >= 500 for one in answers
            ),
            "unanswered": sum(one.status is None for one in answers),
            "longest_outage_s": self.outage_s,
            "recovery_time_s": self.back_s,
            "slowest_response_s": max(one.answered_s - one.asked_s for one in answers),
        }


class Drill:
    """A server that comes to harm, and the service over it."""

    def __init__(self, server: postgres.Server, service: Service, url: str) -> None:
        self._server = server
        self._service = service
        self._url = url

    def live_through(self, account: str, name: str, *, times: int) -> Outcome:
        """The harm of this name was done so often under load, and the service works again."""
        history = History(account)
        key = self._service.make_account(account)
        with Load(history, self._service.urls, key, self._service.inbox):
            _wait_until_served(history)
            begin_s = monotonic()
            back_s = 0.0
            for _ in range(times):
                HARMS[name](self._server, history)
                ended_s = monotonic()
                _wait_until_served(history)
                back_s = max(back_s, _first_served_s(history, ended_s) - ended_s)
            window = report.Window(begin_s, monotonic())
        self._wait_for_importer(history)
        findings = checker.check(history, read_contents(self._url, account))
        with open_store(self._url) as store:
            check_soundness(store)
        outages_s = [
            report.outage_s(history.answers, process, window) for process in range(API_PROCESSES)
        ]
        return Outcome(history, findings, max(outages_s), back_s)

    def _wait_for_importer(self, history: History) -> None:
        def is_done() -> bool:
            history.done = self._service.done_files(history.account)
            return len(history.done) == len(history.dropped)

        wait_until(is_done, within_s=WITHIN_S)


def _wait_until_served(history: History) -> None:
    """Each API process has created enough from now on."""
    since_s = monotonic()

    def is_served() -> bool:
        served = [one.process for one in history.answers_since(since_s) if one.is_create]
        return all(served.count(process) >= ENOUGH for process in range(API_PROCESSES))

    wait_until(is_served, within_s=WITHIN_S)


def _first_served_s(history: History, since_s: float) -> float:
    """When each API process had created something since then."""
    return max(
        min(
            one.answered_s
            for one in history.answers
            if one.is_create and one.process == process and one.answered_s > since_s
        )
        for process in range(API_PROCESSES)
    )


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Drill]:
    """The service works during the block, on a PostgreSQL 18 of its own."""
    with postgres.running("18") as server, contextlib.ExitStack() as stack:
        url = server.url(server.make_database())
        service = Service(url, folder / "service")
        stack.callback(service.end)
        service.start()
        yield Drill(server, service, url)


def _kill(server: postgres.Server, _: History) -> None:
    """SIGKILL of the postmaster; it is started again when its children have ended."""
    assert server.process is not None
    pids = tree(server.process.pid)
    server.process.kill()
    server.process.wait()
    assert wait_until_ended(pids, WITHIN_S)
    server.start()


def _restart(server: postgres.Server, _: History) -> None:
    """A fast shutdown, and a start."""
    server.stop()
    server.start()


def _freeze(server: postgres.Server, history: History) -> None:
    """All its processes stand still until each API process has refused something."""
    assert server.process is not None
    pids = tree(server.process.pid)
    began_s = monotonic()

    def is_refused() -> bool:
        refused = {one.process for one in history.answers_since(began_s) if one.status == 503}
        return len(refused) == API_PROCESSES

    tell(pids, signal.SIGSTOP)
    try:
        wait_until(is_refused, within_s=WITHIN_S)
    finally:
        tell(pids, signal.SIGCONT)


HARMS: Final[dict[str, Callable[[postgres.Server, History], None]]] = {
    "kill": _kill,
    "freeze": _freeze,
    "restart": _restart,
}
"""By name, what is done; each returns when nothing more is done to the server."""
