"""What a request costs: POST and GET under load, our ceiling without a store, and pages of
accounts of any size.

    .venv/bin/python -m benchmarks.server [--seconds S] [--rounds K] [--workers N] [--sizes N,N,N]
    .venv/bin/python -m benchmarks.server --erasing HOME [--seconds S] [--rounds K]

Needs wrk, as https://github.com/wg/wrk makes it and Debian packages it, and Linux, whose /proc says
what processors did. Makes homes of its own in a temporary folder, and leaves nothing behind.

    load      32 connections send a resume of 6 KB, or ask for a page of 20, in turn to
              `resumes serve`, to the same with rate limits that nobody reaches, and to the ceiling:
              the same server with nothing behind it, which parses, checks and answers
    pages     an account of each size; a page of 20 after a place chosen by chance, over HTTP
    erasing   the store of HOME, which is changed, gets 100,000 resumes that are due; POST and GET before,
              while and after the service erases them
"""

import argparse
import contextlib
import itertools
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from resumes import analyzer
from resumes.clock import system_clock, timestamp
from resumes.settings import load_settings
from resumes.store import (
    Store,
    accounts,
    api_keys,
    creation,
    open_store,
    plans,
    retention,
    stored_resumes,
)
from resumes.store.api_keys import KeyHolder
from resumes.store.creation import Created, NewResume
from resumes.store.entry import Entry
from resumes.store.plans import PlanChange
from resumes.store.search_index import Indexer, list_behind
from resumes.store.store import set_facts
from server import service

SAMPLE = Path(__file__).parents[1] / "sample_data" / "nurse-double-column-en.json"
SMALL = b'{"header":{"name":"Ada Example"},"sections":{"summaries":{"column":0,"items":[]}}}'
PATH = "/api/v1/resumes"
CONNECTIONS = 32
START_S = 20.0
BATCH = 500
CURSORS = 200
DUE = 100_000
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
UNREACHED = 1_000_000


# Servers


class Server(NamedTuple):
    """A process that answers at `url`, and a key that it takes."""

    url: str
    key: str
    pid: int

    def cpu_s(self) -> float:
        """Processor seconds of it and of those that it started, so far."""
        ticks = 0
        for pid in tree(self.pid):
            with contextlib.suppress(OSError):  # it has just ended
                stat = Path(f"/proc/{pid}/stat").read_text()
                ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
        return ticks / TICKS_PER_S


def tree(pid: int) -> list[int]:
    pids = [pid]
    for one in pids:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                pids += map(int, task.read_text().split())
    return pids


@contextlib.contextmanager
def running(command: Sequence[str], home: Path, key: str, **settings: object) -> Iterator[Server]:
    """The command serves during the block; it says where on standard error."""
    env = {name: value for name, value in os.environ.items() if name[:8] != "RESUMES_"}
    env |= {f"RESUMES_{name.upper()}": str(value) for name, value in settings.items()}
    env["RESUMES_HOME"] = str(home)
    log = home / "serve.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stderr=out)
    try:
        yield Server(_wait_for_address(process, log), key, process.pid)
    finally:
        process.terminate()
        process.wait()


def _wait_for_address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    ends_at = time.monotonic() + START_S
    while time.monotonic() < ends_at and process.poll() is None:
        if found := re.search(r"http://[0-9.]+:[0-9]+", log.read_text(errors="replace")):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{found[0]}/healthz")
                return found[0]
        time.sleep(0.02)
    raise SystemExit(f"The server did not start.\n{log.read_text(errors='replace')}")


SERVE = (sys.executable, "-P", "-m", "cli", "serve", "--port", "0")
CEILING = (sys.executable, "-P", __file__, "--ceiling")


def serve_ceiling() -> None:
    """The API, with a store that is never asked: every key counts, every create is done."""
    page = stored_resumes.Page(
        [
            Entry(f"{n:024x}", None, "Ada Example", "AdaExampleResume.pdf", NOW, NOW)
            for n in range(20)
        ],
        f"{19:024x}",
    )
    holder = KeyHolder("a" * 16, "key_" + "b" * 12, api_listing=True)
    created = Created("c" * 24)

    async def create_async(*_: object, **__: object) -> Created:
        return created

    api_keys.authenticate = lambda *_: holder
    creation.create_async = create_async
    stored_resumes.list_page = lambda *_, **__: page
    service.run(
        load_settings(port=0, rate_limit=False),
        ready=lambda url: print(url, file=sys.stderr, flush=True),
    )


NOW = "2026-01-31T09:00:00.000Z"


# Load


class Load(NamedTuple):
    """What came of one method's load."""

    per_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """Processor time of the server for one request."""


def load(server: Server, method: str, seconds: int, script: str = "") -> Load:
    """32 connections ask as fast as they are answered. Ends the program unless all is well."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script or _script(method))
        file.flush()
        before = server.cpu_s()
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", file.name]
        headers = ["-H", f"Authorization: Bearer {server.key}"]
        done = subprocess.run(
            [*command, *headers, f"{server.url}{PATH}"], capture_output=True, text=True, check=True
        )
        cpu_s = server.cpu_s() - before
    said = done.stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise SystemExit(f"{method} was refused\n{said}")
    requests = int(_find(r"(\d+) requests in", said)[1])
    return Load(
        per_s=float(_find(r"Requests/sec:\s+([\d.]+)", said)[1]),
        p50_ms=_latency_ms(said, 50),
        p99_ms=_latency_ms(said, 99),
        cpu_us=cpu_s / requests * 1e6,
    )


def _script(method: str) -> str:
    if method == "GET":
        return 'wrk.method = "GET"'
    return (
        f'wrk.method = "POST"; wrk.headers["Content-Type"] = "application/json"; '
        f'local file = io.open("{SAMPLE}"); wrk.body = file:read("*a")'
    )


def _latency_ms(said: str, percent: int) -> float:
    found = _find(rf"{percent}%\s+([\d.]+)(us|ms|s)", said)
    return float(found[1]) * UNITS_MS[found[2]]


def _find(pattern: str, said: str) -> "re.Match[str]":
    found = re.search(pattern, said)
    if found is None:
        raise SystemExit(f"wrk said something else\n{said}")
    return found


def median(loads: Sequence[Load]) -> Load:
    """Of each figure."""
    return Load(*map(statistics.median, zip(*loads, strict=True)))


def show(what: str, figures: Load) -> None:
    print(
        f"{what:<44}{figures.per_s:>9,.0f}{figures.p50_ms:>9.2f}{figures.p99_ms:>9.2f}"
        f"{figures.cpu_us:>9.0f}",
        flush=True,
    )


# Parts


@contextlib.contextmanager
def a_home() -> Iterator[tuple[Path, Store]]:
    """A new home whose plan has no limits that are reached."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(f"sqlite:///{folder}/resumes.db") as store,
    ):
        plans.set_plan_limits(store, PlanChange("business", None))
        yield Path(folder), store


def measure_load(seconds: int, rounds: int, workers: int) -> None:
    print(f"{'':<44}{'/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}")
    with a_home() as (home, store), contextlib.ExitStack() as stack:
        accounts.create_account(store, "ada", plan="business")
        key = api_keys.create_key(store, "ada").secret
        high = dict.fromkeys(("rate_per_minute", "rate_per_hour", "rate_per_day"), UNREACHED)
        kinds: dict[str, tuple[Sequence[str], dict[str, object]]] = {
            "ours": (SERVE, {"rate_limit": False}),
            "with rate limits": (SERVE, {"rate_limit": True, **high}),
            f"{workers} workers": (SERVE, {"rate_limit": False, "workers": workers}),
            "ceiling": (CEILING, {}),
        }
        servers = {
            name: stack.enter_context(running(command, home, key, **settings))
            for name, (command, settings) in kinds.items()
        }
        for method in ("POST", "GET"):
            found: dict[str, list[Load]] = {name: [] for name in servers}
            for _, (name, server) in itertools.product(range(rounds), servers.items()):
                found[name].append(load(server, method, seconds))
            for name, loads in found.items():
                show(f"{method} {name}", median(loads))
            ours = [one.per_s for one in found["ours"]]
            for name in servers:
                if name != "ours":
                    ratios = [a / b.per_s for a, b in zip(ours, found[name], strict=True)]
                    print(f"  ours to {name}, median: {statistics.median(ratios):.2f}")


def fill(store: Store, account_id: str, size: int) -> list[str]:
    """So many small resumes are stored; some of their ids."""
    new = [NewResume(analyzer.parse(SMALL))] * BATCH
    ids: list[str] = []
    for _ in range(size // BATCH):
        outcomes = creation.create(store, account_id, new)
        ids += [one.id for one in outcomes if isinstance(one, Created)][:1]
    return ids


def measure_pages(sizes: Sequence[int], seconds: int, rounds: int) -> None:
    with a_home() as (home, store), contextlib.ExitStack() as stack:
        scripts = {}
        for size in sizes:
            account = accounts.create_account(store, f"a{size}", plan="business")
            key = api_keys.create_key(store, account.name).secret
            cursors = random.sample(ids := fill(store, account.id, size), min(CURSORS, len(ids)))
            paths = ",".join(f'"{PATH}?cursor={cursor}"' for cursor in cursors)
            scripts[size] = (
                key,
                f"local paths = {{{paths}}}; local n = 0; request = function() n = n + 1; "
                'return wrk.format("GET", paths[n % #paths + 1]) end',
            )
        server = stack.enter_context(running(SERVE, home, "", rate_limit=False))
        found: dict[int, list[Load]] = {size: [] for size in sizes}
        for _, size in itertools.product(range(rounds), sizes):
            key, script = scripts[size]
            found[size].append(load(server._replace(key=key), "GET", seconds, script))
        for size, loads in found.items():
            show(f"page of {size:,} resumes", median(loads))
        first, last = (median(found[size]).p50_ms for size in (sizes[0], sizes[-1]))
        print(f"  p50 of {sizes[-1]:,} to {sizes[0]:,}: {last / first:.2f}")


def measure_erasing(home: Path, seconds: int, rounds: int) -> None:
    then_us = system_clock() - 31 * retention.DAY_US
    url = f"sqlite:///{home}/resumes.db"
    with open_store(url) as store, open_store(url, clock=lambda: then_us) as past:
        plans.set_plan_limits(store, PlanChange("business", None))
        plans.set_plan_limits(store, PlanChange("free", DUE))
        due = accounts.create_account(store, "due", plan="free")
        new = [
            NewResume(analyzer.parse(path.read_bytes())) for path in SAMPLE.parent.glob("*-en.json")
        ]
        for _ in range(DUE // BATCH):
            creation.create(past, due.id, list(itertools.islice(itertools.cycle(new), BATCH)))
        while list_behind(store):
            Indexer(store).step()
        accounts.create_account(store, "ada", plan="business")
        key = api_keys.create_key(store, "ada").secret
        before = sum(one.resume_count for one in accounts.list_accounts(store))
        print(f"{before:,} resumes, {DUE:,} of them due")
        with running(SERVE, home, key, rate_limit=False) as server:
            found: dict[str, list[Load]] = {}
            for part in ("before", "while it erases", "after"):
                if part == "while it erases":
                    plans.set_plan_limits(store, PlanChange("free", DUE, keep_days=30))
                    store.write(lambda session: set_facts(session, swept_at=timestamp(0)))
                    while not retention.count_expired(store):
                        time.sleep(0.1)
                began, began_s = retention.count_expired(store), time.monotonic()
                for _, method in itertools.product(range(rounds), ("POST", "GET")):
                    found.setdefault(f"{method} {part}", []).append(load(server, method, seconds))
                erased = retention.count_expired(store) - began
                print(f"erased {part}: {erased / (time.monotonic() - began_s):,.0f} a second")
                plans.set_plan_limits(store, PlanChange("free", DUE))
        for name, loads in sorted(found.items()):
            show(name, median(loads))


def main() -> None:
    parser = argparse.ArgumentParser(description="The API under load, and what a request costs.")
    parser.add_argument("--seconds", type=int, default=4, help="of each load [4]")
    parser.add_argument("--rounds", type=int, default=3, help="whose medians count [3]")
    parser.add_argument("--workers", type=int, default=2, help="in the figure with several [2]")
    parser.add_argument(
        "--sizes",
        default="1000,100000,1000000",
        help="resumes of the accounts whose pages are asked for; empty for none",
    )
    parser.add_argument("--erasing", type=Path, metavar="HOME", help="what erasing costs others")
    parser.add_argument("--ceiling", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ceiling:
        serve_ceiling()
        return
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing (Debian: apt install wrk)")
    if options.erasing:
        measure_erasing(options.erasing, options.seconds, options.rounds)
        return
    print(f"{SAMPLE.name}, {SAMPLE.stat().st_size:,} bytes; {CONNECTIONS} connections\n")
    measure_load(options.seconds, options.rounds, options.workers)
    if options.sizes:
        print()
        sizes = [int(size) for size in options.sizes.split(",")]
        measure_pages(sizes, options.seconds, options.rounds)


if __name__ == "__main__":
    main()
