"""POST and GET on PostgreSQL beside SQLite, in one run, with one API process and with two.

    .venv/bin/python -m benchmarks.engines [--seconds S] [--rounds K] [--version 16|18]

Needs wrk and Linux, as benchmarks/server.py does, whose loads these are, and the development
requirements, which bring PostgreSQL: a server of its own on loopback, in a temporary folder, which
writes to the disk before it answers, as SQLite does. All takes turns on the same cores.

    one       32 connections, all with a key of one account
    many      the same, each request with the key of another of 16 accounts
"""

import argparse
import contextlib
import itertools
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support import postgres

from benchmarks.server import CONNECTIONS, SAMPLE, SERVE, Load, Server, load, median, running, show
from resumes.store import accounts, api_keys, open_store, plans
from resumes.store.plans import PlanChange
from resumes.store.search_index import list_behind

ACCOUNTS = 16
DURABLE = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "512MB"}


class Engine(NamedTuple):
    """A store, the keys of its accounts, and what serves it by number of processes."""

    url: str
    keys: list[str]
    servers: dict[int, Server]


def script(method: str, secrets: list[str]) -> str:
    """What wrk does: each request with the next of the keys."""
    listed = ",".join(f'"Bearer {secret}"' for secret in secrets)
    body = ""
    if method == "POST":
        body = (
            'wrk.headers["Content-Type"] = "application/json"; '
            f'local file = io.open("{SAMPLE}"); wrk.body = file:read("*a")\n'
        )
    return (
        f'wrk.method = "{method}"\n{body}local keys = {{{listed}}}\nlocal n = 0\n'
        'request = function() n = n + 1; wrk.headers["Authorization"] = keys[n % #keys + 1]; '
        "return wrk.format() end\n"
    )


@contextlib.contextmanager
def engine(url: str) -> Iterator[Engine]:
    """A store that is served by one process and, beside it, by two."""
    with contextlib.ExitStack() as stack:
        with open_store(url) as store:
            plans.set_plan_limits(store, PlanChange("business", None))
            secrets = []
            for number in range(ACCOUNTS):
                accounts.create_account(store, f"a{number}", plan="business")
                secrets.append(api_keys.create_key(store, f"a{number}").secret)
        servers = {}
        for count in (1, 2):
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            settings = {"database": url, "workers": count, "rate_limit": False}
            servers[count] = stack.enter_context(running(SERVE, home, secrets[0], **settings))
        yield Engine(url, secrets, servers)


def measure(
    engines: dict[str, Engine], seconds: int, rounds: int, analyze: Callable[[], object]
) -> None:
    kinds = {"one": slice(0, 1), "many": slice(None)}
    for method, (kind, part) in itertools.product(("POST", "GET"), kinds.items()):
        if method == "GET":
            analyze()  # as a server does by itself within a minute
        found: dict[tuple[str, int], list[Load]] = {}
        for _, (name, one), count in itertools.product(range(rounds), engines.items(), (1, 2)):
            loads = found.setdefault((name, count), [])
            what = script(method, one.keys[part])
            loads.append(load(one.servers[count], method, seconds, what))
            with open_store(one.url) as store:
                while list_behind(store):  # or its indexing would slow the next engine down
                    time.sleep(0.2)
        for (name, count), loads in found.items():
            show(f"{method}, {kind}, {name}, {count} process{'es'[: count * 2 - 2]}", median(loads))
        first, second = engines
        for count in (1, 2):
            pairs = zip(found[second, count], found[first, count], strict=True)
            ratio = statistics.median(a.per_s / b.per_s for a, b in pairs)
            print(f"  {second} to {first}, {count}: {ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="PostgreSQL beside SQLite.")
    parser.add_argument("--seconds", type=int, default=4, help="of each load [4]")
    parser.add_argument("--rounds", type=int, default=3, help="whose medians count [3]")
    parser.add_argument("--version", default="18", choices=list(postgres.VERSIONS))
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing (Debian: apt install wrk)")
    print(f"{SAMPLE.name}, {SAMPLE.stat().st_size:,} bytes; {CONNECTIONS} connections; ", end="")
    print(f"load {os.getloadavg()[0]:.1f}\n")
    print(f"{'':<44}{'/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}")
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres.running(options.version, settings=DURABLE) as server,
        engine(f"sqlite:///{folder}/resumes.db") as sqlite,
        engine(server.url(name := server.make_database())) as postgresql,
    ):
        engines = {"SQLite": sqlite, f"PostgreSQL {options.version}": postgresql}
        measure(engines, options.seconds, options.rounds, lambda: server.execute("ANALYZE", name))


if __name__ == "__main__":
    main()
