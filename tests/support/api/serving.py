"""Servers in a thread of the test, and in processes of their own for what needs signals."""

import contextlib
import fcntl
import json
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest
import uvloop

from resumes.filesystems import free_bytes
from resumes.settings import Settings
from resumes.store import Store, accounts, api_keys, open_store
from server import service
from tests.support.api.builders import RESUMES, Client, SteppingClock
from tests.support.api.refused import a_request
from tests.support.stores import make_account, make_store_file
from tests.support.waiting import end
from tests.support.waiting import wait_until as wait_until

service.STOP_CHECK_S = 0.005
"""Most tests start a server, and each waits for it twice when it ends."""


@contextmanager
def a_connection(url: str) -> Iterator[socket.socket]:
    """A connection to the server at a base address."""
    parts = httpx.URL(url)
    with socket.create_connection((parts.host, parts.port), timeout=60) as connection:
        yield connection


def read_all(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


def read_answer(connection: socket.socket) -> bytes:
    """One answer with its body."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += (chunk := connection.recv(65536))
        assert chunk, received
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    while len(body) < int(length.split()[1]):
        body += (chunk := connection.recv(65536))
        assert chunk, received
    return head + b"\r\n\r\n" + body


def exchange(url: str, *sent: bytes) -> bytes:
    """Everything that the server says to what is sent on one connection, until it closes that."""
    with a_connection(url) as connection:
        for part in sent:
            connection.sendall(part)
        begun = connection.recv(65536)
        with contextlib.suppress(OSError):  # the server may have ended it
            connection.shutdown(socket.SHUT_WR)  # it need not wait for more
        return begun + read_all(connection)


def send(url: str, connection: socket.socket, sent: bytes) -> None:
    """Send this, and wait until the server has read it and done what it does at once."""
    connection.sendall(sent)
    # Once the server's system has it, the second request from then on is read later.
    wait_until(lambda: not any(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4))))
    for _ in range(2):
        exchange(url, a_request("GET", "/healthz", key=None))


def count_connections(url: str) -> int:
    """How many connections the server has, beside the one that asks."""
    answer = exchange(url, a_request("GET", "/metrics", key=None))
    found = re.search(rb"\nresumes_connections (\d+)", answer)
    assert found is not None
    return int(found[1]) - 1


class LoopClock:
    """The clock of event loops in this process, which stands still until it is moved. Seconds.

    Their timers still go by the system's clock, so a server goes on checking its connections.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        self._reads = 0
        monkeypatch.setattr(uvloop.Loop, "time", lambda _: self._read())

    def _read(self) -> float:
        self._reads += 1
        return self.now_s

    def move(self, seconds: float) -> None:
        """Move the clock, and wait until every connection was checked."""
        self.now_s += seconds
        # Each round of checks reads it twice. The one under way looks like a stall, and is left out.
        enough = self._reads + 6
        wait_until(lambda: self._reads > enough)


@dataclass
class Place:
    """A server in a thread of this process, and the store behind it, whose clock stands still."""

    settings: Settings
    store: Store
    clock: SteppingClock
    url: str = ""
    signals: list[int] = field(default_factory=list)
    _made: int = 0

    def stop(self) -> None:
        """The server is asked to end, as by a signal."""
        self.signals.append(signal.SIGTERM)

    def key(self, account: str, plan: str = "business") -> str:
        """A key of an account, which is made if it is not there."""
        if accounts.find_account(self.store, account) is None:
            accounts.create_account(self.store, account, plan=plan)
        return api_keys.create_key(self.store, account).secret

    def client(self, plan: str = "business") -> Client:
        """A client with an account of its own."""
        self._made += 1
        account = f"ada{self._made}"
        return Client(self.url, self.key(account, plan), account=account)


@contextmanager
def serve_here(
    home: Path,
    url: str | None = None,
    *,
    options: Mapping[str, Any] = MappingProxyType({}),
    **changes: Any,
) -> Iterator[Place]:
    """A server in a thread, on a free port, with these settings and a store of this address.

    `options` are those of `service.serve`.
    """
    settings = Settings(home=home, port=0, database=url or make_store_file(home / "resumes.db"))
    settings = settings.model_copy(update=changes)
    clock = SteppingClock()
    place = Place(settings, open_store(settings.database_url, clock=clock), clock)
    with serving(settings, place.store, place.signals, **options) as place.url:
        yield place


def fill_disk(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """From now on, servers in this process see no free byte on the disk of a store below the folder."""
    monkeypatch.setattr(
        "server.health.free_bytes",
        lambda path: 0 if path.is_relative_to(folder) else free_bytes(path),
    )


@contextmanager
def serving(
    settings: Settings, store: Store, signals: list[int] | None = None, **options: Any
) -> Iterator[str]:
    """The address of a server of this store in a thread, which closes the store in the end."""
    told: queue.SimpleQueue[str | BaseException] = queue.SimpleQueue()
    signals = [] if signals is None else signals

    def run() -> None:
        try:
            service.serve(settings, store, ready=told.put, signals=signals, **options)
        except BaseException as error:  # noqa: BLE001 - raised where the server is waited for
            told.put(error)

    thread = threading.Thread(target=run, name="server")
    thread.start()
    try:
        url = told.get(timeout=60)
        if isinstance(url, BaseException):
            raise url
        yield url.replace("0.0.0.0", "127.0.0.1")
    finally:
        signals.append(signal.SIGTERM)
        thread.join(60)
        assert not thread.is_alive(), "the server does not end"
    while not told.empty():
        raise AssertionError(f"the server ended with {told.get()!r}")


def make_certificate(folder: Path) -> Path:
    """A file with a certificate for 127.0.0.1 and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    path = folder / "cert.pem"
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test"
    command += f" -addext subjectAltName=IP:127.0.0.1 -keyout {path} -out {folder / 'only.pem'}"
    subprocess.run([openssl, *command.split()], check=True, capture_output=True)
    path.write_text(path.read_text() + (folder / "only.pem").read_text())
    return path


SERVE = """
import json, sys
from pathlib import Path
from resumes.settings import Settings
from server import service

changes = json.loads(sys.argv[1])
cert = changes.pop("tls_cert", None)
settings = Settings(**changes)
service.run(
    settings,
    tls_cert=Path(cert) if cert else None,
    ready=lambda url: print(url, flush=True),
)
print("ended")
"""


@dataclass(frozen=True)
class Served:
    """A running server, and the key of its account "ada" on the business plan."""

    url: str
    key: str
    process: "subprocess.Popen[str]"


@contextmanager
def serve(home: Path, **settings: Any) -> Iterator[Served]:
    """A server in a process of its own, on a free port, with these settings."""
    key = make_account(settings.get("database") or home, "ada")
    changes = json.dumps({"home": str(home), "port": 0} | settings)
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, changes],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip().replace("0.0.0.0", "127.0.0.1")
            assert url or process.stderr is None, process.stderr.read()
            yield Served(url, key, process)
        finally:
            process.terminate()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            end(process)


def a_head(served: Served | Client, length: int, *more: str) -> bytes:
    """The head of a create with a body of this length."""
    lines = [f"POST {RESUMES} HTTP/1.1", "Host: resumes.test", f"Content-Length: {length}"]
    lines += [f"Authorization: Bearer {served.key}", "Content-Type: application/json", *more]
    return "\r\n".join([*lines, "", ""]).encode()
