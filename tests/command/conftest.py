"""The command line as tests use it: in this process, and as a program of its own."""

import contextlib
import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from cli.main import resumes
from resumes.analyzer import parse
from resumes.store import accounts
from resumes.store.creation import Created, NewResume, create
from resumes.store.import_ledger import FileOutcome, Items
from tests.support.stores import make_store_file, open_home
from tests.support.terminal.builders import a_file


@dataclass(frozen=True)
class CommandLine:
    """`resumes --home HOME …`, run in this process."""

    home: Path

    def __call__(self, *words: str, stdin: str | bytes | None = None) -> Result:
        """The outcome of the command, whatever it was."""
        line = ["--home", str(self.home), *words]
        return CliRunner().invoke(resumes, line, input=stdin, prog_name="resumes")

    def succeeds(self, *words: str, stdin: str | bytes | None = None) -> str:
        """What the command, which ended with 0, printed."""
        result = self(*words, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    def answers(self, *words: str) -> Any:
        """What the command, which ended with 0, printed as JSON."""
        return json.loads(self.succeeds(*words))

    def fails(self, code: int, *words: str, stdin: str | bytes | None = None) -> str:
        """The one line of error that the command ended with, after `Error: `."""
        result = self(*words, stdin=stdin)
        assert result.exit_code == code, result.output
        last = result.stderr.splitlines()[-1]
        assert last.startswith("Error: "), result.stderr
        assert "Traceback" not in result.output
        return last.removeprefix("Error: ")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that is not there yet."""
    return tmp_path / "resumes-home"


@pytest.fixture
def run(home: Path) -> CommandLine:
    """The command line, on a home that is not there yet."""
    return CommandLine(home)


@pytest.fixture
def acme(run: CommandLine) -> CommandLine:
    """The command line, on a home with the one account `acme`."""
    make_store_file(run.home / "resumes.db")
    run.succeeds("accounts", "create", "acme")
    return run


def a_resume(name: str = "Ada Lovelace", **fields: Any) -> bytes:
    """A resume as the analyzer writes it."""
    sections = {"summaries": {"column": 0, "items": [{"text": "Analyst and metaphysician."}]}}
    return json.dumps({"header": {"name": name}, "sections": sections, **fields}).encode()


def store_resumes(home: Path, *bodies: bytes, account: str = "acme") -> list[str]:
    """The ids of the resumes, which are in the account now."""
    with open_home(home) as store:
        owner = accounts.get_account(store, account)
        outcomes = create(store, owner.id, [NewResume(parse(body)) for body in bodies])
    ids = []
    for outcome in outcomes:
        assert isinstance(outcome, Created)
        ids.append(outcome.id)
    return ids


def start(*words: str, **options: Any) -> "subprocess.Popen[str]":
    """`resumes …` as a program of its own, with pipes."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "cli", *words], text=True, **{**streams, **options}
    )


def finish(process: "subprocess.Popen[str]", *, within_s: float = 60) -> tuple[int, str, str]:
    """Its exit code and what it printed on both streams."""
    try:
        stdout, stderr = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
        pytest.fail(f"did not end: {stdout}{stderr}")
    return process.returncode, stdout, stderr


def on_terminal(
    *words: str, typed: bytes = b"", is_all: bool = False, **variables: str
) -> tuple[int, str, str]:
    """A program's exit code, its standard output, and what its terminal got.

    The terminal is standard error; `is_all` makes it the other streams too, at which this is typed.
    """
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **variables}
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": theirs}
    if is_all:
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    process = start(*words, env=environment, **streams)
    os.close(theirs)
    os.write(ours, typed)
    written = b""
    with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
        while select.select([ours], [], [], 60)[0]:
            written += os.read(ours, 65_536)
    os.close(ours)
    code, stdout, _ = finish(process)
    return code, stdout or "", written.decode()


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    """A descriptor to write to that nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def iter_commands(
    group: click.Group, words: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that it is called by, groups too."""
    found: list[tuple[tuple[str, ...], click.Command]] = [(words, group)]
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found += iter_commands(command, (*words, name))
        else:
            found.append(((*words, name), command))
    return found


def screen(written: str) -> list[str]:
    """The lines that a terminal shows after this was written to it, without colors."""
    lines = [""]
    at = 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", written):
        match part:
            case "\n":
                at += 1
                lines += [""] * (at == len(lines))
            case "\x1b[1A":
                at -= 1
            case "\x1b[2K":
                lines[at] = ""
            case "\r":
                pass
            case _ if not part.startswith("\x1b"):
                lines[at] += part
    return lines


def ledger_id(digit: str) -> str:
    """A file's id."""
    return digit * 24


def record_file(
    run: CommandLine,
    claim_id: str,
    outcome: FileOutcome = FileOutcome.FAILED,
    *,
    account: str = "acme",
    reason: str | None = "invalid_json",
    source: bytes = b"{",
    items: Items | None = None,
    root: str = "/srv/inbox",
) -> None:
    """A file that came to this outcome is in the ledger."""
    with open_home(run.home) as store:
        a_file(
            store,
            claim_id,
            outcome,
            account=account,
            name=f"{account}/x\x1b.json",
            reason=reason,
            message="Invalid JSON at byte 1: EOF",
            byte_offset=1,
            source=source,
            items=items,
            root=root,
        )
