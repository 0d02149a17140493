"""The product in the test's own process: its functions, and its API in a thread."""

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from importer.job import Step
from importer.loop import Importer
from importer.notices import Notices
from importer.options import Options
from importer.service import Runner, watch
from resumes.settings import Settings
from resumes.store import Store, open_store
from resumes.store.transfer import backups, copies
from resumes.store.transfer.backups import back_up
from tests.stateful.requests import MAX_BYTES, Answer, Request
from tests.support.api.builders import Client, SteppingClock
from tests.support.api.serving import serving
from tests.support.inbox import oracle
from tests.support.inbox.builders import Killed

START_S = 0.01
"""What passes while an importer starts; the claims of two are told apart by it."""

TICK_S = 0.001
DRAIN_S = 30.0
"""Much longer than any drain takes."""


class InProcess:
    """An installation whose clock stands still unless it is moved."""

    def __init__(self, home: Path, url: str, make_place: Callable[[], str]) -> None:
        self._home = home
        self._make_place = make_place
        self.root = home / "inbox"
        self.root.mkdir()
        self._clock = SteppingClock()
        self._url = url
        self._backups = 0
        self._open()

    def _open(self) -> None:
        settings = Settings(home=self._home, port=0, database=self._url, max_body_bytes=MAX_BYTES)
        self._options = Options(once=True, settle_s=0, format=settings.format)
        self.store: Store = open_store(self._url, clock=self._clock)
        self._served = contextlib.ExitStack()
        url = self._served.enter_context(serving(settings, self.store, runs_background=False))
        self._client = Client(url, key="")
        self._served.callback(self._client.close)

    def now_us(self) -> int:
        """The time that the clock was set to."""
        return self._clock()

    def pass_s(self, seconds: float) -> None:
        """The clock goes forward, or back."""
        self._clock.advance(seconds)

    def ask(self, request: Request, secret: str) -> Answer:
        """The answer of the application."""
        answer = self._client.request(
            request.method, request.path, content=request.body, headers=request.headers_with(secret)
        )
        return Answer(answer.status_code, answer.headers, answer.json())

    def lose(self, request: Request, secret: str, *, is_late: bool) -> None:
        """The request is answered to nobody if it `is_late`, and never comes otherwise."""
        if is_late:
            self.ask(request, secret)

    def drain(self) -> None:
        """An importer has drained the folder, and ended before long."""
        self._clock.advance(START_S)
        stop = threading.Event()
        timer = threading.Timer(DRAIN_S, stop.set)
        timer.start()
        try:
            watch(
                self.store,
                self.root,
                self._options,
                stop=stop,
                on_file=lambda report: None,
                on_notice=lambda notice: None,
            )
        finally:
            timer.cancel()
        assert not stop.is_set(), f"the importer does not end: {oracle.tally(self.root)}"

    def drain_killed(self, at: int) -> None:
        """An importer was cut off when it announced its step of this number."""
        self._clock.advance(START_S)
        importer = Importer(
            self.store,
            self.root,
            self._options,
            on_file=lambda report: None,
            notices=Notices(lambda notice: None),
            observe=_Killer(at),
            monotonic=_Ticks(),
        )
        was_killed = False
        try:
            Runner(importer).run(threading.Event(), until_idle=True)
        except Killed:
            was_killed = True
        # Not before the error is gone, and with it every file that somebody would close.
        if was_killed:
            _close_files(self.root)
        else:
            importer.close()

    def copy_store(self) -> None:
        """The store was copied while the application had it open, and the copy is open instead."""
        place = self._make_place()
        copies.copy(self.store, place)
        self.close()
        self._url = place
        self._open()

    def back_up(self) -> Path:
        """The store of this moment is in a file."""
        self._backups += 1
        path = self._home / f"{self._backups}.backup"
        back_up(self.store, path, clock=self._clock)
        return path

    def restore(self, backup: Path) -> bool:
        """The store was restored in the place of another file, or in another database."""
        self._clock.advance(START_S)
        is_file = self.store.path is not None
        self.close()
        if not is_file:
            self._url = self._make_place()
        backups.restore(backup, self._url, clock=self._clock)
        self._open()
        return is_file

    def restart(self) -> None:
        """The store and the application were closed, and are open again."""
        self.close()
        self._open()

    def close(self) -> None:
        """Nothing of it runs any more."""
        self._served.close()


class _Ticks:
    """A clock by which everything takes as long each time, so that a kill hits the same step."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += TICK_S
        return self._now_s


class _Killer:
    """Kills at the announcement of a number."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __call__(self, step: Step) -> None:
        self._left -= 1
        if self._left == 0:
            raise Killed


def _close_files(root: Path) -> None:
    """What a dead process had open of the folder is closed, as the kernel does."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  (names are all that is asked for)
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith(str(root)):  # noqa: PTH115
                os.close(int(name))
