"""The terminal UI in a browser: nobody passes without the cookie, and who has it gets a screen of a process of its own."""

import asyncio
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import ClientWebSocketResponse, WSMsgType, WSServerHandshakeError

from resumes.listener import CannotListen
from tests.support import waiting
from tests.support.terminal.driving import LIMIT_S, until
from tests.support.terminal.pages import (
    BROKEN,
    DEAF,
    ECHO,
    drawn,
    entered,
    is_running,
    process_of,
    serving,
)
from tests.support.waiting import wait_until
from tui.web import server
from tui.web.driver import environment_of, is_behind_a_page
from tui.web.server import END_WITHIN_S, PageServer, run

pytestmark = pytest.mark.anyio

PATHS = ("/", "/ws", "/page.js", "/static/js/textual.js", "/download/x", "/nothing", "/?token=x")


@pytest.mark.parametrize("path", PATHS)
async def test_without_the_cookie_everything_is_refused_in_one_line(path: str) -> None:
    async with serving() as site, site.browser.get(site.url + path) as answer:
        assert answer.status == 403
        assert await answer.text() == server.REFUSAL


async def test_the_token_gives_a_cookie_that_scripts_and_other_sites_do_not_get() -> None:
    async with serving() as site:
        address = f"{site.url}/?token={site.server.token}"
        answer = await site.browser.get(address)
        cookie = answer.cookies[site.server.cookie_name]

        assert answer.status == 200
        assert 'url=/"' in await answer.text()
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"


async def test_with_the_cookie_the_page_and_its_parts_are_there() -> None:
    async with entered() as site:
        for path in ("/", "/page.js", "/static/js/textual.js", "/static/css/xterm.css"):
            async with site.browser.get(site.url + path) as answer:
                assert answer.status == 200
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


async def test_the_token_is_spent_by_its_first_visit() -> None:
    async with entered() as site:
        site.browser.cookie_jar.clear()

        async with site.browser.get(f"{site.url}/?token={site.server.token}") as answer:
            assert answer.status == 403


async def test_who_has_the_cookie_may_reload_the_first_address() -> None:
    async with serving() as site:
        await site.enter()

        await site.enter()


@pytest.mark.parametrize(
    "host",
    ["", "example.com", "example.com:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil:{port}"],
)
async def test_under_another_name_nothing_is_served_and_no_token_is_spent(host: str) -> None:
    async with serving() as site:
        host = host.format(port=site.url.rpartition(":")[2])
        address = f"{site.url}/?token={site.server.token}"
        async with site.browser.get(address, headers={"Host": host}) as answer:
            assert answer.status == 403
            own = site.url.removeprefix("http://")
            assert f"ws://{own};" in answer.headers["Content-Security-Policy"]

        await site.enter()


async def test_localhost_is_its_name_too() -> None:
    async with serving() as site:
        host = f"localhost:{site.url.rpartition(':')[2]}"
        address = f"{site.url}/?token={site.server.token}"
        async with site.browser.get(address, headers={"Host": host}) as answer:
            assert answer.status == 200
        headers = {"Host": host, "Origin": f"http://{host}"}
        async with site.browser.ws_connect(f"{site.url}/ws", headers=headers) as page:
            assert await drawn(page, b"x24")


@pytest.mark.parametrize("line", ["/?token=%ff HTTP/1.1", "/ HTTP/1.1\r\nCookie: {name}=\udcff"])
async def test_what_is_not_utf_8_is_refused(line: str) -> None:
    async with serving() as site:
        port = site.url.rpartition(":")[2]
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        request = f"GET {line}\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        writer.write(request.format(name=site.server.cookie_name).encode(errors="surrogateescape"))
        assert b" 403 " in await reader.readline()
        writer.close()


async def test_no_socket_without_the_cookie() -> None:
    async with serving() as site:
        with pytest.raises(WSServerHandshakeError, match="403"):
            await site.open_page()


@pytest.mark.parametrize(
    "origin", [None, "http://example.com", "http://127.0.0.1:1", "null", "https://127.0.0.1:{port}"]
)
async def test_no_socket_for_another_page(origin: str | None) -> None:
    async with entered() as site:
        origin = origin and origin.format(port=site.url.rpartition(":")[2])
        with pytest.raises(WSServerHandshakeError, match="403"):
            await site.browser.ws_connect(f"{site.url}/ws", origin=origin)


async def test_a_screen_arrives_within_bounds() -> None:
    async with entered() as site:
        page = await site.open_page(width="9999999", height="much")

        assert b"1000x24" in await drawn(page, b"x24")


async def test_when_the_server_ends_so_do_its_processes() -> None:
    async with entered() as site:
        pids = [await process_of(await site.open_page()) for _ in range(3)]

    assert not [pid for pid in pids if is_running(pid)]


# What the browser is given.


async def test_the_page_loads_nothing_from_elsewhere() -> None:
    async with serving() as site:
        await site.enter()
        texts = []
        for path in ("/", "/page.js"):
            async with site.browser.get(site.url + path) as answer:
                texts.append(await answer.text())

    for address in re.findall(r"""(?:src|href)="([^"]+)"|url\("([^"]+)"\)""", texts[0]):
        assert "".join(address).startswith(("/", "data:,")), address
    assert "http:" not in "".join(texts)
    assert "https:" not in "".join(texts)


async def test_what_it_loads_besides_is_not_run() -> None:
    async with entered() as site, site.browser.get(site.url) as answer:
        policy = answer.headers["Content-Security-Policy"]
        own = site.url.removeprefix("http://")

    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert f"connect-src ws://{own};" in policy
    assert "frame-ancestors 'none'" in policy


# Who may use it.


@pytest.mark.parametrize("token", ["", "secret", "s\u00e9cret", "\ufffd"])
async def test_another_token_gets_nothing_and_spends_nothing(token: str) -> None:
    async with serving() as site:
        async with site.browser.get(f"{site.url}/", params={"token": token}) as answer:
            assert answer.status == 403
            assert not answer.cookies

        await site.enter()


@pytest.mark.parametrize("cookie", ["", "secret", "s\u00e9cret", "{token}", "{own}x"])
async def test_another_cookie_is_refused(cookie: str) -> None:
    async with entered() as site:
        name, token = site.server.cookie_name, site.server.token
        [own] = [one.value for one in site.browser.cookie_jar if one.key == name]
        site.browser.cookie_jar.clear()
        for value, status in ((cookie.format(token=token, own=own), 403), (own, 200)):
            async with site.browser.get(site.url, headers={"Cookie": f"{name}={value}"}) as answer:
                assert answer.status == status


def test_secrets_are_long_and_differ() -> None:
    tokens = {PageServer(ECHO, 8_000).token for _ in range(50)}

    assert len(tokens) == 50
    assert min(map(len, tokens)) >= 43


# A page's process.


async def hears_the_end(page: ClientWebSocketResponse) -> None:
    """The server said that this is all, and nothing more came."""
    message = await page.receive()
    while message.type is WSMsgType.BINARY:
        message = await page.receive()
    assert message.type is WSMsgType.CLOSE


async def test_a_page_has_a_process_of_its_size_and_types_to_it() -> None:
    async with entered() as site:
        page = await site.open_page(width="100", height="30")

        assert b"100x30" in await drawn(page, b"x30")
        await page.send_json(["stdin", "a[/b]c"])
        await drawn(page, b"Da[/b]c")
        await page.send_json(["resize", {"width": 70, "height": 20}])
        await drawn(page, b'"width": 70')


async def test_every_page_has_a_process_of_its_own() -> None:
    async with entered() as site:
        first, second = await site.open_page(), await site.open_page()

        assert await process_of(first) != await process_of(second)


@pytest.mark.parametrize(
    ("command", "end_within_s"), [(ECHO, END_WITHIN_S), (DEAF, 0.1)], ids=["ends", "is killed"]
)
async def test_a_process_ends_with_its_page_or_is_killed(
    command: tuple[str, ...], end_within_s: float
) -> None:
    async with entered(command, end_within_s=end_within_s) as site:
        page = await site.open_page()
        pid = await process_of(page)

        await page.close()

        await until(lambda: not is_running(pid))


async def test_a_page_hears_that_its_process_has_ended() -> None:
    async with entered() as site:
        page = await site.open_page()
        await process_of(page)

        await page.send_json(["stdin", '"quit"'])

        await hears_the_end(page)


async def test_a_process_that_cannot_start_ends_its_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with entered(BROKEN) as site:
        await hears_the_end(await site.open_page())


# The server as a program, and the processes that it starts: what they say, and how they end


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


def pid_of(page: socket.socket) -> int:
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
        pid = pid_of(page)

        server.send_signal(number)

        stdout, stderr = server.communicate(timeout=LIMIT_S)
        assert (server.returncode, stdout, stderr) == (0, "", "")
        assert not is_running(pid)


@pytest.mark.slow
def test_killed_it_leaves_no_process_behind() -> None:
    with program() as (server, address), open_page(address) as page:
        pid = pid_of(page)

        server.kill()
        server.wait(LIMIT_S)

        wait_until(lambda: not waiting.is_running(pid))


def test_it_listens_on_loopback_alone() -> None:
    with program() as (_, address):
        host, _, port = address.removeprefix("http://").partition("/")[0].partition(":")
        assert host == "127.0.0.1"
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.2", int(port)), timeout=LIMIT_S)


def test_a_port_in_use_is_refused_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CannotListen) as refused:
            run(ECHO, port, max_connections=1, client_timeout_s=1, ready=print)

    expected = f"Port {port} on 127.0.0.1 is in use; choose another with --web"
    assert refused.value.message == expected


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


# In a real browser

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")

NOTE_WHAT_IS_TYPED = ECHO[2].replace(
    'send(b"D", kind + payload)', "open(sys.argv[1], 'ab').write(payload)"
)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
async def test_keys_work_without_a_click(tmp_path: Path) -> None:
    typed = tmp_path / "typed"
    options = f"--headless --no-sandbox --disable-gpu --remote-debugging-port=0 --user-data-dir={tmp_path}"
    async with serving((sys.executable, "-c", NOTE_WHAT_IS_TYPED, str(typed))) as site:
        browser = await asyncio.create_subprocess_exec(
            str(BROWSER), *options.split(), f"{site.url}/?token={site.server.token}",
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            assert browser.stderr is not None
            while b"DevTools listening" not in (line := await browser.stderr.readline()):
                assert line
            (port,) = re.findall(rb":(\d+)/", line)
            async with site.browser.get(f"http://127.0.0.1:{port.decode()}/json") as pages:
                [page] = [one for one in await pages.json() if one["type"] == "page"]
            async with site.browser.ws_connect(page["webSocketDebuggerUrl"]) as keyboard:
                press = {"type": "char", "text": "7"}
                async with asyncio.timeout(LIMIT_S):
                    while not (typed.exists() and typed.read_bytes().endswith(b"7")):
                        await keyboard.send_json(
                            {"id": 1, "method": "Input.dispatchKeyEvent", "params": press}
                        )
                        await keyboard.receive()
        finally:
            browser.terminate()
            await browser.wait()
