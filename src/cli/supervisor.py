"""Supervise the API and the importer for `up` and `demo`: start, restart and end them.

The API and the importer are processes, not threads, because a backlog of files must not slow down
the API (pitfalls I16). They are started as new interpreters, never forked, and end with the
supervisor, because their standard input is a pipe that only the supervisor holds.
"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from cli.logs import narrating
from cli.output import say
from resumes.errors import StoreUnavailable

if TYPE_CHECKING:
    from resumes.settings import Settings

FIRST_PAUSE_S: Final = 0.5
MAX_PAUSE_S: Final = 30.0
STEADY_S: Final = 60.0
"""The run time after which a process is restarted without the accumulated back-off."""
READY_WITHIN_S: Final = 330.0
"""The time limit for the start. The API's own start timeout is shorter, so the API reports it."""
END_WITHIN_S: Final = 65.0
"""The time limit for the end, which is longer than the API waits for requests and workers."""
POLL_INTERVAL_S: Final = 0.2


class Child:
    """A `resumes` command in its own process, which is restarted with back-off when it ends.

    `name` is its name in messages. `arguments` may be changed between restarts. `environment` is
    added to the environment of this process.
    """

    def __init__(self, name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._name = name
        self.arguments = [*arguments, "--until-stdin-ends"]
        self._environment = environment
        self._first_lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.process: subprocess.Popen[str]
        self._pause_s = FIRST_PAUSE_S
        self.start()

    def start(self) -> None:
        """Start the process, which inherits standard error. Raises OSError."""
        self._restart_at_s: float | None = None
        self._started_at_s = time.monotonic()
        # With -P, a folder named cli in the working directory is not imported. In a new session,
        # the child does not receive Ctrl-C: the supervisor ends the children once and in order.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cli", *self.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **self._environment},
        )
        threading.Thread(target=self._listen, args=[self.process], daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with contextlib.suppress(ValueError), process.stdout as lines:
            self._first_lines.put(next(lines, None))
            for _ in lines:  # read to the end, so that a full pipe never blocks the child
                pass

    def wait_for_line(self, stop: threading.Event) -> str | None:
        """Return the first line of its standard output, or None if it ends or `stop` is set."""
        deadline_s = time.monotonic() + READY_WITHIN_S
        while not stop.is_set() and time.monotonic() < deadline_s:
            with contextlib.suppress(queue.Empty):
                return self._first_lines.get(timeout=POLL_INTERVAL_S / 4)
        return None

    def restart_if_dead(self) -> None:
        """Restart the process if it has ended, after a pause that increases each time."""
        code = self.process.poll()
        if code is None:
            return
        now_s = time.monotonic()
        if self._restart_at_s is None:
            if now_s - self._started_at_s > STEADY_S:
                self._pause_s = FIRST_PAUSE_S
            self._restart_at_s = now_s + self._pause_s
            ending = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
            say(
                f"{self._name} ended ({ending}); restarting in {self._pause_s:g} s.",
                level="warning",
            )
            self._pause_s = min(self._pause_s * 2, MAX_PAUSE_S)
        elif now_s >= self._restart_at_s:
            self._close_input()
            try:
                self.start()
            except OSError as error:  # for example, no memory or processes are left
                self._restart_at_s = now_s + self._pause_s
                why = f"cannot be restarted yet ({error.strerror}); trying again in {self._pause_s:g} s."
                say(f"{self._name} {why}", level="warning")
                self._pause_s = min(self._pause_s * 2, MAX_PAUSE_S)

    def wait_for_end(self) -> None:
        """Wait for the process to end, and kill it after END_WITHIN_S."""
        try:
            self.process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            say(f"{self._name} did not stop in time; killing it.")
            self.process.kill()
            self.process.wait()
        self._close_input()

    def _close_input(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()


@dataclass(frozen=True, slots=True)
class Services:
    """The commands of the API and the importer, and what `up` prints about them."""

    api: Sequence[str]
    importer: Sequence[str]
    logs_json: bool
    inbox: str = ""
    """The inbox of the account that the first run creates."""
    key_file: str | None = None
    """The file that contains the first key, or None if it does not exist."""
    hints: Sequence[str] = ()
    """Commands that the user can try."""

    @classmethod
    def of(cls, settings: "Settings", **more: Any) -> Self:
        """Return the services with these settings."""
        home = ["--home", str(settings.home.absolute())]
        log_format = ["--log-format", settings.log_format.value]
        access_log = {None: [], True: ["--access-log"], False: ["--no-access-log"]}
        port = ["--port", str(settings.port)]
        return cls(
            [*home, "serve", "--json", *port, *access_log[settings.access_log], *log_format],
            [*home, "watch", str(settings.inbox.absolute()), *log_format],
            settings.log_format == "json",
            **more,
        )


def environment_of(settings: "Settings") -> Mapping[str, str]:
    """Return the environment of the services, which keep their store after a restart even if the
    configuration has changed.

    The address is not an option, because it can contain a password, and every user of the machine
    can read command lines.
    """
    return {"RESUMES_DATABASE": settings.database_url}


class Supervisor:
    """Supervises the API and the importer. This context manager ends them on exit.

    `environment` is added to the environment of this process. Messages in the block are written to
    the same log. If the log cannot be written, no process ends.
    """

    def __init__(self, services: Services, environment: Mapping[str, str]) -> None:
        self._services = services
        self._environment = environment
        self._children: list[Child] = []
        self._log = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._log.enter_context(narrating(as_json=self._services.logs_json))
        return self

    def __exit__(self, *_: object) -> None:
        with self._log:
            for child in self._children:
                child.process.terminate()
            for child in self._children:
                child.wait_for_end()

    def start(self, stop: threading.Event) -> str | None:
        """Start the API, then the importer, whose outcomes appear on standard error.

        Return the API's address, or None if `stop` is set before the address is known. Raises
        StoreUnavailable if the API, which reports the reason on standard error, does not start.
        """
        child = self._start("The API", self._services.api)
        line = child.wait_for_line(stop)
        if stop.is_set():
            return None
        if line is None:
            if child.process.poll() is None:
                within = f"within {READY_WITHIN_S:g} seconds"
                raise StoreUnavailable(f"The API did not start {within}. Try again")
            raise StoreUnavailable("The API did not start; see above")
        url = str(json.loads(line)["url"])
        # A restarted API keeps its port, even one that the system chose.
        child.arguments += ["--port", url.rpartition(":")[2].strip("/")]
        self._start("The importer", self._services.importer)
        return url

    def _start(self, name: str, arguments: Sequence[str]) -> Child:
        child = Child(name, arguments, self._environment)
        self._children.append(child)
        return child

    def watch(self, stop: threading.Event) -> None:
        """Restart children that end, until `stop` is set."""
        while not stop.wait(POLL_INTERVAL_S):
            for child in self._children:
                child.restart_if_dead()
