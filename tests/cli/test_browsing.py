"""`resumes tui --web`."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import ClientSession, CookieJar

from tests.cli.conftest import CommandLine, a_resume, finish, start, store_resumes
from tests.tui.web.pages import drawn
from tui.web import service

ADDRESS = "http://127.0.0.1:8000/?token=x"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the server was started with, in place of starting it; and where its pages' store is."""
    asked: list[Any] = []

    def run(command: list[str], port: int, *, ready: Callable[[str], None]) -> None:
        asked.append((command, port, os.environ.get("RESUMES_DATABASE")))
        ready(ADDRESS)

    monkeypatch.setattr(service, "run", run)
    return asked


def test_a_page_runs_the_same_command_with_the_same_options(
    acme: CommandLine, served: list[Any]
) -> None:
    said = acme.succeeds("tui", "keys", "--account", "acme", "--read-only", "--web", "8000")

    assert said == f"{ADDRESS}\n"
    [(command, port, database)] = served
    assert (port, database) == (8_000, None)
    assert command[:4] == [sys.executable, "-P", "-m", "cli"]
    assert command[4:] == [
        "--home", str(acme.home), "tui", "keys", "--account=acme", "--read-only",
    ]  # fmt: skip


def test_a_database_a_resume_and_a_theme_are_passed_on(
    acme: CommandLine, served: list[Any]
) -> None:
    [resume] = store_resumes(acme.home, a_resume())
    url = f"sqlite:///{acme.home / 'resumes.db'}"

    acme.succeeds("--database", url, "tui", "--open", resume, "--theme", "light", "--web", "0")

    [(command, _, database)] = served
    assert command[6:] == ["tui", "resumes", f"--open={resume}", "--theme=light"]
    # Other users can read command lines, and a password may stand in an address.
    assert database == url
    assert "RESUMES_DATABASE" not in os.environ


def test_the_address_is_there_as_json_too(acme: CommandLine, served: list[Any]) -> None:
    assert acme.answers("--json", "tui", "--web", "0") == {"url": ADDRESS}


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
    acme: CommandLine, served: list[Any], code: int, words: list[str]
) -> None:
    acme.fails(code, "tui", "--web", "0", *words)

    assert not served


def test_a_port_in_use_is_one_line(acme: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert f"Port {port} on 127.0.0.1 is in use" in acme.fails(3, "tui", "--web", str(port))


def test_the_terminal_ui_arrives_in_the_page(acme: CommandLine) -> None:
    program = start("--json", "--home", str(acme.home), "tui", "accounts", "--web", "0")
    assert program.stdout is not None
    address = json.loads(program.stdout.readline())["url"]

    seen = asyncio.run(visit(address, awaited=b"acme"))

    assert b"Accounts" in seen
    program.send_signal(signal.SIGINT)
    assert finish(program) == (0, "", "")


async def visit(address: str, *, awaited: bytes) -> bytes:
    """What a page drew until then."""
    site = address.partition("/?")[0]
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
        await browser.get(address)
        async with browser.ws_connect(f"{site}/ws", origin=site) as page:
            return await drawn(page, awaited)
