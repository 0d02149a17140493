"""What tests of the importer are made of."""

import contextlib
import ctypes
import dataclasses
import json
import os
import resource
import threading
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from importer.job import Observer, Step, unobserved
from importer.loop import Importer
from importer.notices import FileReport, Notices
from importer.options import Options, Tuning
from importer.service import Summary, watch
from resumes.store import Store, accounts, import_history, import_requests, plans, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.import_history import FileRow
from resumes.store.import_requests import RequestKind
from resumes.store.plans import PlanChange
from tests.support.clocks import FakeMonotonic as FakeMonotonic
from tests.support.clocks import SteppingClock
from tests.support.resumes import a_document
from tests.support.waiting import wait_until as wait_until

REPORT = ".report.json"


# Files


def drop(root: Path, name: str, content: bytes = b"") -> Path:
    """A file in the inbox, with a small valid resume of its own unless told otherwise."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content or a_document(name=f"Owner of {os.fsencode(name)!r}"))
    return path


def lines(*names: str) -> bytes:
    """NDJSON of a resume for each name, and of nonsense for each empty one."""
    return b"".join((a_document(name) if name else b"nonsense") + b"\n" for name in names)


def names_below(folder: Path) -> list[str]:
    """Paths of all files below a folder, relative to it, sorted."""
    if not folder.exists():
        return []
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def filed(root: Path, outcome: str) -> list[Path]:
    """The files put away under an outcome, without their reports."""
    return [
        root / outcome / name for name in names_below(root / outcome) if not name.endswith(REPORT)
    ]


def report_beside(file: Path) -> Path:
    """Where the report on a file of one resume lies."""
    return file.with_name(file.name.removesuffix(".json") + REPORT)


class Inbox:
    """A watched folder, the store of its importers, and the account `ana` without a limit.

    A test calls the rounds of the importers that `importer` makes; those of `drain` and `watched`
    work in real time. All of them tell what they do to `files` and `notices`.
    """

    def __init__(
        self, store: Store, root: Path, clock: SteppingClock, monotonic: FakeMonotonic
    ) -> None:
        self.store = store
        self.clock = clock
        self.root = root
        self.monotonic = monotonic
        self.advance = monotonic.advance
        self.files: list[FileReport] = []
        self.notices: list[str] = []
        self._importers: list[Importer] = []
        self.ana = self.account("ana")

    def outcomes(self) -> dict[str, str]:
        """The outcome of each file, by its name below ROOT; of a file told twice, the last."""
        return {file.name: file.outcome.value for file in self.files}

    # Accounts and the ledger

    def account(self, name: str, most: int | None = None) -> AccountInfo:
        """An account on a plan of its own name."""
        self.limit(most, name)
        return accounts.create_account(self.store, name, plan=name)

    def limit(self, most: int | None, plan: str = "ana") -> None:
        """The plan allows so many resumes from now on."""
        plans.set_plan_limits(self.store, PlanChange(plan, max_resumes=most))

    def names(self, account: str = "ana") -> list[str]:
        """The names on an account's resumes, oldest first."""
        account_id = accounts.get_account(self.store, account).id
        page = stored_resumes.list_page(self.store, account_id, limit=100)
        return [entry.name or "" for entry in page.entries]

    def rows(self, **chosen: Any) -> Sequence[FileRow]:
        """What the ledger has of files, the newest first."""
        return import_history.list_files(self.store, **chosen)

    def ask(self, action: RequestKind) -> Sequence[FileRow]:
        """Somebody asks for all files."""
        rows = self.rows()
        import_requests.request_files(self.store, rows, action)
        return rows

    # Files

    def drop(self, name: str, content: bytes = b"") -> Path:
        """A file below ROOT, as `drop` makes it."""
        return drop(self.root, name, content)

    def drop_aged(self, *names: str) -> None:
        """Files of ana's whose resumes have these names, the oldest first."""
        for age, name in enumerate(names):
            os.utime(self.drop(f"ana/{name}.json", a_document(name)), ns=(age, age))

    def names_below(self, folder: str = "") -> list[str]:
        """Paths of all files below a folder, relative to it, sorted."""
        return names_below(self.root / folder)

    def filed(self, outcome: str) -> list[Path]:
        """The files put away under an outcome, without their reports."""
        return filed(self.root, outcome)

    def counts(self, *outcomes: str) -> list[int]:
        """How many files are put away under each outcome."""
        return [len(self.filed(f"_{outcome}")) for outcome in outcomes]

    def report(self, outcome: str) -> dict[str, Any]:
        """The one report under an outcome."""
        (path,) = (self.root / outcome).rglob(f"*{REPORT}")
        report: dict[str, Any] = json.loads(path.read_bytes())
        return report

    def is_tidy(self) -> bool:
        """End the importers; whether nothing of their own is left but in outcome folders."""
        self.close()
        return set(self.names_below(".importer")) <= {"store"}

    # Importers

    def importer(
        self,
        *,
        at: Path | None = None,
        beside: bool = False,
        observe: Observer = unobserved,
        **options: Any,
    ) -> Importer:
        """An importer after the one before it, or `beside` it: `importer(settle_s=5)`."""
        for one in () if beside else self._importers:
            one.close()
        importer = Importer(
            self.store,
            at or self.root,
            _options({"settle_s": 5.0} | options),
            on_file=self.files.append,
            notices=Notices(self.notices.append),
            observe=observe,
            monotonic=self.monotonic,
        )
        self._importers.append(importer)
        return importer

    def rounds(self, importer: Importer, times: int, pause_s: float = 0) -> None:
        """So many rounds, with a pause after each."""
        for _ in range(times):
            importer.round()
            self.advance(pause_s)

    def close(self) -> None:
        """Every importer has ended."""
        for one in self._importers:
            one.close()

    def drain(
        self, at: Path | None = None, *, stop: threading.Event | None = None, **options: Any
    ) -> Summary:
        """Import what is there: `drain(settle_s=0)`. What it came to."""
        callbacks = {name: options.pop(name) for name in CALLBACKS & options.keys()}
        return watch(
            self.store,
            at or self.root,
            _options({"once": True, "settle_s": 0.0} | options),
            stop=stop or threading.Event(),
            on_file=self.files.append,
            on_notice=self.notices.append,
            **callbacks,
        )

    @contextlib.contextmanager
    def watched(self, at: Path | None = None, **options: Any) -> Iterator[list[Summary]]:
        """The folder is watched during the block; afterwards the list holds what it came to."""
        stop = threading.Event()
        summaries: list[Summary] = []
        options = {"once": False, "settle_s": 0.05, "scan_s": 0.2} | options
        thread = threading.Thread(
            target=lambda: summaries.append(self.drain(at, stop=stop, **options))
        )
        thread.start()
        try:
            yield summaries
        finally:
            stop.set()
            thread.join(60)
        assert not thread.is_alive()


CALLBACKS = {"on_progress", "on_ignored"}
QUICK = Tuning(helper_from=1_000_000, first_back_off_s=0.001, longest_back_off_s=0.05)
TUNING = {field.name for field in dataclasses.fields(Tuning)}


def _options(chosen: dict[str, Any]) -> Options:
    """Options, and fields of their tuning, by name."""
    tuning = {name: value for name, value in chosen.items() if name in TUNING}
    rest = {name: value for name, value in chosen.items() if name not in TUNING}
    return Options(**rest, tuning=dataclasses.replace(QUICK, **tuning))


# Faults


class Moment(StrEnum):
    """A point on a file's way at which a test does something. Which step of the importer that is
    stands here alone."""

    NOTED = Step.NOTED
    """It is about to be opened."""
    READ = Step.READ
    COMMITTED = Step.COMMITTED
    REPORTED = Step.REPORT_WRITTEN
    SET_ASIDE = Step.SET_ASIDE
    COPIED = Step.COPIED
    """Both on the way to another disk."""
    MOVED = Step.MOVED


class Killed(BaseException):
    """Ends what is under way as a kill does: whatever handles errors does not see it."""


def during(moment: Moment | Step, act: Callable[[], object]) -> Observer:
    """Acts each time that a file comes to the moment."""

    def observe(step: Step) -> None:
        if step == moment.value:
            act()

    return observe


def closing_folder(folder: Path, moment: Moment, *, mode: int = 0) -> Observer:
    """Takes away the permissions of the folder when a file comes to the moment for the first time."""
    waiting = [folder]

    def close() -> None:
        while waiting:
            waiting.pop().chmod(mode)

    return during(moment, close)


def killing_at(moment: Moment | Step) -> Observer:
    """Kills as soon as a file comes to the moment."""

    def kill() -> None:
        raise Killed

    return during(moment, kill)


def die(importer: Importer) -> None:
    """The importer is killed in the middle of a round."""
    with pytest.raises(Killed):
        importer.round()
    importer.close()


def rounds_until(importer: Importer, is_so: Callable[[], bool]) -> None:
    """Round after round is done until it is so: a round ends after a second, whatever is left."""

    def is_so_after_a_round() -> bool:
        importer.round()
        return is_so()

    wait_until(is_so_after_a_round)


@contextlib.contextmanager
def a_full_disk(largest_bytes: int = 0) -> Iterator[None]:
    """No file grows beyond this size: what is written is cut off there, or fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


_CAPABILITIES = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 28
"""CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER and CAP_LEASE, as capabilities(7) numbers them."""


@contextlib.contextmanager
def bound_by_permissions() -> Iterator[None]:
    """This thread is bound by permissions, also when root runs the tests."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    effective = sets[0]
    sets[0] = effective & ~_CAPABILITIES
    assert libc.capset(header, sets) == 0
    try:
        yield
    finally:
        sets[0] = effective
        assert libc.capset(header, sets) == 0
