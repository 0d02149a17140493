"""A home with accounts, files that are dropped into it, and importers at work on it."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from importer.notices import FileReport, Summary
from importer.options import Options
from importer.service import watch
from resumes.store import Store, accounts, plans
from resumes.store.accounts import AccountInfo
from resumes.store.plans import PlanChange
from tests.support import programs
from tests.support.inbox import oracle
from tests.support.inbox.oracle import Tally
from tests.support.resumes import a_document
from tests.support.stores import open_home
from tests.support.waiting import children_of

STOP_S = 60.0
"""How long an importer may take to end that was told to, whatever it is at."""


class Watch:
    """`resumes watch` as a process of its own."""

    def __init__(self, words: Sequence[str], log: Path, before: Sequence[str] = ()) -> None:
        self._log = log
        silent = subprocess.DEVNULL
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [*before, sys.executable, "-m", "cli", *words],
                stdin=silent,
                stdout=silent,
                stderr=errors,
            )

    @property
    def pid(self) -> int:
        """The importer's process."""
        return self.process.pid

    @property
    def log(self) -> str:
        """What it said so far."""
        return self._log.read_text(errors="replace")

    @property
    def children(self) -> list[int]:
        """The processes that help it."""
        return children_of(self.pid)

    @property
    def most_memory_bytes(self) -> int:
        """The most that the importer and those who help it now had in memory, added up."""
        return sum(map(_peak_bytes, [self.pid, *self.children]))

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def kill(self) -> None:
        """It ended without a chance to do anything."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """It ended in good time when asked to, and had no error of its own."""
        self.process.terminate()
        assert self.process.wait(STOP_S) == 0, self.log
        assert "ERROR resumes.importer" not in self.log, self.log
        assert "Internal error" not in self.log, self.log


def _peak_bytes(pid: int) -> int:
    with contextlib.suppress(FileNotFoundError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


class Scene:
    """A home, and its inbox as the watched folder."""

    def __init__(self, home: Path, root: Path | None = None) -> None:
        self.home = home
        self.root = root or home / "inbox"
        self.told: list[FileReport] = []
        self.notices: list[str] = []
        # Beside the home, which may be on a disk that is full.
        self._log = home.with_name(f"{home.name}.log")
        for folder in (self.home, self.root):
            folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def store(self) -> Iterator[Store]:
        """The store, open during the block."""
        with open_home(self.home) as store:
            yield store

    def account(self, name: str, *, most: int | None = None) -> AccountInfo:
        """A new account with an inbox, on a plan of its own name; without a limit, unlimited."""
        (self.root / name).mkdir(exist_ok=True)
        with self.store() as store:
            plans.set_plan_limits(store, PlanChange(name, max_resumes=most, api_listing=True))
            return accounts.create_account(store, name, plan=name)

    def limit(self, name: str, most: int | None) -> None:
        """The account's plan allows so many now; None is without a limit."""
        with self.store() as store:
            plans.set_plan_limits(store, PlanChange(name, max_resumes=most))

    def drop(self, name: str | bytes, content: bytes | None = None) -> Path:
        """A file below ROOT, written in place; a resume of the file's name unless told otherwise."""
        path = self.root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(a_document(path.name) if content is None else content)
        return path

    def drain(self, *, settle_s: float = 0.0, account: str | None = None) -> Summary:
        """What is there is imported, in this process."""
        with self.store() as store:
            return watch(
                store,
                self.root,
                Options(once=True, settle_s=settle_s, account=account),
                stop=threading.Event(),
                on_file=self.told.append,
                on_notice=self.notices.append,
            )

    def start(
        self,
        *arguments: str,
        settle_s: float = 0.5,
        before: Sequence[str] = (),
        root: Path | None = None,
        home: Path | None = None,
    ) -> Watch:
        """An importer that was just started. `before` goes before the command; `root` and `home`
        are the folders as the importer sees them, if that is by other paths."""
        words = ["--home", str(home or self.home), "watch", str(root or self.root)]
        return Watch([*words, "--settle", str(settle_s), *arguments], self._log, before)

    @contextlib.contextmanager
    def watched(
        self,
        *arguments: str,
        settle_s: float = 0.5,
        before: Sequence[str] = (),
        root: Path | None = None,
        home: Path | None = None,
    ) -> Iterator[Watch]:
        """An importer is at work during the block, and has ended well after it."""
        program = self.start(*arguments, settle_s=settle_s, before=before, root=root, home=home)
        try:
            programs.wait_until(lambda: not program.is_running or self.is_ready(program))
            assert program.is_running, program.log
            yield program
            if program.is_running:
                program.stop()
        finally:
            program.kill()

    def is_ready(self, watch: Watch) -> bool:
        """Whether the importer works in the folder, or stands by."""
        return "on standby" in watch.log or is_locked(self.root / ".importer" / "0.lock")

    def slots(self) -> list[str]:
        """Those of the importer and of its helpers, also of those that died."""
        return [path.name for path in (self.root / ".importer").glob("*.lock")]

    def names(self, account: str) -> list[str]:
        """The names on the account's resumes, in the order in which they were created."""
        with self.store() as store:
            return list(oracle.iter_names(store, accounts.get_account(store, account).id))

    def tally(self) -> Tally:
        """What lies where at this moment."""
        return oracle.tally(self.root)

    def wait_for(self, *, ended: int, limit_s: float = 60) -> None:
        """So many files were put away."""
        self.wait_until(lambda: self.tally().ended >= ended, limit_s=limit_s)

    def wait_for_all(self, files: int, *, limit_s: float) -> None:
        """So many files were put away. Looks seldom, since to look at very many takes long."""
        deadline = time.monotonic() + limit_s
        pause = threading.Event()
        while (ended := self.tally().ended) < files:
            assert time.monotonic() < deadline, f"{ended} of {files} after {limit_s} s"
            pause.wait(min(5.0, (files - ended) / 5_000))

    def wait_until(self, condition: Callable[[], bool], *, limit_s: float = 60) -> None:
        """The condition holds."""
        try:
            programs.wait_until(condition, within_s=limit_s)
        except AssertionError:
            raise AssertionError(f"{self.tally()} after {limit_s} s; {self.notices}") from None

    def check(
        self, *, files: int, resumes: Mapping[str, Collection[str]], left: Collection[str] = ()
    ) -> Tally:
        """Everything of `oracle.check` holds; the tally."""
        return oracle.check(self.home, files=files, resumes=resumes, left=left, root=self.root)


def kill(pid: int) -> None:
    """The process, which we started, ends without a chance to do anything, if it has not ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def is_locked(path: Path) -> bool:
    """Whether a process holds a lock on the file. To try it would look like one that does."""
    try:
        inode = path.stat().st_ino
    except FileNotFoundError:
        return False
    return f":{inode} " in Path("/proc/locks").read_text()
