"""`resumes tui`, and `--web`, which serves it to a browser."""

import asyncio
import contextlib
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, CookieJar, WSMsgType

from tests.command.conftest import CommandLine, a_resume, finish, on_terminal, start, store_resumes
from tests.support.programs import command
from tests.support.terminal.console import console
from tests.support.terminal.pages import drawn
from tests.support.waiting import children_of, command_of, wait_until

A_VISIT = b"GET / HTTP/1.0\r\n\r\n"


# In this terminal


def test_without_a_terminal_it_says_so(acme: CommandLine) -> None:
    refused = acme.fails(2, "tui")
    assert f"needs a terminal. Use `resumes --home {acme.home} list`" in refused


@pytest.mark.slow
def test_what_a_terminal_ui_cannot_open_is_one_line(acme: CommandLine, tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    for words, code, line in (
        (["--open", "x"], 1, "Resume not found"),
        (["--account", "nobody"], 1, "Account not found"),
        (["--read-only", "--database", f"sqlite:///{missing}"], 3, "Database not found"),
    ):
        ended, _, written = on_terminal("--home", str(acme.home), "tui", *words, is_all=True)
        assert (ended, line in written) == (code, True), written
        assert "Traceback" not in written
    assert not missing.exists()
    assert "Invalid value for '--theme': 'x' is not one of " in acme.fails(2, "tui", "--theme", "x")


@pytest.mark.slow
def test_the_account_of_the_settings_is_shown_first(acme: CommandLine) -> None:
    acme.succeeds("accounts", "create", "zoe")
    store_resumes(acme.home, a_resume())
    with console(command(acme.home, "tui"), environment={"RESUMES_ACCOUNT": "zoe"}) as screen:
        screen.shows("Resumes › zoe · no resumes")


# In a browser


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, ["nowhere"]),
        (1, ["--account", "nobody"]),
        (1, ["--open", "0" * 24]),
        (2, ["--web", "x"]),
    ],
)
def test_what_no_page_could_show_is_refused_before_any(
    acme: CommandLine, code: int, words: list[str]
) -> None:
    acme.fails(code, "tui", "--web", "0", *words)


def test_nor_is_an_account_of_the_settings_that_is_not_there(acme: CommandLine) -> None:
    (acme.home / "config.toml").write_text('account = "nobody"\n')

    assert "Account not found" in acme.fails(1, "tui", "--web", "0")


@pytest.mark.slow
def test_a_page_is_the_terminal_ui_with_the_same_options(acme: CommandLine) -> None:
    [resume] = store_resumes(acme.home, a_resume())
    url = f"sqlite:///{acme.home / 'resumes.db'}"
    words = ["--home", str(acme.home), "--database", url, "tui", "resumes", "--account", "acme"]
    program = start(*words, "--open", resume, "--read-only", "--theme", "light", "--web", "0")

    async def visit(address: str) -> list[str]:
        async with a_page(address) as page:
            await drawn(page, b"metaphysician")
            [child] = children_of(program.pid)
            return command_of(child).split("\0")

    assert program.stdout is not None
    command = asyncio.run(visit(program.stdout.readline().strip()))
    program.send_signal(signal.SIGINT)
    code, stdout, stderr = finish(program)
    assert (code, stdout, len(stderr.splitlines())) == (0, "", 1)

    # Other users can read command lines, and a password may stand in an address.
    assert url not in command
    assert command[command.index("tui") :] == [
        "tui", "resumes", "--account=acme", f"--open={resume}", "--theme=light", "--read-only", "",
    ]  # fmt: skip


def test_a_page_that_has_the_focus_before_its_process_runs_has_the_keys(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume())

    async def visit(address: str) -> None:
        async with a_page(address) as page:
            await page.send_json(["focus"])
            await drawn(page, b"acme")
            await page.send_json(["stdin", "\r"])
            await drawn(page, b"Lovelace")

    with serving(acme.home) as (_, address):
        asyncio.run(visit(address))


@pytest.mark.slow
def test_a_deletion_that_the_end_of_a_page_cancels_is_told(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume(title="Analyst"))

    async def delete(address: str) -> None:
        async with a_page(address) as page:
            await drawn(page, b"acme")
            for key, awaited in ("1", b"Analyst"), ("d", b"Press u to undo"):
                await page.send_json(["stdin", key])
                await drawn(page, awaited)

    with serving(acme.home, told='1 pending deletion canceled: "Analyst"\n') as (_, address):
        asyncio.run(delete(address))


@contextlib.asynccontextmanager
async def a_page(address: str) -> AsyncIterator[ClientWebSocketResponse]:
    """A page, opened with the address that was printed."""
    site = address.partition("/?")[0]
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
        await (await browser.get(address)).read()
        async with browser.ws_connect(f"{site}/ws", origin=site) as page:
            yield page


# Connections


@contextlib.contextmanager
def serving(
    home: Path, *, open_files: int | None = None, told: str = "", **settings: float
) -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """`resumes tui --web`, perhaps with fewer open files allowed, and the address it printed.

    It printed nothing but that, or what it `told` at its end, and an end by Ctrl-C is a clean one.
    """
    variables = {f"RESUMES_{name.upper()}": str(value) for name, value in settings.items()}
    limit = None if open_files is None else (open_files, open_files)
    program = start(
        "--json", "--home", str(home), "tui", "accounts", "--web", "0",
        env=os.environ | variables,
        preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit)),
    )  # fmt: skip
    try:
        assert program.stdout is not None
        yield program, json.loads(program.stdout.readline())["url"]
    finally:
        program.send_signal(signal.SIGINT)
        ended = finish(program)
    assert ended == (0, "", told)


def connect(address: str, sent: bytes = b"") -> socket.socket:
    """A connection to the server, on which that was sent."""
    host, port = address.removeprefix("http://").partition("/")[0].split(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.sendall(sent)
    return connection


def read_all(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):  # of those that had sent more than was read
        while chunk := connection.recv(65_536):
            received += chunk
    return received


def visit_as_a_stranger(address: str) -> bytes:
    """The status of the answer to somebody without the cookie."""
    with connect(address, A_VISIT) as stranger:
        return read_all(stranger)[9:12]


needs_prlimit = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="the system does not limit running processes"
)


@contextlib.contextmanager
def no_more_files(program: "subprocess.Popen[str]", *, but: int = 0) -> Iterator[None]:
    """During the block the process may open no more files, but for so many."""
    soft, hard = resource.prlimit(program.pid, resource.RLIMIT_NOFILE)
    open_files = len(list(Path(f"/proc/{program.pid}/fd").iterdir()))
    resource.prlimit(program.pid, resource.RLIMIT_NOFILE, (open_files + but, hard))
    try:
        yield
    finally:
        resource.prlimit(program.pid, resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_silent_connections_are_let_go_and_neither_new_nor_open_pages_suffer(
    acme: CommandLine,
) -> None:
    async def watch_a_page(address: str) -> None:
        async with a_page(address) as page:
            await drawn(page, b"acme")
            await asyncio.to_thread(hold_silent_connections, address)
            await page.send_json(["stdin", "2"])  # the page was open all the time
            await drawn(page, b"Imports")

    def hold_silent_connections(address: str) -> None:
        half_a_head = b"GET / HTTP/1.1\r\nHost"
        with contextlib.ExitStack() as stack:
            silent = [
                stack.enter_context(connect(address, half_a_head * (number % 2)))
                for number in range(376)
            ]
            answers = {read_all(connection)[9:12] for connection in silent}
        assert answers == {b"", b"503"}
        wait_until(lambda: visit_as_a_stranger(address) == b"403")

    with serving(acme.home, open_files=256, client_timeout_s=1) as (_, address):
        asyncio.run(watch_a_page(address))


@pytest.mark.slow
def test_a_connection_is_let_go_after_its_last_answer(acme: CommandLine) -> None:
    with serving(acme.home, client_timeout_s=1) as (_, address):
        path, _, token = address.removeprefix("http://").partition("/?")
        visit = f"GET /?{token} HTTP/1.1\r\nHost: {path}\r\n\r\n".encode()
        with connect(address, visit) as visitor:
            answered = read_all(visitor)
    assert answered.count(b"HTTP/1.1 ") == 1
    assert b"Set-Cookie" in answered


@pytest.mark.slow
def test_connections_beyond_the_limit_are_refused_in_one_line(acme: CommandLine) -> None:
    with (
        serving(acme.home, max_connections=2, client_timeout_s=3_600) as (_, address),
        connect(address) as first,
        connect(address),
    ):
        host = address.removeprefix("http://").partition("/")[0]
        refused = http.client.HTTPConnection(host, timeout=30)
        refused.request("GET", "/")
        answer = refused.getresponse()
        assert answer.status == 503
        assert answer.read() == b"Too many connections; close pages that are open, or try again.\n"

        first.close()

        wait_until(lambda: visit_as_a_stranger(address) == b"403")


@pytest.mark.slow
def test_who_is_refused_holds_no_connection(acme: CommandLine) -> None:
    with (
        serving(acme.home, client_timeout_s=3_600) as (_, address),
        connect(address, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 2) as stranger,
    ):
        assert read_all(stranger).count(b"403 Forbidden") == 1


@pytest.mark.slow
def test_what_is_not_http_leaves_nothing_on_standard_error(acme: CommandLine) -> None:
    with serving(acme.home) as (_, address):
        for sent in (b"GET / HTTP/1.1\r\nno header\r\n\r\n", b"\x16\x03\x01\x00", b"GET http://[ "):
            with connect(address, sent + b"\r\n\r\n") as stranger:
                assert read_all(stranger)[9:12] == b"400"


@pytest.mark.slow
@needs_prlimit
def test_without_files_left_connections_wait_and_that_is_said_once(acme: CommandLine) -> None:
    with serving(acme.home) as (program, address):
        with no_more_files(program):
            visitor = connect(address, A_VISIT)
            assert program.stderr is not None
            assert program.stderr.readline() == (
                "Cannot accept connections: Too many open files. They wait until there is room\n"
            )
            time.sleep(2.5)  # for more lines, of which there are none
        with visitor:
            assert read_all(visitor)[9:12] == b"403"


@pytest.mark.slow
@needs_prlimit
def test_a_page_for_which_no_process_can_be_started_is_one_line(acme: CommandLine) -> None:
    async def open_twice(program: "subprocess.Popen[str]", address: str) -> None:
        site = address.partition("/?")[0]
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
            await (await browser.get(address)).read()
            with no_more_files(program, but=1):
                async with browser.ws_connect(f"{site}/ws", origin=site) as page:
                    assert (await page.receive()).type is WSMsgType.CLOSE
            async with browser.ws_connect(f"{site}/ws", origin=site) as page:
                await drawn(page, b"acme")

    with serving(acme.home) as (program, address):
        asyncio.run(open_twice(program, address))

        assert program.stderr is not None
        assert program.stderr.readline() == (
            "Cannot start the terminal UI for a browser page: Too many open files\n"
        )
