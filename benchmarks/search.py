"""What searching costs: finding, indexing, and what an indexer takes from creates.

    .venv/bin/python benchmarks/search.py [--resumes N] [--creates N] [--idle S]

Makes a store in a temporary folder (TMPDIR chooses the disk) and leaves nothing behind. Its first
account has N resumes of made-up people, one in seven without a title, and small documents; the
second has ten of them.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import orjson

from resumes import analyzer
from resumes.store import Store, accounts, creation, open_store, plans, search, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.creation import NewResume
from resumes.store.plans import PlanChange
from resumes.store.search_index import Indexer, list_behind
from resumes.store.sqlite.driver import dbapi

SAMPLE = Path(__file__).parents[1] / "sample_data" / "nurse-double-column-en.json"
BATCH = 500
COMMIT = 100
RUNS = 20

SYLLABLES = [
    "an", "ber", "chi", "do", "el", "fa", "gri", "ho", "is", "jo", "ka", "lu", "mi", "no", "ol",
    "pe", "qui", "ra", "sa", "tu", "ul", "vi", "wa", "xe", "yo", "za", "sch", "mar", "ton",
]  # fmt: skip
TITLES = [
    "Software Engineer", "Senior Nurse", "Project Manager", "Data Analyst", "Mathematics Teacher",
    "Sales Assistant", None,
]  # fmt: skip
HOSTS = ["example.com", "mail.example.org", "example.net"]


def iter_people(*, large: bool = False) -> Iterator[NewResume]:
    """Resumes of people without end, always the same ones; `large` ones are as analyzers make them."""
    choose = random.Random(1)
    sections = orjson.loads(SAMPLE.read_bytes())["sections"] if large else {}
    names = ["".join(choose.choices(SYLLABLES, k=choose.choice((2, 3)))) for _ in range(20_000)]
    while True:
        first, last = choose.choice(names[:2_000]), choose.choice(names)
        name, title = f"{first.title()} {last.title()}", choose.choice(TITLES)
        email = f"{first}.{last}{choose.randrange(100)}@{choose.choice(HOSTS)}"
        header = {"name": name, "email": email}
        document = orjson.dumps({"header": header, "sections": sections, "title": title})
        yield NewResume(analyzer.Resume(title, name, "Resume.pdf", document, ()))


def create_many(
    store: Store, account: AccountInfo, people: Iterator[NewResume], batch: int
) -> None:
    while some := list(islice(people, batch)):
        creation.create(store, account.id, some, deadline_s=60)


def size_bytes(store: Store) -> int:
    with store.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        return int(pages * connection.exec_driver_sql("PRAGMA page_size").scalar_one())


def index_all(store: Store) -> None:
    indexer = Indexer(store)
    while list_behind(store):
        indexer.step()


def measure_indexing(store: Store, resumes: int) -> None:
    before, began_s = size_bytes(store), time.perf_counter()
    index_all(store)
    took_s = time.perf_counter() - began_s
    grown = (size_bytes(store) - before) / resumes
    print(f"indexed {resumes / took_s:,.0f} resumes/s, {took_s:.1f} s; {grown:.0f} bytes each\n")


def measure_finding(store: Store, large: AccountInfo, small: AccountInfo) -> None:
    person = stored_resumes.list_page(store, large.id).entries[7].name
    assert person is not None
    first, last = person.lower().split()
    searches = [
        "a", "x", "an", "example", "engineer", "nurse tu", first, last, f"{first} {last}",
        last[1:], "zzzz", "comple", "nurse engineer", "example.com mail.",
    ]  # fmt: skip
    print(f"{'first page of 100':<40}{'found':>6}{'median ms':>11}{'worst ms':>10}")
    for words in searches:
        show_search(store, large, words)
    for words in ("a", "example", last):
        show_search(store, small, words, beside="in the account of ten: ")
    show_search(store, large, "example", cursor=middle(store, large), beside="from the middle on: ")
    print()


def middle(store: Store, account: AccountInfo) -> str:
    """The id of the resume that half of the account's come after."""
    statement = "SELECT id FROM resumes WHERE account_id = ? ORDER BY id LIMIT 1 OFFSET ?"
    count = accounts.get_account(store, account.name).resume_count
    with store.read() as connection:
        row = connection.exec_driver_sql(statement, (account.id, count // 2)).one()
    return str(row[0])


def show_search(
    store: Store, account: AccountInfo, words: str, *, cursor: str = "", beside: str = ""
) -> None:
    def find() -> search.SearchResult:
        return search.find_page(store, account.id, words, cursor=cursor)

    ms = [1_000 * seconds(find) for _ in range(RUNS)]
    found = len(find().page.entries)
    print(f"{beside + repr(words):<40}{found:>6}{statistics.median(ms):>11.2f}{max(ms):>10.2f}")


def seconds(action: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    action()
    return time.perf_counter() - began_s


def measure_tail(store: Store) -> None:
    """How many resumes that are not indexed are looked through in the time that there is."""
    account = accounts.create_account(store, "behind", plan="business")
    create_many(store, account, islice(iter_people(large=True), 20_000), BATCH)
    left = [search.find_page(store, account.id, "zzzz").unindexed for _ in range(RUNS)]
    through = 20_000 - statistics.median(left)
    print(f"not indexed, looked through in {search.TIMEOUT_S * 1_000:.0f} ms: {through:,.0f}\n")
    index_all(store)


def measure_creating(store: Store, creates: int) -> None:
    """Creates without pause in one thread, without an indexer and with one, in turn."""
    print(f"{creates:,} creates of {SAMPLE.stat().st_size:,} bytes, {COMMIT} a commit")
    rates: dict[bool, list[float]] = {False: [], True: []}
    for number in range(6):
        has_indexer = number % 2 == 1
        account = accounts.create_account(store, f"busy-{number}", plan="business")
        people = list(islice(iter_people(large=True), creates))
        with Indexer(store) if has_indexer else nullcontext():
            took_s = seconds(lambda a=account, p=people: create_many(store, a, iter(p), COMMIT))  # type: ignore[misc]  # bound at once
        rates[has_indexer].append(creates / took_s)
        index_all(store)
    without, with_one = (statistics.median(rates[has_indexer]) for has_indexer in (False, True))
    print(
        f"without an indexer {without:,.0f}/s, with one {with_one:,.0f}/s: {with_one / without:.3f}\n"
    )


def measure_lag(store: Store) -> None:
    """How long after its create a resume is in the index, where nothing else happens."""
    account = accounts.create_account(store, "calm", plan="business")
    waits = []
    with Indexer(store):
        for person in islice(iter_people(large=True), 20):
            creation.create(store, account.id, [person])
            waits.append(seconds(lambda: wait_until_indexed(store)))
            time.sleep(random.random() / 5)
    print(
        f"indexed after its create: median {statistics.median(waits):.2f} s, worst {max(waits):.2f} s"
    )


def wait_until_indexed(store: Store) -> None:
    while list_behind(store):
        time.sleep(0.005)


def measure_idle(store: Store, span_s: float) -> None:
    with Indexer(store):
        time.sleep(2)
        before_s = time.process_time()
        time.sleep(span_s)
        used = (time.process_time() - before_s) / span_s
    print(f"an idle indexer: {used:.4%} of a core over {span_s:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--resumes", type=int, default=1_000_000)
    parser.add_argument("--creates", type=int, default=30_000)
    parser.add_argument("--idle", type=float, default=10)
    arguments = parser.parse_args()
    print(f"SQLite {dbapi.sqlite_version}, {arguments.resumes:,} resumes\n")
    with tempfile.TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/r.db") as store:
        plans.set_plan_limits(store, PlanChange("business", None))
        large, small = (
            accounts.create_account(store, name, plan="business") for name in ("large", "small")
        )
        create_many(store, large, islice(iter_people(), arguments.resumes), BATCH)
        create_many(store, small, islice(iter_people(), 10), BATCH)
        measure_indexing(store, arguments.resumes)
        measure_finding(store, large, small)
        measure_tail(store)
        measure_creating(store, arguments.creates)
        measure_lag(store)
        measure_idle(store, arguments.idle)


if __name__ == "__main__":
    main()
