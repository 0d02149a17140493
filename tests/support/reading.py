"""A reader of the documentation at work: a checkout, a home, and everything as the page says."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from tests.support import postgres
from tests.support.pages import Step, agrees
from tests.support.waiting import wait_until

SERVES: Final = re.compile(r"resumes( --\w+ \S+)* (up|serve)\b")
"""Commands that go on until they are ended."""

LOOKS: Final = re.compile(r"resumes (list|imports list)\b|curl -G ")
"""Commands that are typed again until what they wait for has come."""

BACKUP: Final = re.compile(r"resumes-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db")
DEFAULT_PORT: Final = "8000"
PORTS: Final = (DEFAULT_PORT, "8001")
LINKED: Final = ("deploy", "docs", "sample_data")
FOLDERS: Final = ("/backup", "/srv", "/tmp/drill", "/var/lib")
"""Places that pages name, and that are elsewhere in a test."""

LIMIT_S: Final = 60.0
OVER: Final = re.compile(r"\x1e(\d+)\n\Z")
"""What the shell says when a command has ended: its exit code."""


class Shell:
    """One shell for all that is typed. Use it as a context manager.

    Programs that go on until they are ended do so behind it, until it is left.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._scratch = tempfile.TemporaryDirectory()
        self._seen = Path(self._scratch.name, "seen")
        self._behind = Path(self._scratch.name, "behind")
        beside_python = str(Path(sys.executable).parent)
        surroundings = {
            **os.environ,
            "PATH": f"{beside_python}:{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            **environment,
        }
        with self._seen.open("wb") as seen:
            self._shell = subprocess.Popen(
                ["bash", "--norc", "--noprofile"],
                stdin=subprocess.PIPE,
                stdout=seen,
                stderr=seen,
                cwd=folder,
                env=surroundings,
                start_new_session=True,
            )

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_: object) -> None:
        self._write("kill $(jobs -p) 2>/dev/null; wait; exit\n")
        try:
            self._shell.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._shell.pid, signal.SIGKILL)
            self._shell.communicate()
        self._scratch.cleanup()

    def types(self, command: str) -> tuple[int, str]:
        """The exit code of the command, and what it printed on both streams."""
        begins = self._seen.stat().st_size
        self._write(f"{{ {command}\n}} </dev/null\nprintf '\\036%s\\n' $?\n")
        wait_until(lambda: OVER.search(self._seen_since(begins)) is not None, within_s=LIMIT_S)
        printed = self._seen_since(begins)
        over = OVER.search(printed)
        assert over is not None
        return int(over[1]), printed[: over.start()]

    def starts(self, command: str, *, until: Callable[[], bool]) -> None:
        """The command goes on behind the shell, and what is waited for has come about."""
        command = command.partition("  #")[0]
        self._write(f"{command} >>{self._behind} 2>&1 </dev/null &\n")
        try:
            wait_until(until, within_s=LIMIT_S)
        except AssertionError as error:
            raise AssertionError(self._behind.read_text(encoding="utf-8")) from error

    def _write(self, text: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(text.encode())
        self._shell.stdin.flush()

    def _seen_since(self, offset: int) -> str:
        return self._seen.read_bytes()[offset:].decode()


@dataclass
class World:
    """Where a reader is. What a page calls by one name is something else in a test: `names`."""

    folder: Path
    environment: Mapping[str, str]
    ports: Mapping[str, int]
    names: dict[str, str] = field(default_factory=dict)

    def here(self, text: str) -> str:
        """What the page says, as it has to be said here."""
        for name, real in self.names.items():
            text = text.replace(name, real)
        return text


def make_world(
    folder: Path, repository: Path, *, home: str = "", replaced: Mapping[str, str] | None = None
) -> World:
    """A checkout to read in, an empty home of a user, and the places that pages name.

    `home` is the service's, if the page has one in mind; `replaced` has what else is named.
    """
    checkout = folder / "resume-service"
    checkout.mkdir()
    for name in LINKED:
        (checkout / name).symlink_to(repository / name)
    user = folder / "user"
    user.mkdir()
    (user / ".curlrc").write_text("silent\nshow-error\n", encoding="ascii")
    names = dict(replaced or {})
    for place in FOLDERS:
        names[place] = str(folder / "places" / place.replace("/", "-"))
        Path(names[place]).parent.mkdir(exist_ok=True)
        if place != "/tmp/drill":
            Path(names[place]).mkdir()
    ports = {port: postgres.free_port() for port in PORTS}
    names |= {f"127.0.0.1:{port}": f"127.0.0.1:{real}" for port, real in ports.items()}
    names |= {f"--port {port}": f"--port {real}" for port, real in ports.items()}
    world = World(checkout, {}, ports, names)
    world.environment = {
        "HOME": str(user),
        "RESUMES_PORT": str(ports[DEFAULT_PORT]),
        "RESUMES_SETTLE_S": "0.1",
        **({"RESUMES_HOME": world.here(home)} if home else {}),
    }
    return world


def play(
    world: World, steps: Sequence[Step], *, fails: Sequence[str] = (), says_all: bool = False
) -> None:
    """Every command was typed, and did and printed what the page says.

    `fails` has the commands that end with 1, since something is wrong as the page tells. A page
    that `says_all` leaves out no command's output; others may.
    """
    examples = {name for step in steps for name in BACKUP.findall(step.command)}
    with Shell(world.folder, world.environment) as shell:
        for step in steps:
            if SERVES.match(step.command):
                start_it(shell, step, world)
                continue
            code = 1 if step.command in fails else 0
            printed = type_it(shell, step, world, code=code, says_all=says_all)
            for name in BACKUP.findall(printed):
                world.names |= dict.fromkeys(examples, name)


def start_it(shell: Shell, step: Step, world: World) -> None:
    """The service runs behind the shell, and takes requests."""
    port = next((port for port in world.ports if port in step.command), DEFAULT_PORT)
    shell.starts(world.here(step.command), until=lambda: is_ready(world.ports[port]))


def type_it(shell: Shell, step: Step, world: World, *, code: int, says_all: bool) -> str:
    """What the command printed, which is what the page says."""
    command, said = world.here(step.command), world.here(step.printed)
    seen = shell.types(command)

    def is_right() -> bool:
        is_left_out = not said and not says_all
        return seen[0] == code and (is_left_out or agrees(seen[1], said))

    def is_right_at_last() -> bool:
        nonlocal seen
        seen = shell.types(command)
        return is_right()

    if LOOKS.match(step.command) and not is_right():
        with contextlib.suppress(AssertionError):
            wait_until(is_right_at_last)
    assert is_right(), f"{step}\n--- exit code {seen[0]}, printed:\n{seen[1]}\n--- said:\n{said}"
    return seen[1]


def is_ready(port: int) -> bool:
    """Whether the service on this port takes requests."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False
