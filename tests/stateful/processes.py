"""The product as its users have it: `resumes serve`, `resumes watch` and HTTP."""

import contextlib
import json
import select
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import httpx

from resumes.clock import system_clock
from resumes.store import Store, open_store
from tests.stateful.requests import MAX_BYTES, Answer, Request
from tests.support import programs
from tests.support.api.load import TIMEOUT_S, Wire, a_request
from tests.support.inbox import oracle

LOOK_AGAIN_S = 0.001


class Processes:
    """An installation of programs. What people do at the command line is done by its functions."""

    def __init__(self, home: Path, url: str, make_place: Callable[[], str]) -> None:
        self.home = home
        self._make_place = make_place
        self.root = home / "inbox"
        self.root.mkdir()
        self._backups = 0
        self._use(url)
        self._server = contextlib.ExitStack()
        self._start()

    def _use(self, url: str) -> None:
        (self.home / "config.toml").write_text(
            f"database = {json.dumps(url)}\nmax_body_bytes = {MAX_BYTES}\nsettle_s = 0.0\n"
        )
        self.store: Store = open_store(url)

    def _start(self) -> None:
        self.program = self._server.enter_context(
            programs.running(self.home, "serve", "--json", "--port", "0")
        )
        assert self.program.stdout is not None
        self._url = json.loads(self.program.stdout.readline())["url"]
        client = httpx.Client(base_url=self._url, timeout=TIMEOUT_S)
        self._client = self._server.enter_context(client)

    def now_us(self) -> int:
        """The system's time."""
        return system_clock()

    def pass_s(self, seconds: float) -> None:
        """Nobody can do that to a real clock."""

    def ask(self, request: Request, secret: str) -> Answer:
        """The answer of the server."""
        headers = request.headers_with(secret)
        answer = self._client.request(
            request.method, request.path, content=request.body, headers=headers
        )
        return Answer(answer.status_code, answer.headers, answer.json())

    def lose(self, request: Request, secret: str, *, is_late: bool) -> None:
        """The server is killed while it has the request, or with the answer on its way."""
        headers = request.headers_with(secret)
        del headers["Authorization"], headers["Content-Type"]
        with Wire(self._url) as wire:
            wire.send(a_request(secret, request.method, request.path, request.body, **headers))
            if is_late:
                select.select([wire.socket], [], [], TIMEOUT_S)
            self.program.kill()
            self.program.wait()
        self.restart()

    def drain(self) -> None:
        """`resumes watch --once` has ended; 1 is for files that failed."""
        done = programs.run(self.home, "watch", "--once")
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr, done.stderr

    def drain_killed(self, at: int) -> None:
        """`resumes watch --once` is killed as soon as so many files are gone from the inboxes, or
        when it has begun to look."""
        waiting = self._count_waiting()
        with programs.running(self.home, "watch", "--once") as program:
            self._wait_for(program, leaving=max(0, waiting - at))
            program.kill()

    def _wait_for(self, program: "subprocess.Popen[str]", *, leaving: int) -> None:
        pause = threading.Event()
        while program.poll() is None:
            if self._has_begun() and self._count_waiting() <= leaving:
                return
            pause.wait(LOOK_AGAIN_S)

    def _has_begun(self) -> bool:
        return (self.root / ".importer" / "0.files").exists()

    def _count_waiting(self) -> int:
        return len(oracle.tally(self.root).left)

    def copy_store(self) -> None:
        """`resumes db copy` has ended well beside the server, and another listens on the copy."""
        place = self._make_place()
        programs.succeed(self.home, "db", "copy", self.store.url, place)
        self.store.close()
        self._use(place)
        self.restart()

    def back_up(self) -> Path:
        """`resumes db backup` has ended well beside the server."""
        self._backups += 1
        path = self.home / f"{self._backups}.backup"
        programs.succeed(self.home, "db", "backup", str(path))
        return path

    def restore(self, backup: Path) -> bool:
        """`resumes db restore` has ended well while no server was there."""
        is_file = self.store.path is not None
        place = self.store.url if is_file else self._make_place()
        self._server.close()
        self.store.close()
        programs.succeed(self.home, "--database", place, "db", "restore", str(backup))
        self._use(place)
        self._start()
        return is_file

    def restart(self) -> None:
        """The server had its SIGTERM if it was alive, and another listens."""
        self._server.close()
        self._start()

    def close(self) -> None:
        """Nothing of it runs any more."""
        self._server.close()
        self.store.close()
