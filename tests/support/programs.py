"""Whole programs, as a user runs them."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import httpx

from tests.support.waiting import end
from tests.support.waiting import wait_until as wait_until

Answer = tuple[int, Any]
"""A status and the JSON that came with it."""


def command(home: Path, *arguments: str) -> list[str]:
    """The command line of `resumes` on a home."""
    return [sys.executable, "-m", "cli", "--home", str(home), *arguments]


def run(home: Path, *arguments: str, timeout_s: float = 120) -> "subprocess.CompletedProcess[str]":
    """`resumes` run to its end."""
    return subprocess.run(
        command(home, *arguments), capture_output=True, text=True, timeout=timeout_s, check=False
    )


def succeed(home: Path, *arguments: str) -> str:
    """What `resumes` printed, having ended with 0."""
    done = run(home, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextlib.contextmanager
def running(
    home: Path, *arguments: str, stderr: IO[str] | int = subprocess.DEVNULL
) -> Iterator["subprocess.Popen[str]"]:
    """`resumes` in the background, ended by SIGTERM when the block ends."""
    program = subprocess.Popen(
        command(home, *arguments),
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert program.stdout is not None
    try:
        yield program
    finally:
        try:
            end(program)
        finally:
            program.stdout.close()


@contextlib.contextmanager
def serving(
    home: Path, *arguments: str, stderr: IO[str] | int = subprocess.DEVNULL
) -> Iterator[str]:
    """The address of the API, served on a free port."""
    words = ("serve", "--json", "--port", "0", *arguments)
    with running(home, *words, stderr=stderr) as program:
        assert program.stdout is not None
        yield str(json.loads(program.stdout.readline())["url"])


def call(url: str, key: str | None, *, method: str = "GET", body: bytes | None = None) -> Answer:
    """One request with JSON both ways."""
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    answer = httpx.request(method, url, headers=headers, content=body, timeout=60)
    return answer.status_code, answer.json()


def walk(url: str, key: str, *, limit: int) -> list[str]:
    """The ids that a client sees that follows the cursor to its end."""
    ids: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        status, page = call(f"{url}/api/v1/resumes?limit={limit}&cursor={cursor}", key)
        assert status == 200, page
        ids += [entry["id"] for entry in page["resumes"]]
        cursor = page["pagination"]["cursor"]
    return ids


def files_in(folder: Path) -> list[Path]:
    """All files below a folder that are not reports."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(".report.json")
    ]


def closed_pipe() -> int:
    """The writing end of a pipe whose other end is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def full_pipe() -> int:
    """The writing end of a pipe that is full and that nobody reads; its other end stays open."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 65536)
    except BlockingIOError:
        os.set_blocking(writing, True)
    os.set_inheritable(reading, False)
    return writing
