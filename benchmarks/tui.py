"""What the terminal UI costs: to start, to answer a key, to filter, and in memory.

    .venv/bin/python benchmarks/tui.py [--resumes N] [--starts K] [--keys K] [--home DIR]

Runs `resumes tui` in a pseudo-terminal of 120x40 and watches what it writes; needs Linux. Makes
its homes in a temporary folder; with --home the large one is made there once, and kept.

    start     from starting the process until the frame is written, and until the first row is,
              on a home with 200 resumes and on the large one
    keys      in the list of an account of N resumes: from writing the key until the list is
              painted anew, which is the first frame, and until the last byte of what follows
    filter    from writing what is sought until the first row of the answer is written
    stall     the same keys and filters again with a ticker of 1 ms in the event loop: its worst
              lateness. The ticker costs something itself, so the other figures are without it
    memory    the most that the process ever held, after the keys and filters
"""

import argparse
import asyncio
import contextlib
import fcntl
import itertools
import json
import os
import pty
import re
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from resumes import analyzer
from resumes.store import Store, accounts, creation, open_store, plans, search_index, stored_resumes
from resumes.store.creation import NewResume
from resumes.store.plans import PlanChange

COLUMNS, LINES = 120, 40
FRAME = b"Resumes"
FIRST_ROW = b"The very first"
RARE = ("Zacharias", "Unikatowicz")
BATCH = 500
DIFFERENT = 20_000
"""How many resumes differ; the others repeat them."""

COLORS = re.compile(rb"\x1b\[[0-9;]*m")
LIMIT_S = 30.0
BETWEEN_FRAMES_S = 0.002
"""A frame is written at once; what comes after a pause is another one."""

QUIET_S = 0.05
"""A repaint has ended when nothing was written for so long: three frames. What follows the cursor
waits for 80 ms, and does not count."""

REST_S = 0.25
"""All has settled when nothing was written for so long: what follows the cursor has followed."""

NO_ANSWER_S = 0.5
STALL_S = 0.005
"""Ticks that are late by less are not noted."""

FIRST_NAMES = (
    "Ada", "Bruno", "Chioma", "Dmitri", "Elif", "Fatima", "Gustav", "Hana", "Ibrahim", "Jana",
    "Kofi", "Leila", "Mateo", "Noor", "Olga", "Pavel", "Quentin", "Rosa", "Samir", "Tuva",
)  # fmt: skip
LAST_NAMES = tuple(
    f"{start}{end}"
    for start in ("Ander", "Berg", "Castel", "Dom", "Eich", "Ferr", "Gold", "Hoff", "Ivan", "Jans")
    for end in ("sen", "man", "lano", "ingue", "horn", "eira", "stein", "ov", "ström", "ara")
)
JOBS = ("Nurse", "Engineer", "Teacher", "Designer", "Analyst", "Welder", "Chemist", "Editor")


# Homes


def documents() -> Iterator[bytes]:
    """So many different resumes, small."""
    people = itertools.cycle(itertools.product(LAST_NAMES, FIRST_NAMES, JOBS))
    for number, (last, first, job) in enumerate(itertools.islice(people, DIFFERENT)):
        title = f"{job} {first} {last}"
        yield a_document(f"{first} {last}", title, f"p{number}@example.com")


def a_document(name: str, title: str, email: str) -> bytes:
    header = {"name": name, "email": email}
    return json.dumps({"title": title, "header": header, "sections": {}}).encode()


def fill(home: Path, size: int) -> None:
    """The home has one account with so many resumes, all indexed, the rare one in their middle."""
    home.mkdir(parents=True, exist_ok=True)
    with open_store(f"sqlite:///{home}/resumes.db", upgrade=True) as store:
        plans.set_plan_limits(store, PlanChange("business", None))
        account = accounts.create_account(store, "ada", plan="business")
        put(store, account.id, [a_document("Ada Example", FIRST_ROW.decode(), "a@example.com")])
        pool = [NewResume(analyzer.parse(body)) for body in documents()]
        endless = itertools.cycle(pool)
        for batch in range(0, size, BATCH):
            if batch <= size // 2 < batch + BATCH:
                put(store, account.id, [a_document(" ".join(RARE), "Sought", "z@example.com")])
            many = min(BATCH, size - batch)
            creation.create(store, account.id, list(itertools.islice(endless, many)))
        indexer = search_index.Indexer(store)
        while search_index.list_behind(store):
            indexer.step()


def put(store: Store, account_id: str, bodies: Sequence[bytes]) -> None:
    creation.create(store, account_id, [NewResume(analyzer.parse(body)) for body in bodies])


def is_filled(home: Path) -> bool:
    """Whether the home was filled by a run before this one."""
    if not (home / "resumes.db").exists():
        return False
    with open_store(f"sqlite:///{home}/resumes.db") as store:
        account = accounts.find_account(store, "ada")
        return account is not None and bool(
            stored_resumes.list_page(store, account.id, limit=1).entries
        )


# Terminals


class Latency(NamedTuple):
    """From writing a key: until the first frame that came of it is whole, and until the last byte."""

    frame_ms: float
    last_ms: float


class Terminal:
    """A program on a pseudo-terminal, and what it wrote."""

    def __init__(self, command: Sequence[str]) -> None:
        self.side, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        env = {name: value for name, value in os.environ.items() if name[:8] != "RESUMES_"}
        env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.wire = b""
        self.began_at = time.perf_counter()
        self.program = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=env
        )
        os.close(theirs)

    def read(self, within_s: float) -> bool:
        """Whether something was written meanwhile; it is at the end of `wire`."""
        if not select.select([self.side], [], [], within_s)[0]:
            return False
        try:
            self.wire += os.read(self.side, 1 << 20)
        except OSError as error:
            raise SystemExit(f"It ended.\n{self.wire[-2_000:]!r}") from error
        return True

    def wait_for(self, awaited: bytes, *, since: float, after: int = 0) -> float:
        """Milliseconds since then, when this had been written after so many bytes, in any colors."""
        ends_at = time.perf_counter() + LIMIT_S
        while awaited not in COLORS.sub(b"", self.wire[after:]):
            if time.perf_counter() > ends_at:
                raise SystemExit(f"{awaited!r} was never written.\n{self.wire[-2_000:]!r}")
            self.read(0.1)
        return (time.perf_counter() - since) * 1e3

    def settle(self) -> None:
        """Nothing has been written for a while."""
        while self.read(REST_S):
            pass

    def type(self, keys: bytes) -> float:
        """When they were written."""
        self.settle()
        self.wire = b""
        written_at = time.perf_counter()
        os.write(self.side, keys)
        return written_at

    def press(self, key: bytes) -> Latency | None:
        """What the key took to be answered; None when nothing was repainted."""
        written_at = self.type(key)
        if not self.read(NO_ANSWER_S):
            return None
        frame = time.perf_counter()
        while self.read(BETWEEN_FRAMES_S):
            frame = time.perf_counter()
        last = frame
        while self.read(QUIET_S):
            last = time.perf_counter()
        return Latency((frame - written_at) * 1e3, (last - written_at) * 1e3)

    def peak_mb(self) -> float:
        """The most memory that the process ever held."""
        status = Path(f"/proc/{self.program.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def end(self) -> None:
        self.program.kill()
        self.program.wait()
        os.close(self.side)


@contextlib.contextmanager
def running(command: Sequence[str]) -> Iterator[Terminal]:
    """The program on a terminal of its own, killed after the block."""
    terminal = Terminal(command)
    try:
        yield terminal
    finally:
        terminal.end()


def tui(home: Path) -> list[str]:
    return [str(Path(sys.executable).with_name("resumes")), "--home", str(home), "tui"]


def ticking_tui(home: Path, report: Path) -> list[str]:
    return [sys.executable, "-P", __file__, "--ticking", str(report), *tui(home)]


# The ticker


def run_ticking(report: Path, words: list[str]) -> None:
    """The command, with a ticker in its event loop that notes when and how late it was."""
    import tui.app
    from cli.main import main as command_line
    from tui import run

    class Ticking(tui.app.ResumesApp):
        CSS_PATH = str(Path(tui.app.__file__).with_name("app.tcss"))

        def on_mount(self) -> None:
            self._ticker = asyncio.create_task(tick(report))

    vars(run)["ResumesApp"] = Ticking
    sys.argv = words
    command_line()


async def tick(report: Path) -> None:
    with report.open("w", buffering=1) as lines:
        at = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            if now - at > STALL_S:
                lines.write(f"{now} {now - at}\n")
            at = now


def longest_stall_ms(report: Path, since: float, until: float) -> float:
    """The worst lateness of a tick within that time."""
    late = [tuple(map(float, line.split())) for line in report.read_text().splitlines()]
    found = [(lateness - 0.001) * 1e3 for at, lateness in late if since <= at <= until]
    return max(found, default=STALL_S * 1e3)


# Figures


class Target(NamedTuple):
    """A figure's limit."""

    limit: float
    unit: str


def show(what: str, value: float, target: Target, more: str = "") -> None:
    verdict = "" if value <= target.limit else "  MISSED"
    figure = f"{value:.1f} {target.unit}"
    print(
        f"{what:<46}{figure:>12}   target {target.limit:g} {target.unit}{verdict}  {more}",
        flush=True,
    )


FIRST_PAINT = Target(350, "ms")
KEY = Target(20, "ms")
FILTER = Target(100, "ms")
STALL = Target(50, "ms")
MEMORY = Target(90, "MB")

DOWN, UP, PAGE_DOWN, PAGE_UP, END, TOP = b"j", b"k", b"\x1b[6~", b"\x1b[5~", b"G", b"g"
SOUGHT = {
    "a word that one resume has": (b"unikatowicz", b"Sought"),
    "its beginning": (b"unikatow", b"Sought"),
    "two words": (b"zacharias unik", b"Sought"),
    "a name that 1 in 20 has": (b"gustav", b"Gustav"),
    "a beginning that 1 in 10 has": (b"anderst", b"Anderstein"),
    "two letters": (b"qu", b"Quentin"),
}
"""What is typed, and what the first row of the answer shows, but not the list before it."""


def measure_starts(name: str, home: Path, starts: int) -> None:
    painted, rows = [], []
    for _ in range(starts + 1):
        with running(tui(home)) as terminal:
            painted.append(terminal.wait_for(FRAME, since=terminal.began_at))
            rows.append(terminal.wait_for(FIRST_ROW, since=terminal.began_at))
    # The first start compiles, and reads from the disk.
    show(f"start to frame, {name}", statistics.median(painted[1:]), FIRST_PAINT)
    print(f"{f'start to first row, {name}':<46}{statistics.median(rows[1:]):>9.1f} ms", flush=True)


def press_all(terminal: Terminal, keys: int) -> dict[str, list[Latency]]:
    """Each kind of key, in an order that keeps it from running into an end of the list."""
    rounds = {
        "down": [DOWN] * keys,
        "page down": [PAGE_DOWN] * keys,
        "page up": [PAGE_UP] * (keys // 2),
        "end, top": [END, TOP] * (keys // 4),
        "up": [END, *([UP] * keys)],
    }
    return {
        name: [found for key in presses if (found := terminal.press(key)) is not None]
        for name, presses in rounds.items()
    }


def seek_all(terminal: Terminal, times: int) -> dict[str, list[float]]:
    """Milliseconds to the first row of each answer."""
    found: dict[str, list[float]] = {name: [] for name in SOUGHT}
    for _, (name, (typed, awaited)) in itertools.product(range(times), SOUGHT.items()):
        terminal.press(b"/")
        since = terminal.type(typed)
        found[name].append(terminal.wait_for(awaited, since=since))
        for _ in range(2):
            terminal.press(b"\x1b")
        terminal.settle()
    return found


def percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def open_list(terminal: Terminal) -> None:
    terminal.wait_for(FIRST_ROW, since=terminal.began_at)
    terminal.settle()


def measure_keys(home: Path, keys: int, seeks: int) -> None:
    with running(tui(home)) as terminal:
        open_list(terminal)
        for name, latencies in press_all(terminal, keys).items():
            frames, lasts = zip(*latencies, strict=True)
            more = f"p50 {percentile(frames, 50):.1f}; to the last byte {percentile(lasts, 50):.1f}, {percentile(lasts, 95):.1f}"
            show(f"{name}, p95 of {len(frames)}", percentile(frames, 95), KEY, more)
        for name, times in (seek_all(terminal, seeks) if seeks else {}).items():
            show(
                f"filter: {name}, median", statistics.median(times), FILTER, f"max {max(times):.1f}"
            )
        show("memory, at most", terminal.peak_mb(), MEMORY)


def measure_stalls(home: Path, keys: int, seeks: int) -> None:
    with (
        tempfile.NamedTemporaryFile(suffix=".ticks") as report,
        running(ticking_tui(home, Path(report.name))) as terminal,
    ):
        open_list(terminal)
        since = time.perf_counter()
        press_all(terminal, keys)
        between = time.perf_counter()
        show("longest stall, keys", longest_stall_ms(Path(report.name), since, between), STALL)
        if seeks:
            seek_all(terminal, seeks)
            until = time.perf_counter()
            late = longest_stall_ms(Path(report.name), between, until)
            show("longest stall, filter", late, STALL)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the terminal UI costs.")
    parser.add_argument(
        "--resumes", type=int, default=1_000_000, help="in the large list [1000000]"
    )
    parser.add_argument("--starts", type=int, default=11, help="whose medians count [11]")
    parser.add_argument("--keys", type=int, default=60, help="of each kind [60]")
    parser.add_argument("--seeks", type=int, default=5, help="of each kind; 0 for none [5]")
    parser.add_argument("--home", type=Path, help="where the large home is, or is to be")
    parser.add_argument("--ticking", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ticking:
        run_ticking(options.ticking, options.words)
        return
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small"), options.home or Path(folder, "large")
        fill(small, 200)
        if not is_filled(large):
            fill(large, options.resumes)
        print(f"{COLUMNS}x{LINES}; load {os.getloadavg()[0]:.1f}\n")
        measure_starts("200 resumes", small, options.starts)
        measure_starts(f"{options.resumes:,}", large, options.starts)
        measure_keys(large, options.keys, options.seeks)
        measure_stalls(large, options.keys, options.seeks)


if __name__ == "__main__":
    main()
