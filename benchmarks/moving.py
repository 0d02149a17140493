"""What copying a store costs: SQLite to PostgreSQL, and back to SQLite; rate, memory, and proof.

    .venv/bin/python -m benchmarks.moving --resumes 20000

Each copy is `resumes db copy` as a program of its own. Its peak memory is that of its process (the
server's is not in it), and its rate counts resumes, not rows: each has a document, and a row each
in the list, the ledger, its items and its digests. 1,000,000 resumes need some 20 GB below TMPDIR.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import postgres

from resumes import analyzer
from resumes.store import Store, accounts, creation, open_store, plans
from resumes.store.creation import NewResume
from resumes.store.import_ledger import ClaimedFile
from resumes.store.plans import PlanChange

SAMPLE = Path(__file__).parents[1] / "sample_data" / "nurse-double-column-en.json"
ACCOUNTS = 10
BATCH = 500


COPY = [sys.executable, "-P", "-m", "cli", "db", "copy"]
COPIED_ROWS = re.compile(r"Copying .*: ([0-9,]+) of ([0-9,]+) rows")


class Copied(NamedTuple):
    """What one copy took, and what it said it had copied."""

    took_s: float
    peak_mb: float
    tables: list[dict[str, Any]]


def make_source(store: Store, resumes: int) -> None:
    """So many resumes in ten accounts, each with its rows in the ledger."""
    plans.set_plan_limits(store, PlanChange("business", None))
    parsed = analyzer.parse(SAMPLE.read_bytes())
    for number in range(ACCOUNTS):
        account = accounts.create_account(store, f"account-{number}", plan="business")
        for first in range(0, resumes // ACCOUNTS, BATCH):
            items = range(first, min(first + BATCH, resumes // ACCOUNTS))
            batch = [NewResume(parsed, _digest(number, item), item) for item in items]
            claim_id = f"{number:08x}{first:016x}"
            claim = ClaimedFile(claim_id, "all.ndjson", 1, "2027-01-15T08:00:00.000Z", b"{")
            creation.create(store, account.id, batch, claim=claim)


def _digest(account: int, item: int) -> bytes:
    return hashlib.sha256(f"{account} {item}".encode()).digest()


def kill_half_way(source: str, target: str) -> str:
    """A copy is killed when it says that it has half of the rows. What it said last."""
    process = subprocess.Popen(
        [*COPY, source, target], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if found := COPIED_ROWS.match(line):
            done, of = (int(number.replace(",", "")) for number in found.groups())
            if done * 2 >= of:
                process.kill()
                process.wait()
                return line.strip()
    raise SystemExit("the copy ended before it could be killed: it takes more resumes")


def copy(source: str, target: str) -> Copied:
    """`resumes db copy`, which must succeed."""
    began_s = time.perf_counter()
    process = subprocess.Popen([*COPY, source, target, "--json"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    answer = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    took_s = time.perf_counter() - began_s
    if status:
        raise SystemExit(f"the copy failed with {os.waitstatus_to_exitcode(status)}")
    return Copied(took_s, usage.ru_maxrss / 1_000, json.loads(answer)["tables"])


def show(what: str, copied: Copied, resumes: int) -> None:
    """One line of the table."""
    rows = sum(table["rows"] for table in copied.tables)
    print(
        f"| {what} | {copied.took_s:,.1f} | {resumes / copied.took_s:,.0f} | "
        f"{rows / copied.took_s:,.0f} | {copied.peak_mb:,.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--resumes", type=int, default=1_000_000)
    parser.add_argument("--kill", action="store_true", help="the first copy, half-way")
    parser.add_argument("--postgresql", choices=list(postgres.VERSIONS), default="18")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres.running(options.postgresql, settings={"fsync": "on"}) as server,
    ):
        first, last = (f"sqlite:///{folder}/{name}.db" for name in ("first", "last"))
        between = server.url(server.make_database())
        with open_store(first) as store:
            make_source(store, options.resumes)
        if options.kill:
            print(f"Killed at: {kill_half_way(first, between)}")
        print("| | s | resumes/s | rows/s | peak MB |\n| --- | --- | --- | --- | --- |")
        there = copy(first, between)
        show("SQLite to PostgreSQL", there, options.resumes)
        back = copy(between, last)
        show("PostgreSQL to SQLite", back, options.resumes)
        if there.tables != back.tables:
            raise SystemExit("the digests differ")
        print("\nThe digests of all tables are equal.")


if __name__ == "__main__":
    main()
