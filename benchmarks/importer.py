"""What the importer costs beside a bare loop, and how soon it lists what is dropped.

    .venv/bin/python benchmarks/importer.py [--files N] [--repeat K] [--latency N] [--idle S]

Each part makes homes of its own in a temporary folder (TMPDIR chooses the disk) and leaves
nothing behind. Linux only: what processes use is read from /proc.

    backlog     N files of 4 to 5 KB wait, and are taken by the bare loop and by `resumes watch`
    fairness    the same backlog, and every half second a file of another account
    rest        one file at a time, then none, with N files in _done
"""

import argparse
import contextlib
import hashlib
import itertools
import json
import math
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from resumes.store import (
    Store,
    accounts,
    importers,
    open_store,
    plans,
    search_index,
    stored_resumes,
)
from resumes.store.accounts import AccountInfo
from resumes.store.plans import PlanChange
from resumes.store.sqlite.driver import dbapi

SAMPLES = Path(__file__).parents[1] / "sample_data"
SAMPLE_BYTES = range(4_000, 5_001)

BARE_BATCH = 100
"""Files that the bare loop commits at once."""

STEP_S = 0.02
"""How often it is asked whether a backlog is done: seldom enough to take little from it."""

MEMORY_STEP_S = 0.2
"""The system keeps the peak of each process: often enough not to miss one that ends."""

LIST_STEP_S = 0.002
DROP_EVERY_S = 0.5
PAUSES_S = (0.05, 0.15)
"""Between single drops, by chance: in step with the importer they would find it always alike."""

QUIET_S = 3.0
"""So long the importer has to come to rest."""

START_LIMIT_S = LISTED_LIMIT_S = END_LIMIT_S = 30.0
SLOWEST_FILES_PER_S = 200
MOST_REMARKS = 10
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


# Files


class Sample(NamedTuple):
    """A resume as text, but for its owner's name."""

    before: str
    after: str

    def body(self, name: str) -> bytes:
        """The resume of somebody of this name."""
        return f"{self.before}{json.dumps(name)}{self.after}".encode()


def load_samples() -> list[Sample]:
    """The samples of 4 to 5 KB."""
    samples = []
    for path in sorted(SAMPLES.glob("*.json")):
        if path.stat().st_size in SAMPLE_BYTES:
            text = path.read_text(encoding="utf-8")
            name = json.dumps(json.loads(text)["header"]["name"], ensure_ascii=False)
            before, _, after = text.partition(f'"name": {name}')
            samples.append(Sample(f'{before}"name": ', after))
    return samples


def write_backlog(folder: Path, files: int) -> None:
    """So many different resumes lie in the folder, and the disk has nothing left to do."""
    folder.mkdir(parents=True)
    for number, sample in zip(range(files), itertools.cycle(load_samples()), strict=False):
        (folder / f"{number:07}.json").write_bytes(sample.body(f"Waiting {number}"))
    os.sync()


# Processes


def tree(pid: int) -> list[int]:
    """The process and all that it started and that still run."""
    pids = [pid]
    for one in pids:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # it has just ended
                pids += map(int, task.read_text().split())
    return pids


def cpu_s(pid: int) -> float:
    """Processor seconds of a tree of processes, those that have ended among them."""
    ticks = 0
    for one in tree(pid):
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{one}/stat").read_text()
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return ticks / TICKS_PER_S


def peak_bytes(pid: int) -> int:
    """The most memory that a process has held so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) * 1024


@dataclass(frozen=True, slots=True)
class Home:
    """A home with two accounts without a limit. The files of `busy` wait; `calm` has none yet."""

    path: Path
    store: Store
    busy: AccountInfo
    calm: AccountInfo
    files: int

    def inbox(self, account: AccountInfo) -> Path:
        return self.path / "inbox" / account.name

    @property
    def is_through(self) -> bool:
        """Whether the backlog is stored, and out of the inbox."""
        if accounts.get_account(self.store, self.busy.name).resume_count < self.files:
            return False
        return not any(self.inbox(self.busy).iterdir())


@contextlib.contextmanager
def a_home(below: Path, files: int) -> Iterator[Home]:
    """A new home with a backlog."""
    with (
        tempfile.TemporaryDirectory(dir=below) as folder,
        open_store(f"sqlite:///{folder}/resumes.db") as store,
    ):
        plans.set_plan_limits(store, PlanChange("business", None))
        busy, calm = (
            accounts.create_account(store, name, plan="business") for name in ("busy", "calm")
        )
        home = Home(Path(folder), store, busy, calm, files)
        home.inbox(calm).mkdir(parents=True)
        write_backlog(home.inbox(busy), files)
        yield home


class Watch:
    """`resumes watch` on a home, at work."""

    def __init__(self, home: Home) -> None:
        self._home = home.path
        self._log = home.path / "watch.log"
        self._next_note_s = 0.0
        self._peaks: dict[int, int] = {}
        # -P: no folder that this is run in is looked through for packages.
        command = [sys.executable, "-P", "-m", "cli", "--home", str(home.path), "watch"]
        env = {name: value for name, value in os.environ.items() if name[:8] != "RESUMES_"}
        self.began_s = time.perf_counter()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log, env=env)
        self.start_s = 0.0
        """How long its start took, until it was listed among the importers."""

    def start(self, store: Store) -> None:
        """It looks after its folder now."""

        def is_listed() -> bool:
            return any(one.pid == self._process.pid for one in importers.list_importers(store))

        self.wait_until(is_listed, limit_s=START_LIMIT_S, step_s=LIST_STEP_S)
        self.start_s = time.perf_counter() - self.began_s

    def wait_until(
        self, is_so: Callable[[], bool], *, limit_s: float, step_s: float = STEP_S
    ) -> None:
        """It is so. Ends the program if it is not in time, or the importer has ended."""
        ends_at = time.perf_counter() + limit_s
        while not is_so():
            if self._process.poll() is not None or time.perf_counter() > ends_at:
                raise SystemExit(f"The importer ended or took too long.\n{self._last_words()}")
            time.sleep(step_s)

    def _last_words(self) -> str:
        said = [self._log, *(self._home / "logs").glob("*.txt")]
        return "\n".join(path.read_text(errors="replace")[-2_000:] for path in said)

    def note_peaks(self) -> None:
        """Now and then it is read what its processes have held, as one of them may end."""
        if time.perf_counter() >= self._next_note_s:
            self._next_note_s = time.perf_counter() + MEMORY_STEP_S
            self._read_peaks()

    def _read_peaks(self) -> None:
        for pid in tree(self._process.pid):
            with contextlib.suppress(OSError, IndexError):  # it has just ended
                self._peaks[pid] = peak_bytes(pid)

    def peak_bytes(self) -> int:
        """The most memory that its processes have held, each at its own time."""
        self._read_peaks()
        return sum(self._peaks.values())

    def cpu_s(self) -> float:
        """Processor seconds that its processes have used so far."""
        return cpu_s(self._process.pid)

    def end(self) -> None:
        """It has ended; by force, if it does not by itself. Its workers end with it."""
        self._process.terminate()
        try:
            self._process.wait(END_LIMIT_S)
        finally:
            self._process.kill()
            self._process.wait()
        self._show_remarks()

    def _show_remarks(self) -> None:
        """What it said beside that files are done explains figures that surprise."""
        with self._log.open(errors="replace") as log:
            remarks = (line for line in log if " done " not in line and "Watching " not in line)
            for line in itertools.islice(remarks, MOST_REMARKS):
                print(f"the importer said: {line}", end="")


@contextlib.contextmanager
def watching(home: Home) -> Iterator[Watch]:
    """`resumes watch` runs during the block."""
    watch = Watch(home)
    try:
        watch.start(home.store)
        yield watch
    finally:
        watch.end()


# Backlog


@dataclass(frozen=True, slots=True)
class Run:
    """A backlog that was worked off. `wall_s` counts from the start of the process; `start_s` of
    it and `peak_bytes` are those of processes, and 0 for the bare loop, which starts none."""

    files: int
    wall_s: float
    cpu_s: float
    start_s: float = 0.0
    peak_bytes: int = 0

    @property
    def files_per_s(self) -> float:
        return self.files / self.wall_s

    @property
    def started_files_per_s(self) -> float:
        """Without the start."""
        return self.files / (self.wall_s - self.start_s)

    def show(self, who: str) -> None:
        line = f"{who:<12}{self.files_per_s:>10,.0f}{self.wall_s:>9.2f}{self.cpu_s:>9.2f}"
        if self.start_s:
            line += f"{self.start_s:>10.2f}{self.peak_bytes / 1e6:>9.0f}"
        print(line, flush=True)


def run_bare(below: Path, files: int) -> Run:
    """The bare loop's run, in this process."""
    with tempfile.TemporaryDirectory(dir=below) as folder:
        inbox, done = Path(folder, "inbox"), Path(folder, "done")
        write_backlog(inbox, files)
        done.mkdir()
        with contextlib.closing(dbapi.connect(f"{folder}/bare.db")) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("CREATE TABLE resumes (name TEXT, digest BLOB, text TEXT)")
            began_s, began_cpu_s = time.perf_counter(), time.process_time()
            loop(connection, str(inbox), str(done))
            return Run(files, time.perf_counter() - began_s, time.process_time() - began_cpu_s)


def loop(connection: Any, inbox: str, done: str) -> None:
    names = os.listdir(inbox)  # noqa: PTH208 - as bare as can be
    for first in range(0, len(names), BARE_BATCH):
        batch = names[first : first + BARE_BATCH]
        rows = [row(f"{inbox}/{name}", name) for name in batch]
        connection.executemany("INSERT INTO resumes VALUES (?, ?, ?)", rows)
        connection.commit()
        for name in batch:
            os.rename(f"{inbox}/{name}", f"{done}/{name}")  # noqa: PTH104 - as bare as can be


def row(path: str, name: str) -> tuple[str, bytes, str]:
    with open(path, "rb") as file:  # noqa: PTH123 - as bare as can be
        body = file.read()
    digest = hashlib.sha256(body).digest()
    json.loads(body)
    return name, digest, body.decode()


def run_ours(below: Path, files: int) -> Run:
    """The importer's run, from the start of its process until it is through."""
    with a_home(below, files) as home:
        with watching(home) as watch:

            def is_through() -> bool:
                watch.note_peaks()
                return home.is_through

            watch.wait_until(is_through, limit_s=backlog_limit_s(files))
            wall_s = time.perf_counter() - watch.began_s
            run = Run(files, wall_s, watch.cpu_s(), watch.start_s, watch.peak_bytes())
        check_done(home, files)
        return run


def backlog_limit_s(files: int) -> float:
    return LISTED_LIMIT_S + files / SLOWEST_FILES_PER_S


def check_done(home: Home, files: int) -> None:
    """Ends the program unless so many files lie in _done."""
    done = sum(1 for _ in (home.path / "inbox" / "_done").rglob("*.json"))
    if done != files:
        raise SystemExit(f"{done:,} of {files:,} files are in _done: this measured something else")


def measure_backlog(below: Path, files: int, rounds: int) -> None:
    print(f"{'':<12}{'files/s':>10}{'wall s':>9}{'CPU s':>9}{'start s':>10}{'peak MB':>9}")
    pairs = []
    for _ in range(rounds):
        bare = run_bare(below, files)
        bare.show("bare loop")
        ours = run_ours(below, files)
        ours.show("ours")
        pairs.append((bare, ours))
    ratio = statistics.median(ours.files_per_s / bare.files_per_s for bare, ours in pairs)
    started = statistics.median(ours.started_files_per_s / bare.files_per_s for bare, ours in pairs)
    print(f"ours to bare, median: {ratio:.2f}, and {started:.2f} without the start\n")


# Latency


class Drops:
    """Files that are dropped into the calm account's inbox, and found in its list."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._folder = home.inbox(home.calm)
        self.count = 0
        """How many were dropped."""
        self._sample = load_samples()[0]
        self._dropped_s: dict[str, float] = {}
        self._cursor = ""

    @property
    def is_waiting(self) -> bool:
        """Whether some are not listed yet."""
        return bool(self._dropped_s)

    def by_rename(self) -> None:
        """A file was made elsewhere and is renamed into the inbox."""
        name, file_name, body = self._next()
        made = self._home.path / file_name
        made.write_bytes(body)
        self._dropped_s[name] = time.perf_counter()
        made.rename(self._folder / file_name)

    def by_write(self) -> None:
        """A file is written in the inbox."""
        name, file_name, body = self._next()
        self._dropped_s[name] = time.perf_counter()
        (self._folder / file_name).write_bytes(body)

    def _next(self) -> tuple[str, str, bytes]:
        self.count += 1
        name = f"Dropped {self.count}"
        return name, f"dropped-{self.count}.json", self._sample.body(name)

    def look(self) -> list[float]:
        """Seconds from drop to now, of those that are listed for the first time."""
        page = stored_resumes.list_page(
            self._home.store,
            self._home.calm.id,
            cursor=self._cursor,
            limit=stored_resumes.MAX_LIMIT,
        )
        now_s = time.perf_counter()
        if page.entries:
            self._cursor = page.entries[-1].id
        return [now_s - self._dropped_s.pop(entry.name or "") for entry in page.entries]


def measure_fairness(home: Home, watch: Watch, drops: Drops) -> None:
    """Files of one account are dropped while another's backlog is worked off."""
    seconds: list[float] = []
    began_s = next_drop_s = next_question_s = time.perf_counter()
    is_through = False

    def step() -> bool:
        nonlocal next_drop_s, next_question_s, is_through
        now_s = time.perf_counter()
        if not is_through and now_s >= next_drop_s:
            drops.by_rename()
            next_drop_s += DROP_EVERY_S
        seconds.extend(drops.look())
        if not is_through and now_s >= next_question_s:
            is_through = home.is_through
            next_question_s = now_s + STEP_S
        return is_through and not drops.is_waiting

    watch.wait_until(step, limit_s=backlog_limit_s(home.files), step_s=LIST_STEP_S)
    show_seconds(f"during a backlog, {time.perf_counter() - began_s:.1f} s", seconds)


def measure_latency(
    watch: Watch, drops: Drops, drop: Callable[[], None], count: int, how: str
) -> None:
    """Files are dropped one at a time."""
    chance = random.Random(1)
    seconds: list[float] = []

    def is_listed() -> bool:
        seconds.extend(drops.look())
        return not drops.is_waiting

    for _ in range(count):
        time.sleep(chance.uniform(*PAUSES_S))
        drop()
        watch.wait_until(is_listed, limit_s=LISTED_LIMIT_S, step_s=LIST_STEP_S)
    show_seconds(f"one at a time, by {how}", seconds)


def measure_idle(watch: Watch, span_s: float, done: int) -> None:
    """The importer has nothing to do for a while."""
    began_s, began_cpu_s = time.perf_counter(), watch.cpu_s()
    time.sleep(span_s)
    took_s, used_s = time.perf_counter() - began_s, watch.cpu_s() - began_cpu_s
    print(
        f"\nidle, {done:,} files in _done: {used_s:.2f} CPU s in {took_s:.0f} s, "
        f"{used_s / took_s:.2%} of a core"
    )


def is_indexed(home: Home) -> bool:
    """Whether everything that is stored can be searched by its index."""
    return not search_index.list_behind(home.store)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of all does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def show_seconds(what: str, seconds: Sequence[float]) -> None:
    p50, p99, most = (percentile(seconds, share) * 1e3 for share in (0.5, 0.99, 1))
    print(f"{what:<36}{len(seconds):>6}{p50:>9.1f}{p99:>9.1f}{most:>9.1f}", flush=True)


def measure_home(below: Path, files: int, drops_each: int, idle_s: float) -> None:
    """Fairness on a new home; then, by another process, what is measured at rest."""
    with a_home(below, files) as home:
        drops = Drops(home)
        print(f"{'drop to listed':<36}{'files':>6}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}")
        with watching(home) as watch:
            measure_fairness(home, watch, drops)
        check_done(home, files + drops.count)
        with watching(home) as watch:
            # What was stored is added to the search index for a while yet.
            watch.wait_until(
                lambda: is_indexed(home), limit_s=backlog_limit_s(files), step_s=QUIET_S
            )
            time.sleep(QUIET_S)
            if drops_each:
                measure_latency(watch, drops, drops.by_rename, drops_each, "rename")
                measure_latency(watch, drops, drops.by_write, drops_each, "write")
            if idle_s:
                time.sleep(QUIET_S)
                measure_idle(watch, idle_s, home.files + drops.count)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="The importer beside a bare loop, and its latency."
    )
    parser.add_argument("--files", type=int, default=100_000, help="in the backlog [100000]")
    parser.add_argument("--repeat", type=int, default=1, help="rounds beside the bare loop [1]")
    parser.add_argument("--latency", type=int, default=200, help="single drops of each kind [200]")
    parser.add_argument("--idle", type=float, default=20, help="seconds at rest [20]")
    arguments = parser.parse_args()
    if arguments.files < 1 or min(arguments.repeat, arguments.latency, arguments.idle) < 0:
        parser.error("--files must be at least 1, the others 0 (which leaves that part out)")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    # As with Ctrl-C: processes end and folders go.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    size = statistics.mean(len(sample.body("Waiting 0")) for sample in load_samples())
    print(
        f"{arguments.files:,} files of {size:,.0f} bytes in {tempfile.gettempdir()}; CPython "
        f"{platform.python_version()}, SQLite {dbapi.sqlite_version}, {os.cpu_count()} cores\n"
    )
    # A folder around those of the parts: it also goes when their removal is interrupted.
    with tempfile.TemporaryDirectory(prefix="importer-benchmark-") as folder:
        if arguments.repeat:
            measure_backlog(Path(folder), arguments.files, arguments.repeat)
        measure_home(Path(folder), arguments.files, arguments.latency, arguments.idle)


if __name__ == "__main__":
    main()
