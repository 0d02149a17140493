"""The server as a program, and the processes that it starts: what they say, and how they end."""

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from resumes.errors import ErrorCode
from tests.support.terminal.driving import LIMIT_S
from tests.support.terminal.pages import ECHO, is_running
from tests.support.waiting import wait_until
from tui.web.driver import environment_of, is_behind_a_page
from tui.web.server import PortUnavailable, listen

PROGRAM = """
import sys
from tui.web.server import run
run(
    sys.argv[1:],
    0,
    max_connections=100,
    client_timeout_s=10,
    ready=lambda address: print(address, flush=True),
)
"""


@contextmanager
def program() -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """The server, and the address it printed."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *ECHO],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            assert started.stdout is not None
            yield started, started.stdout.readline().strip()
        finally:
            started.kill()


def open_page(address: str) -> socket.socket:
    """A page's socket, opened with the token's cookie as a browser does."""
    origin, _, query = address.partition("/?")
    host = origin.removeprefix("http://")
    visit = http.client.HTTPConnection(host, timeout=LIMIT_S)
    visit.request("GET", f"/?{query}")
    answer = visit.getresponse()
    cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]
    visit.close()
    page = socket.create_connection((host.partition(":")[0], int(host.partition(":")[2])))
    page.settimeout(LIMIT_S)
    page.sendall(
        f"GET /ws HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nCookie: {cookie}\r\n"
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
    )
    return page


def process_of(page: socket.socket) -> int:
    wire = b""
    while b"80x24" not in wire:
        found = page.recv(65_536)
        assert found, wire
        wire += found
    return int(wire.partition(b"pid ")[2].split()[0])


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_it_and_its_processes(number: signal.Signals) -> None:
    with program() as (server, address), open_page(address) as page:
        pid = process_of(page)

        server.send_signal(number)

        stdout, stderr = server.communicate(timeout=LIMIT_S)
        assert (server.returncode, stdout, stderr) == (0, "", "")
        assert not is_running(pid)


@pytest.mark.slow
def test_killed_it_leaves_no_process_behind() -> None:
    with program() as (server, address), open_page(address) as page:
        pid = process_of(page)

        server.kill()
        server.wait(LIMIT_S)

        wait_until(lambda: not is_running(pid) or has_ended(pid))


def has_ended(pid: int) -> bool:
    """Whether it only waits for whoever inherited it to take note."""
    try:
        status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return False
    return status[0] == pid


def test_it_listens_on_loopback_alone() -> None:
    with listen(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_a_port_in_use_is_refused_in_one_line() -> None:
    with listen(0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(PortUnavailable, match=f"Port {port} on 127.0.0.1 is in use") as refused:
            listen(port)

    assert refused.value.code is ErrorCode.STORE_UNAVAILABLE


# The terminal UI's end of the pipe.


SCREEN = """
from textual.app import App
from textual.widgets import Static

class Screen(App):
    def compose(self):
        yield Static("drawn by us")

app = Screen()
app.run()
raise SystemExit(app.return_code)
"""


@pytest.fixture
def child() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", SCREEN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment_of(80, 24),
    )


def reads_until(child: "subprocess.Popen[bytes]", awaited: bytes) -> None:
    assert child.stdout is not None
    wire = b""
    while awaited not in wire:
        found = os.read(child.stdout.fileno(), 65_536)
        assert found, wire[-2_000:]
        wire += found


def test_it_draws_as_packets(child: "subprocess.Popen[bytes]") -> None:
    with child:
        reads_until(child, b"__GANGLION__\nD\x00\x00\x00")
        reads_until(child, b"drawn by us")
        child.kill()


def test_it_ends_when_nobody_is_at_the_other_end(child: "subprocess.Popen[bytes]") -> None:
    with child:
        reads_until(child, b"drawn by us")
        for pipe in (child.stdin, child.stdout, child.stderr):
            assert pipe is not None
            pipe.close()

        assert child.wait(LIMIT_S) == 0


def test_it_ends_by_a_signal(child: "subprocess.Popen[bytes]") -> None:
    with child:
        reads_until(child, b"drawn by us")
        child.send_signal(signal.SIGTERM)

        assert child.communicate(timeout=LIMIT_S)[1] == b""
        assert child.returncode == 0


@pytest.mark.parametrize(
    "environment",
    [{}, {"TEXTUAL_DRIVER": ""}, {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver"}],
)
def test_others_do_not_pass_for_one(environment: dict[str, str]) -> None:
    assert not is_behind_a_page(environment)
