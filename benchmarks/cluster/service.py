"""The service over a cluster: two API processes and an importer, each with a home of its own, as on
three machines."""

import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Final

import psycopg

from benchmarks.cluster.checker import StoreContents, Stored
from benchmarks.cluster.processes import CannotRun, Program, free_ports

API_PROCESSES: Final = 2
START_S: Final = 60.0
COMMAND: Final = (sys.executable, "-P", "-m", "cli")


class Service:
    """The processes over one address of the store."""

    def __init__(self, address: str, folder: Path) -> None:
        folder.mkdir()
        self.inbox = folder / "inbox"
        self.inbox.mkdir()
        self._settings = {"RESUMES_DATABASE": address, "RESUMES_HOME": str(folder / "admin")}
        ports = free_ports(API_PROCESSES)
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        self._apis = [
            self._program(folder / f"api{number}", "serve", "--port", str(port))
            for number, port in enumerate(ports, 1)
        ]
        self._importer = self._program(folder / "importer", "watch", str(self.inbox))

    def start(self) -> None:
        """The API answers, and the importer looks. All start at the same moment."""
        for program in (*self._apis, self._importer):
            program.start()
        for url, program in zip(self.urls, self._apis, strict=True):
            _wait_until_ready(url, program)

    def end(self) -> None:
        """None of it runs."""
        with contextlib.ExitStack() as stack:  # each, whatever becomes of the others
            for program in (*self._apis, self._importer):
                stack.callback(program.end)

    def make_account(self, name: str) -> str:
        """A new account that any number of resumes fits into; its API key."""
        self._run("plans", "set", "business", "--max-resumes", "unlimited")
        self._run("accounts", "create", name, "--plan", "business")
        (self.inbox / name).mkdir(exist_ok=True)
        return self._run("keys", "create", name).strip()

    def done_files(self, account: str) -> set[str]:
        """The names, without endings, of the account's files that the importer has put away as done."""
        # It adds a part of its own to each name.
        done = self.inbox.glob(f"_done/**/{account}-file-*.json")
        return {path.stem.rpartition("-")[0] for path in done}

    def _program(self, home: Path, *arguments: str) -> Program:
        home.mkdir()
        own = {"RESUMES_HOME": str(home), "PYTHONUNBUFFERED": "1"}
        return Program([*COMMAND, *arguments], home / "log", environment={**self._settings, **own})

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*COMMAND, *arguments], env={**os.environ, **self._settings}, timeout=60,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise CannotRun(f"resumes {' '.join(arguments)}\n{done.stdout}{done.stderr}")
        return done.stdout


def _wait_until_ready(url: str, program: Program) -> None:
    ends_at = time.monotonic() + START_S
    while True:
        try:
            urllib.request.urlopen(f"{url}/readyz", timeout=5).close()
        except OSError as error:
            if time.monotonic() > ends_at or not program.is_running:
                raise CannotRun(
                    f"The API did not start: {error}\n{program.log.read_text()}"
                ) from None
            time.sleep(0.05)
        else:
            return


def read_contents(address: str, account: str) -> StoreContents:
    """What the account has, read from the database itself."""
    with psycopg.connect(address, connect_timeout=5) as connection:
        rows = connection.execute(
            "SELECT r.id, r.name FROM resumes r JOIN documents d USING (account_id, id)"
            " WHERE r.account_id = (SELECT id FROM accounts WHERE name = %s)",
            [account],
        ).fetchall()
        counter = connection.execute(
            "SELECT resume_count FROM account_usage"
            " WHERE account_id = (SELECT id FROM accounts WHERE name = %s)",
            [account],
        ).fetchone()
    assert counter is not None, f"no account {account}"
    return StoreContents([Stored(resume_id, marker) for resume_id, marker in rows], counter[0])
