"""The supervisor of `up` and `demo`: it starts their processes, restarts those that die, ends them.

Two processes and not two threads: a backlog of files must not starve the API (pitfalls I16).
They are started as new interpreters, never forked, and end with us, since their standard
input is a pipe that only we hold.
"""

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cli.output import say
from resumes.errors import Conflict, StoreUnavailable
from resumes.settings import Settings
from resumes.store import Store, accounts
from resumes.store.accounts import AccountInfo
from server.service import listen

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
STEADY_S = 60.0
"""Who has lived this long is restarted without the pauses of before."""
READY_WITHIN_S = 30.0
END_WITHIN_S = 15.0
LOOK_EVERY_S = 0.2


class Child:
    """A `resumes` command in a process of its own, restarted with back-off when it dies.

    `name` is what we call it to people. Arguments may be changed between restarts. `environment`
    is added to ours.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.arguments = list(arguments)
        self._environment = dict(environment or {})
        self.first_line: str | None = None
        self._clock = clock
        self._has_spoken = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._started_at = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._restart_at: float | None = None

    @property
    def process_id(self) -> int | None:
        """Return the ID of the process that runs now; None if none does."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process; its standard error appears on ours."""
        self._restart_at = None
        self._started_at = self._clock()
        # -P: a folder named cli in the working directory must not be imported instead of ours. A session of
        # its own: Ctrl-C reaches us alone, and we end the children, once, in order.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cli", *self.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **self._environment},
        )
        threading.Thread(target=self._listen, args=[self._process], daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        # Reads on for ever, so that the child never blocks on a full pipe.
        assert process.stdout is not None
        with contextlib.suppress(ValueError), process.stdout as lines:
            for line in lines:
                if self.first_line is None:
                    self.first_line = line
                    self._has_spoken.set()

    def wait_for_line(self, stop: threading.Event) -> str | None:
        """Return the first line of its standard output; None if it ends, or `stop` is set, before that."""
        deadline = self._clock() + READY_WITHIN_S
        while not stop.is_set() and self._clock() < deadline:
            if self._has_spoken.wait(LOOK_EVERY_S / 4):
                return self.first_line
            if self.exit_code() is not None:
                # It may have spoken its last in the meantime.
                return self.first_line
        return None

    def exit_code(self) -> int | None:
        """Return how its process ended; None while it runs."""
        return None if self._process is None else self._process.poll()

    def tend(self) -> None:
        """Restart it if it has ended, after a pause that grows each time."""
        code = self.exit_code()
        if code is None:
            return
        now = self._clock()
        if self._restart_at is None:
            if now - self._started_at > STEADY_S:
                self._pause_s = FIRST_PAUSE_S
            self._restart_at = now + self._pause_s
            say(
                f"{self.name} ended ({_ending(code)}); restarting in {self._pause_s:g} s.",
                level=logging.WARNING,
            )
            self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)
        elif now >= self._restart_at:
            self._let_go()
            self.start()

    def ask_to_end(self) -> None:
        """Send it SIGTERM."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def wait_for_end(self, *, within_s: float = END_WITHIN_S) -> None:
        """Wait until it has ended; kill it after `within_s` seconds."""
        if self._process is None:
            return
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            say(f"{self.name} did not stop in time; killing it.")
            self._process.kill()
            self._process.wait()
        self._let_go()

    def _let_go(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process = None


def _ending(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


@dataclass
class Supervisor:
    """The children, and one end for all of them."""

    children: list[Child] = field(default_factory=list)

    def add(self, child: Child) -> Child:
        """Start the child, and supervise it from now on."""
        self.children.append(child)
        child.start()
        return child

    def watch(self, stop: threading.Event) -> None:
        """Restart children that end, until asked to stop."""
        while not stop.wait(LOOK_EVERY_S):
            for child in self.children:
                child.tend()

    def end(self) -> None:
        """End all children."""
        for child in self.children:
            child.ask_to_end()
        for child in self.children:
            child.wait_for_end()


@contextlib.contextmanager
def supervising() -> Iterator[Supervisor]:
    """Yield a supervisor whose children are ended after the block, however it ends."""
    supervisor = Supervisor()
    try:
        yield supervisor
    finally:
        supervisor.end()


def start_api(
    supervisor: Supervisor,
    arguments: Sequence[str],
    stop: threading.Event,
    *,
    environment: Mapping[str, str] | None = None,
) -> str | None:
    """Start the API. Return its address, or None if asked to stop in the meantime.

    Raises StoreUnavailable when it does not come up; it has said why on standard error.
    """
    words = [*arguments, "--until-stdin-ends", "--json"]
    child = supervisor.add(Child("The API", words, environment=environment))
    line = child.wait_for_line(stop)
    if stop.is_set():
        return None
    if line is None:
        raise StoreUnavailable("The API did not start; see above")
    url = str(json.loads(line)["url"])
    # Restarted, it keeps its address, also one that was free by chance.
    port = url.rpartition(":")[2].strip("/")
    child.arguments += ["--port", port]
    return url


def start_importer(
    supervisor: Supervisor,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Start the importer; its outcomes appear on our standard error."""
    words = [*arguments, "--until-stdin-ends"]
    supervisor.add(Child("The importer", words, environment=environment))


PLAN = "business"
"""The plan of an account that nobody chose a plan for."""


def find_or_make_account(store: Store, inbox: Path, name: str) -> AccountInfo:
    """Return the account, with a folder in the inbox; a new one is on the business plan."""
    account = accounts.find_account(store, name) or _make_account(store, name)
    (inbox / name).mkdir(parents=True, exist_ok=True)
    return account


def _make_account(store: Store, name: str) -> AccountInfo:
    try:
        return accounts.create_account(store, name, plan=PLAN)
    except Conflict:  # another machine has made it just now
        return accounts.get_account(store, name)


def check_address(settings: Settings) -> None:
    """Check that the API can listen where the settings say. Raises what a server that cannot would:
    asked before anything is made, so that what was made is not left without a word about it."""
    listen(settings).close()


def serve_arguments(settings: Settings) -> list[str]:
    """Return the command line of the API's process."""
    access_log = {None: [], True: ["--access-log"], False: ["--no-access-log"]}
    return [
        *_home_arguments(settings),
        "serve",
        *("--port", str(settings.port)),
        *("--log-format", settings.log_format),
        *access_log[settings.access_log],
    ]


def watch_arguments(settings: Settings) -> list[str]:
    """Return the command line of the importer's process."""
    return [
        *_home_arguments(settings),
        "watch",
        str(settings.inbox),
        *("--log-format", settings.log_format),
    ]


def _home_arguments(settings: Settings) -> list[str]:
    return ["--home", str(settings.home.absolute())]
