"""What tests of the importer are made of."""

import contextlib
import ctypes
import json
import os
import resource
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from importer.failpoints import Observer, Step
from importer.loop import Importer
from importer.notices import FileReport
from resumes.store import Store, accounts, plans, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.plans import PlanChange
from tests.support.resumes import a_document
from tests.support.waiting import wait_until as wait_until

REPORT = ".report.json"


class FakeMonotonic:
    """A monotonic clock that stands still until it is moved. Seconds."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


class Told:
    """Collects what an importer tells."""

    def __init__(self) -> None:
        self.files: list[FileReport] = []
        self.notices: list[str] = []

    def outcomes(self) -> dict[str, str]:
        """The outcome of each file, by its name below ROOT; of a file told twice, the last."""
        return {file.name: file.outcome.value for file in self.files}


MakeAccount = Callable[..., AccountInfo]
MakeImporter = Callable[..., Importer]


# Files


def drop(root: Path, name: str, content: bytes = b"") -> Path:
    """A file in the inbox, with a small valid resume of its own unless told otherwise."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content or a_document(name=f"Owner of {os.fsencode(name)!r}"))
    return path


def drop_aged(root: Path, *names: str) -> None:
    """Files in ana's inbox whose resumes have these names, the oldest first."""
    for age, name in enumerate(names):
        os.utime(drop(root, f"ana/{name}.json", a_document(name)), ns=(age, age))


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


def counts(root: Path, *outcomes: str) -> list[int]:
    """How many files are put away under each outcome."""
    return [len(filed(root, f"_{outcome}")) for outcome in outcomes]


def the_report(root: Path, outcome: str) -> dict[str, Any]:
    """The one report under an outcome."""
    (path,) = [
        root / outcome / name for name in names_below(root / outcome) if name.endswith(REPORT)
    ]
    report: dict[str, Any] = json.loads(path.read_bytes())
    return report


def report_beside(file: Path) -> Path:
    """Where the report on a file of one resume lies."""
    return file.with_name(file.name.removesuffix(".json") + REPORT)


def is_tidy(root: Path) -> bool:
    """Whether no importer left anything of its own behind but what lies in outcome folders."""
    return set(names_below(root / ".importer")) <= {"store"}


# The store


def resume_names(store: Store, account_id: str) -> list[str]:
    """The names on an account's resumes, oldest first."""
    page = stored_resumes.list_page(store, account_id, limit=100)
    return [entry.name or "" for entry in page.entries]


def set_limit(store: Store, plan: str, most: int | None) -> None:
    """The plan allows so many resumes from now on."""
    plans.set_plan_limits(store, PlanChange(plan, max_resumes=most))


def an_account_with_room_for(store: Store, most: int | None, name: str = "ana") -> AccountInfo:
    """An account on a plan of its own name."""
    set_limit(store, name, most)
    return accounts.create_account(store, name, plan=name)


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


def during(moment: Moment, act: Callable[[], object]) -> Observer:
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


def killing_at(moment: Moment) -> Observer:
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
