"""Clocks that are set while resumes are created and followed."""

import contextlib
import json
import os
import random
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from resumes.store import accounts, open_store
from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.chaos.checker import let_pass
from tests.support import programs
from tests.support.api import ended_servers, load
from tests.support.inbox import oracle
from tests.support.resumes import a_document

SETTABLE: Final = """
import mmap, os, struct, time

with open(os.environ["CLOCK_AHEAD"], "rb") as file:
    ahead = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
time_ns = time.time_ns
time.time_ns = lambda: time_ns() + struct.unpack("q", ahead[:])[0]
time.time = lambda: time.time_ns() / 1_000_000_000
"""
"""What each of the Python processes runs at its start: its clock is ahead by what the file says."""

SETS: Final = 60
HOUR_S: Final = 3_600
YEAR_S: Final = 365 * 24 * HOUR_S
PROGRAMS: Final = {
    "api": ("serve", "--json", "--port", "0"),
    "two workers": ("serve", "--json", "--port", "0", "--workers", "2"),
    "importer": ("watch", "--settle", "0.2"),
    "another importer": ("watch", "--settle", "0.2"),
}
WRITERS: Final = 4


class WallClock:
    """The clock of a program and of all that it starts."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.clock"
        (folder / "sitecustomize.py").write_text(SETTABLE)
        self.put_ahead(0)

    def put_ahead(self, seconds: float) -> None:
        """Set it ahead of the machine's clock, or behind."""
        mode = "r+b" if self._path.exists() else "wb"  # the file is mapped: it stays the same
        with self._path.open(mode) as file:
            file.write(struct.pack("q", int(seconds * 1_000_000_000)))

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of a program that has this clock."""
        own = {"CLOCK_AHEAD": str(self._path), "PYTHONPATH": str(self._path.parent)}
        return {**os.environ, **own}


@contextlib.contextmanager
def programs_of(
    url: str, home: Path, clocks: Mapping[str, WallClock]
) -> Iterator[Sequence["subprocess.Popen[str]"]]:
    """Run a program for each clock during the block, and let it end by itself after it."""
    with contextlib.ExitStack() as stack:
        running = []
        for name, clock in clocks.items():
            log = stack.enter_context((home / f"{name}.log").open("w"))
            program = subprocess.Popen(
                programs.command(home, "--database", url, *PROGRAMS[name]),
                stdout=subprocess.PIPE if name in ("api", "two workers") else subprocess.DEVNULL,
                stderr=log,
                text=True,
                env=clock.environment,
            )
            running.append(stack.enter_context(program))
            stack.callback(program.kill)
        yield running
        for program in running:
            program.terminate()
        assert [program.wait(30) for program in running] == [0] * len(running)


@pytest.mark.chaos(
    12,
    fault="processes with different clocks share a store, and their clocks are set forward and back",
    promise="no polling client skips a resume, and each resume is stored exactly once",
)
def test_processes_whose_clocks_differ_lose_and_repeat_nothing(
    url: str, tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """Two servers (one of them with two workers) and two importers share a store. Four clients
    create resumes, two clients poll for new resumes, and files arrive in the folder that the
    importers share. In each of 60 steps, the test sets the clock of a random process to 1970, to
    2040, to the correct time, or to a time that is off by a minute, an hour or a year."""
    home, inbox = tmp_path, tmp_path / "inbox"
    key = checker.make_account(url)
    with open_store(url) as store:
        accounts.create_account(store, "bo", plan="business")
    (inbox / "bo").mkdir(parents=True)
    to_1970_s = 24 * HOUR_S - time.time()
    choices = [0, 60, -60, HOUR_S, -HOUR_S, YEAR_S, -YEAR_S, to_1970_s, to_1970_s + 70 * YEAR_S]
    clocks = {name: WallClock(tmp_path, name) for name in PROGRAMS}
    seen: list[list[str]] = [[], []]
    with programs_of(url, home, clocks) as running:
        urls = [json.loads(one.stdout.readline())["url"] for one in running if one.stdout]
        followers = [ended_servers.a_reader(key, urls[n], seen[n], pause_s=0.01) for n in range(2)]
        writers = [load.writer(urls[n % 2], key, f"{n}", is_safe=True) for n in range(WRITERS)]
        with load.running([*writers, *followers]):
            for number in range(SETS):
                seed.choice(list(clocks.values())).put_ahead(seed.choice(choices))
                for part in range(5):
                    name = f"{number}-{part}.json"
                    (inbox / "bo" / name).write_bytes(a_document(name))
                let_pass(seed.uniform(0.05, 0.3))
        programs.wait_until(lambda: oracle.tally(inbox).done == SETS * 5, within_s=120)
    attempts = load.attempts_of(writers)
    found = checker.check_attempts(url, attempts)
    with open_store(url) as store:
        ids = [resume_id for resume_id, _ in checker.iter_stored(store)]
        files = [name for _, name in checker.iter_stored(store, "bo")]
    expected = (f"{number}-{part}.json" for number in range(SETS) for part in range(5))
    missing, doubled = checker.count_differences(expected, files)
    pages = [one.answer.json for follower in followers for one in follower.attempts if one.answer]
    years = {entry["createdAt"][:4] for page in pages for entry in page["resumes"]}
    figures["clock_changes"], figures["different_creation_years"] = SETS, len(years)
    figures["resumes_acknowledged"] = found.stored
    figures["files"] = len(files)
    figures["lost"], figures["duplicated"] = missing, doubled + found.doubled
    figures["skipped"] = sum(some != ids[: len(some)] for some in seen)
    wrong = [one for one in attempts if one.answer is None or one.answer.status != 201]
    figures["errors"] = len(wrong)
    assert min(map(len, seen)) > 0
    assert len(years) > 2
    assert wrong == []
    assert figures["lost"] == figures["duplicated"] == figures["skipped"] == 0
