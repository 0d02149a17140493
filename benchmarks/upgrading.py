"""Upgrading a large store of an older version: how long it takes, and that kills lose nothing.

    .venv/bin/python -m benchmarks.upgrading OLD [--resumes N] [--kills K] [--postgresql VERSION]

OLD is the program `resumes` of the older version, in the environment of a checkout of its own. That version
fills and indexes a store in a temporary folder (TMPDIR chooses the disk). Copies of the store are upgraded:
one undisturbed, while the older program tries to write, and one that is killed at random moments. All rows
that the older version knows are compared.
"""

import argparse
import hashlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy
from tests.support import postgres

from benchmarks.search import DURABLE, Mixer
from resumes.store.sqlite.store import sqlite_engine

NEW = str(Path(sys.executable).with_name("resumes"))

FILL = """
import sys
from itertools import count, islice
from resumes import analyzer
from resumes.store import accounts, creation, open_store, plans
from resumes.store.creation import NewResume
from resumes.store.plans import PlanChange
from resumes.store.search_index import Indexer, list_behind
with open_store(sys.argv[1]) as store:
    plans.set_plan_limits(store, PlanChange("business", None))
    known = [accounts.create_account(store, f"account-{n}", plan="business") for n in range(48)]
    for number in count():
        some = [NewResume(analyzer.parse(line)) for line in islice(sys.stdin.buffer, 100)]
        if not some:
            break
        account = known[0 if number % 5 < 3 else number % 48]
        creation.create(store, account.id, some, deadline_s=120)
    indexer = Indexer(store)
    while list_behind(store):
        indexer.step()
"""
"""Fills the store at an address from lines of JSON; run by the older version's Python."""

WRITE = ("accounts", "set-plan", "account-0", "business")
"""What the older version tries; it changes nothing, since that is the account's plan."""

NOT_COMPARED = ("alembic_version", "store_facts")

Digests = dict[str, tuple[int, str]]
"""The number of rows and a digest of them, by table."""


class Stores:
    """The filled store, and copies of it."""

    def __init__(self, folder: Path, server: postgres.Server | None) -> None:
        self._folder = folder
        self._server = server
        self._copies = 0
        self.filled = f"sqlite:///{folder / 'filled.db'}"
        if server is not None:
            self.filled = server.url(server.make_database())

    def copy(self) -> str:
        """Return the address of a new copy."""
        self._copies += 1
        if self._server is not None:
            name = f"copy{self._copies}"
            template = self.filled.rpartition("/")[2]
            self._server.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
            return self._server.url(name)
        folder = self._folder / f"copy{self._copies}"
        folder.mkdir()
        shutil.copyfile(self._path(self.filled), folder / "resumes.db")
        return f"sqlite:///{folder / 'resumes.db'}"

    def remove(self, url: str) -> None:
        if self._server is not None:
            self._server.drop_database(url.rpartition("/")[2])
        else:
            shutil.rmtree(self._path(url).parent)

    @staticmethod
    def _path(url: str) -> Path:
        return Path(url.removeprefix("sqlite:///"))

    @contextmanager
    def connected(self, url: str) -> Iterator[sqlalchemy.Connection]:
        if self._server is None:
            engine = sqlite_engine(self._path(url), transactions=False)
        else:
            engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.connect() as connection:
            yield connection.execution_options(stream_results=True)
        engine.dispose()

    def tables(self) -> list[sqlalchemy.Table]:
        """Return the filled store's tables, as the older version made them, without its search index."""
        metadata = sqlalchemy.MetaData()
        with self.connected(self.filled) as connection:
            names = sqlalchemy.inspect(connection).get_table_names()
            kept = [n for n in names if n not in NOT_COMPARED and not n.startswith("search_")]
            metadata.reflect(connection, only=kept)
        return [
            sqlalchemy.Table(
                table.name, sqlalchemy.MetaData(), *(c._copy() for c in table.columns if _stays(c))
            )
            for table in metadata.sorted_tables
        ]

    def digests(self, url: str, tables: list[sqlalchemy.Table]) -> Digests:
        found: Digests = {}
        with self.connected(url) as connection:
            for table in tables:
                digest, count = hashlib.sha256(), 0
                rows = sqlalchemy.select(table).order_by(*table.primary_key)
                for row in connection.execute(rows):
                    digest.update(repr(tuple(map(_plain, row))).encode())
                    count += 1
                found[table.name] = count, digest.hexdigest()
        return found


def _stays(column: sqlalchemy.Column[Any]) -> bool:
    return not column.name.startswith("requests_per_")  # which 1.1 dropped


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview | bytearray) else value


def run(program: str, url: str, *words: str) -> str:
    done = subprocess.run(
        [program, "--database", url, *words], capture_output=True, text=True, check=False
    )
    said = (done.stderr or done.stdout).strip().splitlines() or [""]
    return f"exit code {done.returncode}: {said[-1]}"


def start_upgrade(url: str) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen([NEW, "--database", url, "db", "upgrade"], stdout=quiet, stderr=quiet)


def upgrade_undisturbed(stores: Stores, old: str) -> tuple[str, float]:
    """Upgrade a copy while the older program tries to write; return its address and the seconds."""
    url = stores.copy()
    tried: list[str] = []
    began_s = time.monotonic()
    upgrade = start_upgrade(url)
    while upgrade.poll() is None:
        tried.append(run(old, url, *WRITE))
    took_s = time.monotonic() - began_s
    print(f"upgraded in {took_s:.1f} s, exit code {upgrade.returncode}")
    for said in (*tried, run(old, url, *WRITE)):
        print(f"  the older version, {said}")
    return url, took_s


def upgrade_killed(stores: Stores, took_s: float, kills: int, choose: random.Random) -> str:
    """Kill upgrades of a copy at random moments, then let one end; return the copy's address."""
    url = stores.copy()
    killed = late = 0
    while killed < kills and late < kills:
        upgrade = start_upgrade(url)
        try:
            upgrade.wait(choose.uniform(0.2, took_s))
            late += 1
            stores.remove(url)
            url = stores.copy()
        except subprocess.TimeoutExpired:
            upgrade.kill()
            upgrade.wait()
            killed += 1
    print(f"{killed} kills; then {run(NEW, url, 'db', 'upgrade')}")
    return url


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("old", type=Path)
    parser.add_argument("--resumes", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--postgresql", metavar="VERSION", choices=postgres.VERSIONS)
    parser.add_argument("--corpus", type=Path)
    arguments = parser.parse_args()
    old, choose = str(arguments.old), random.Random(1)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = None
        if arguments.postgresql:
            server = stack.enter_context(postgres.running(arguments.postgresql, settings=DURABLE))
        stores = Stores(folder, server)
        python = arguments.old.with_name("python")
        mixer, began_s = Mixer(arguments.corpus), time.monotonic()
        with subprocess.Popen([python, "-c", FILL, stores.filled], stdin=subprocess.PIPE) as filler:
            assert filler.stdin is not None
            for _ in range(arguments.resumes):
                filler.stdin.write(mixer.document() + b"\n")
        print(f"filled and indexed in {time.monotonic() - began_s:.0f} s")
        tables = stores.tables()
        before = stores.digests(stores.filled, tables)
        print(f"{before['resumes'][0]:,} resumes")
        undisturbed, took_s = upgrade_undisturbed(stores, old)
        killed = upgrade_killed(stores, took_s, arguments.kills, choose)
        for url in (undisturbed, killed):
            after = stores.digests(url, tables)
            different = [name for name in before if after[name] != before[name]]
            print(f"tables that differ: {', '.join(different) or 'none'}")


if __name__ == "__main__":
    main()
