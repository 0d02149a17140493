"""What the core costs by itself: parse, create, page, key look-up. Microseconds, best of five.

    .venv/bin/python benchmarks/core.py

Uses a file of sample_data and a new store in a temporary folder, and leaves nothing behind.
"""

import tempfile
import timeit
from collections.abc import Callable
from functools import partial
from pathlib import Path

from resumes import analyzer
from resumes.store import Store, accounts, api_keys, creation, open_store, plans, stored_resumes
from resumes.store.creation import NewResume
from resumes.store.plans import PlanChange

SAMPLE = Path(__file__).parents[1] / "sample_data" / "nurse-double-column-en.json"
ROUNDS = 5


def best_us(action: Callable[[], object], *, calls: int, things: int = 1) -> float:
    """The best round's microseconds for each thing that `action` does."""
    seconds = min(timeit.repeat(action, number=calls, repeat=ROUNDS))
    return seconds / calls / things * 1e6


def show(what: str, us: float) -> None:
    print(f"{what:<44}{us:>9.1f} µs{1e6 / us:>12,.0f}/s")


def measure_store(store: Store, resume: analyzer.Resume) -> None:
    account = accounts.create_account(store, "ana", plan="business")
    plans.set_plan_limits(store, PlanChange("business", None))
    for batch in ([NewResume(resume)] * size for size in (1, 32, 100)):
        create = partial(creation.create, store, account.id, batch)
        us = best_us(create, calls=20, things=len(batch))
        show(f"create, durable, {len(batch)} a commit", us)
    secret = api_keys.create_key(store, "ana").secret
    show("look a key up", best_us(lambda: api_keys.authenticate(store, secret), calls=2_000))
    show("page of 20", best_us(lambda: stored_resumes.list_page(store, account.id), calls=2_000))


def main() -> None:
    body = SAMPLE.read_bytes()
    resume = analyzer.parse(body)
    print(f"{SAMPLE.name}, {len(body):,} bytes\n")
    show("parse, validate, derive, dump", best_us(lambda: analyzer.parse(body), calls=500))
    show(
        "the view that GET answers with",
        best_us(lambda: analyzer.public_json(resume.document), calls=500),
    )
    with tempfile.TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/r.db") as store:
        measure_store(store, resume)


if __name__ == "__main__":
    main()
