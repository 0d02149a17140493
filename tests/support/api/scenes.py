"""A home with an account, and servers on it that may come to harm and start anew."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from resumes.store import Store, accounts, api_keys, plans, stored_resumes
from resumes.store.plans import PlanChange
from tests.support import programs
from tests.support.api.load import RESUMES, Answer, Wire, a_request
from tests.support.api.serving import wait_until
from tests.support.stores import open_home
from tests.support.waiting import end, workers_of

SECRETS = re.compile(rb"enh_live_\w{4,}|planted|@example\.com")
"""What no log may hold: keys, and what the bodies of these tests say."""


@dataclass(frozen=True)
class Server:
    """A server that answers at `url`, and the file of its log."""

    url: str
    process: "subprocess.Popen[str]"
    log: Path

    @property
    def workers(self) -> list[int]:
        """The process ids of a supervisor's workers."""
        return workers_of(self.process.pid)

    @property
    def serving_pids(self) -> list[int]:
        """The processes that answer requests."""
        return self.workers or [self.process.pid]

    def wires(self, request: bytes) -> list[Wire]:
        """A connection to each worker, which has answered this request on it."""
        wires = []
        for worker in self.workers:
            others = [pid for pid in self.workers if pid != worker]
            with stopped(others):
                wires.append(Wire(self.url))
                wires[-1].call(request)
        return wires

    def kill(self) -> None:
        """The server was killed, and nobody listens any more."""
        self.process.kill()
        self.process.wait(60)
        wait_until(lambda: not is_listening(self.url), within_s=60)

    def stop(self, *, within_s: float = 60) -> int:
        """The exit code of a server that was asked to end. Raises TimeoutExpired."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_s)

    def resident_bytes(self) -> int:
        """The memory of the processes that answer."""
        return sum(map(_resident_bytes, self.serving_pids))


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    """The processes stand still during the block."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def is_listening(url: str) -> bool:
    """Whether a connection can be made."""
    try:
        Wire(url).close()
    except OSError:
        return False
    return True


class Scene:
    """A home whose account "ada" may have any number of resumes; it may be moved elsewhere."""

    def __init__(self, home: Path, logs: Path) -> None:
        self.home = home
        self.logs = logs
        home.mkdir(exist_ok=True)
        logs.mkdir(exist_ok=True)
        with self.store() as store:
            plans.set_plan_limits(store, PlanChange("business", None))
        self.account_id, self.key = self.add_account("ada")

    def store(self) -> Store:
        """The store, opened by this process."""
        return open_home(self.home)

    def add_account(self, name: str) -> tuple[str, str]:
        """The id of a new account, and a key."""
        with self.store() as store:
            account = accounts.create_account(store, name, plan="business")
            return account.id, api_keys.create_key(store, name).secret

    @contextmanager
    def served(
        self, *flags: str, within: tuple[str, ...] = (), **environment: str
    ) -> Iterator[Server]:
        """A server that listens; it is gone, and its log is clean, when the block ends."""
        log = self.logs / f"{len(list(self.logs.iterdir()))}.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [*within, *programs.command(self.home, "serve", "--json", "--port", "0", *flags)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **environment},
            )
        with process:
            try:
                assert process.stdout is not None
                told = process.stdout.readline()
                assert told, log.read_text()
                yield Server(json.loads(told)["url"], process, log)
            finally:
                process.send_signal(signal.SIGCONT)
                end(process)
        found = SECRETS.search(log.read_bytes())
        assert found is None, f"{log} holds {found!r}"

    def walk(self, url: str, after: str = "") -> list[tuple[str, str]]:
        """Ids and titles of all pages from a cursor on, as a client gets them."""
        entries: list[tuple[str, str]] = []
        cursor: str | None = after
        with Wire(url) as wire:
            while cursor is not None:
                page = wire.call(a_request(self.key, path=page_of(cursor))).json
                entries += [(entry["id"], entry["title"]) for entry in page["resumes"]]
                cursor = page["pagination"]["cursor"]
        return entries

    def rows(self) -> int:
        """How many resumes are stored; the account's counter says the same."""
        with self.store() as store:
            assert accounts.list_wrong(store) == []
            return accounts.get_account(store, "ada").resume_count

    def is_whole(self, store: Store, resume_id: str, title: str) -> bool:
        """Whether the resume is stored with all that `load.a_body` sent."""
        stored = json.loads(stored_resumes.get_resume(store, self.account_id, resume_id).document)
        text = stored["sections"]["summaries"]["items"][0]["text"]
        return bool(stored["header"]["name"] == title and text == f"The text of {title}.")


def page_of(cursor: str, limit: int = 100) -> str:
    """The path of a page."""
    return f"{RESUMES}?limit={limit}&cursor={quote(cursor)}"


def is_unavailable(answer: Answer) -> bool:
    """Whether the answer is a 503 as it has to be: in the one shape, with when to try again."""
    body = answer.json
    return bool(
        answer.status == 503
        and int(answer.headers["retry-after"]) >= 1
        and body["status"] == 503
        and body["error"]
        and body["requestId"] == answer.headers["x-request-id"]
    )


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
