"""What searching costs: finding, indexing, and what an indexer takes from creates.

    .venv/bin/python -m benchmarks.search [--resumes N] [--corpus FILE]
        [--postgresql VERSION | --store FILE]

Makes a store in a temporary folder (TMPDIR chooses the disk) and leaves nothing behind. On PostgreSQL
it is a server of its own. A store FILE is filled up to N, indexed and kept, for another benchmark. The
resumes are those of the corpus, a tar file of resumes in the analyzer format, or else the samples, with
other words in place of 38 % of theirs, a fifth of them rare, and with names, addresses, places and skills
that are made up. 48 accounts have them, the first one 60 %.

`--creates` and `--idle` set the amounts of what is measured besides; 0 skips that part.
"""

import argparse
import contextlib
import json
import random
import re
import statistics
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from tests.support import postgres

from resumes import analyzer
from resumes.process_memory import tune_gc
from resumes.search.words import index_tokens
from resumes.store import Store, accounts, creation, open_store, plans, search, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.creation import NewResume
from resumes.store.plans import PlanChange
from resumes.store.search_engine import merge
from resumes.store.search_index import SLICE_RESUMES, Indexer, count_indexed, list_behind
from resumes.store.sqlite.driver import dbapi
from server.service import SWITCH_INTERVAL_S

SAMPLES = Path(__file__).parents[1] / "sample_data"
ACCOUNTS = 48
LARGEST = 0.6
BATCH = 500
COMMIT = 100
RUNS = 20
DURABLE = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "512MB"}

REPLACED, RARE = 0.38, 0.2
SYLLABLES = [
    "an",
    "ber",
    "chi",
    "do",
    "el",
    "fa",
    "gri",
    "ho",
    "is",
    "jo",
    "ka",
    "lu",
    "mi",
    "no",
    "ol",
    "pe",
    "qui",
    "ra",
    "sa",
    "tu",
    "ul",
    "vi",
    "wa",
    "xe",
    "yo",
    "za",
    "sch",
    "mar",
    "ton",
]
THIRDS = ("umbrix", "quorvan", "plastero")
"""Words of which each resume has one."""


class Mixer:
    """Makes resumes without end from those of a corpus, always the same ones for a seed."""

    def __init__(self, corpus: Path | None, seed: int = 1) -> None:
        self._random = choose = random.Random(seed)
        counts: Counter[str] = Counter()
        self._templates: list[tuple[list[str], list[int]]] = []
        for document in _documents(corpus):
            document["header"] = dict.fromkeys(("name", "email", "location", "title"))
            text = json.dumps(document["sections"], ensure_ascii=False)
            # Words of texts, between blanks or punctuation, not names of fields, literals or escapes.
            pieces = re.split(r'((?<![\\A-Za-z])(?<!": )[A-Za-z]{2,}(?=[ .,;)]))', text)
            self._templates.append((pieces, list(range(1, len(pieces), 2))))
            counts.update(pieces[1::2])
        self.words = [word for word, _ in counts.most_common()]
        self._weights = list(accumulate(counts[word] for word in self.words))
        self.tail = [self._made(choose.choice((2, 3, 3, 4))) for _ in range(400_000)]
        self._tail_weights = list(accumulate(1 / (20 + n) for n in range(len(self.tail))))
        self.first_names = [self._made(2) for _ in range(3_000)]
        self.last_names = [self._made(choose.choice((2, 3))) for _ in range(60_000)]
        self.places = [self._made(choose.choice((2, 3))) for _ in range(300)]
        self.skills = [self._made(choose.choice((2, 3))) for _ in range(2_000)]

    def begin_at(self, number: int) -> None:
        """Make other resumes from now on, always the same ones for this number."""
        self._random.seed(number)

    def _made(self, syllables: int) -> str:
        return "".join(self._random.choices(SYLLABLES, k=syllables))

    def _zipf(self, words: Sequence[str]) -> str:
        """Return a word; the first ones are common."""
        return words[int(len(words) ** self._random.random()) - 1]

    def document(self) -> bytes:
        """Return the JSON text of a resume."""
        choose = self._random
        pieces, places = choose.choice(self._templates)
        pieces = pieces.copy()
        replaced = [place for place in places if choose.random() < REPLACED]
        new = choose.choices(self.words, cum_weights=self._weights, k=len(replaced))
        for at, word in zip(replaced, new, strict=True):
            if choose.random() < RARE:
                (word,) = choose.choices(self.tail, cum_weights=self._tail_weights)
            pieces[at] = word
        first, last = self._zipf(self.first_names), self._zipf(self.last_names)
        place, title = self._zipf(self.places), " ".join(choose.choices(self.words[:300], k=2))
        header = {
            "name": f"{first.title()} {last.title()}",
            "title": f"{title} {choose.choice(THIRDS)}",
            "email": f"{first}.{last}{choose.randrange(100)}@example.{choose.choice(('com', 'org'))}",
            "location": f"{place.title()}, {choose.choice(('PT', 'DE', 'US'))}",
        }
        skills = [self._zipf(self.skills) for _ in range(8)]
        text = "".join(pieces)
        made = f'"skills": {{"column": 0, "items": [{{"tags": {json.dumps(skills)}}}]}}'
        sections = f"{text[:-1]}{', ' if len(text) > 2 else ''}{made}}}"
        return f'{{"header": {json.dumps(header)}, "sections": {sections}}}'.encode()

    def __iter__(self) -> Iterator[NewResume]:
        while True:
            yield NewResume(analyzer.parse(self.document()))


def _documents(corpus: Path | None) -> Iterator[dict[str, Any]]:
    if corpus is None:
        for path in sorted(SAMPLES.glob("*-en.json")):
            yield json.loads(path.read_bytes())
        return
    with tarfile.open(corpus) as archive:
        for member in archive:
            if (file := archive.extractfile(member)) is not None:
                document = json.load(file)
                document["sections"].pop("skills", None)
                yield document


def create_many(store: Store, account: AccountInfo, new: Iterator[NewResume], batch: int) -> None:
    while some := list(islice(new, batch)):
        creation.create(store, account.id, some, deadline_s=60)


def fill(store: Store, mixer: Mixer, resumes: int) -> None:
    known = accounts.list_accounts(store)
    before = sum(account.resume_count for account in known)
    mixer.begin_at(before)
    choose, made = random.Random(2 + before), iter(mixer)
    for _ in range((resumes - before) // BATCH):
        # The accounts take turns, as in a service.
        few = choose.choices(known[1:], k=10)
        create_many(store, known[0], islice(made, int(BATCH * LARGEST)), BATCH)
        for account in few:
            create_many(store, account, islice(made, int(BATCH * (1 - LARGEST) / 10)), BATCH)


# Finding


def kinds_of_queries(mixer: Mixer) -> dict[str, Callable[[], str]]:
    """What is searched for, by kind; each call returns another query."""
    choose = random.Random(3)

    def common() -> str:
        return choose.choice(mixer.words[10:110])

    def rare() -> str:
        return choose.choice(mixer.tail[20_000:])

    def skill() -> str:
        return f"skill:{choose.choice(mixer.skills[:20])}"

    def beginning(chars: int) -> str:
        return f"name:{choose.choice(mixer.last_names[:1_000])[:chars]}"

    return {
        "1 common word": common,
        "2 common words": lambda: f"{common()} {common()}",
        "3 common words": lambda: f"{common()} {common()} {common()}",
        "rare word": rare,
        "rare and common": lambda: f"{rare()} {common()}",
        "skill:": skill,
        "skill: and place:": lambda: f"{skill()} place:{choose.choice(mixer.places[:20])}",
        "skill: and rare": lambda: f"{skill()} {rare()}",
        **{f"name:, {n} letters": partial(beginning, n) for n in (1, 2, 3, 5)},
        "-word": lambda: f"-{common()}",
        "-word, that nearly all have": lambda: f"-title:{' -title:'.join(THIRDS[:2])}",
        "two of three thirds: nothing": lambda: " ".join(choose.sample(THIRDS, 2)),
        "word*, common": lambda: (
            f"{choose.choice([w for w in mixer.words[:300] if len(w) > 4])[:4]}*"
        ),
        "word*, rare": lambda: f"{rare()[:5]}*",
        '"two common words"': lambda: f'"{common()} {common()}"',
        "20 words": lambda: " ".join(common() for _ in range(20)),
        "20 negative words": lambda: " ".join(f"-{common()}" for _ in range(20)),
    }


def measure_finding(store: Store, account: AccountInfo, mixer: Mixer, *, queries: int) -> None:
    print(
        f"{'first page of 100, ms':<30}{'found':>6}{'median':>9}{'p95':>9}{'worst':>9}  newest first: {'median':>9}{'p95':>9}{'worst':>9}"
    )
    for kind, next_query in kinds_of_queries(mixer).items():
        texts = [next_query() for _ in range(queries)]
        line, counts = "", []
        for is_newest_first in (False, True):
            ms = []
            for text in texts:
                began_s = time.perf_counter()
                found = search.find_page(store, account.id, text, is_newest_first=is_newest_first)
                ms.append(1_000 * (time.perf_counter() - began_s))
                counts.append(len(found.page.entries))
            ms.sort()
            line += (
                f"{statistics.median(ms):>9.2f}{ms[int(0.95 * len(ms))]:>9.2f}{ms[-1]:>9.2f}"
                + " " * 16
            )
        print(f"{kind:<30}{statistics.median(counts):>6.0f}{line}", flush=True)
    print()


# Indexing


def size_bytes(store: Store) -> int:
    with store.read() as connection:
        if store.path is None:
            names = ("search_entries", "search_words", "search_progress")
            each = [f"pg_total_relation_size('{name}')" for name in names]
            return int(connection.exec_driver_sql(f"SELECT {' + '.join(each)}").scalar_one())
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        return int(pages * connection.exec_driver_sql("PRAGMA page_size").scalar_one())


def index_all(store: Store) -> None:
    indexer = Indexer(store)
    while list_behind(store):
        indexer.step()


def measure_indexing(store: Store) -> None:
    """Index and merge without pauses; on an idle machine the pauses are added."""
    counted = count_indexed(store)
    if (resumes := counted.resumes - counted.indexed) == 0:
        return
    commits: list[float] = []
    store.write_queue.observe = lambda _, took_s: commits.append(took_s)
    before, began_s, cpu_s = size_bytes(store), time.perf_counter(), time.process_time()
    index_all(store)
    took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    began_s = time.perf_counter()
    while store.write(merge):
        pass
    merged_s = time.perf_counter() - began_s
    store.write_queue.observe = lambda count, took_s: None
    commits.sort()
    print(
        f"indexed {resumes / took_s:,.0f} resumes/s; {1e6 * cpu_s / resumes:.0f} µs of this process each; "
        f"{(size_bytes(store) - before) / resumes:.0f} bytes each\n"
        f"a commit of {SLICE_RESUMES}: median {1_000 * statistics.median(commits):.1f} ms, "
        f"p99 {1_000 * commits[int(0.99 * len(commits))]:.1f}, worst {1_000 * commits[-1]:.1f}\n"
        f"merged in {merged_s:.1f} s\n"
    )


def measure_words(mixer: Mixer) -> None:
    warm, documents = ([mixer.document() for _ in range(count)] for count in (2_000, 300))
    for document in warm:
        index_tokens(document, title=None, name=None)
    began_s = time.process_time()
    tokens = [index_tokens(document, title=None, name=None) for document in documents]
    took_s = time.process_time() - began_s
    size = statistics.mean(map(len, documents))
    count = statistics.mean(map(len, tokens))
    print(
        f"{size:,.0f} bytes, {count:.0f} tokens a resume, {1e6 * took_s / 300:.0f} µs to find them\n"
    )


def measure_creating(store: Store, mixer: Mixer, creates: int) -> None:
    """Creates without pause in one thread, without an indexer and with one, in turn."""
    rates: dict[bool, list[float]] = {False: [], True: []}
    for number in range(6):
        has_indexer = number % 2 == 1
        account = accounts.create_account(store, f"busy-{number}", plan="business")
        new = list(islice(mixer, creates))
        with Indexer(store) if has_indexer else contextlib.nullcontext():
            began_s = time.perf_counter()
            create_many(store, account, iter(new), COMMIT)
            rates[has_indexer].append(creates / (time.perf_counter() - began_s))
        index_all(store)
    without, with_one = (statistics.median(rates[has_indexer]) for has_indexer in (False, True))
    print(
        f"{creates:,} creates, {COMMIT} a commit, per second: without an indexer {without:,.0f}, with one {with_one:,.0f}: {with_one / without:.3f}\n"
    )


def measure_lag(store: Store, mixer: Mixer) -> None:
    """How long after its create a resume is in the index, where nothing else happens."""
    account = accounts.create_account(store, "calm", plan="business")
    waits = []
    with Indexer(store):
        for resume in islice(mixer, 20):
            creation.create(store, account.id, [resume])
            began_s = time.perf_counter()
            while list_behind(store):
                time.sleep(0.005)
            waits.append(time.perf_counter() - began_s)
            time.sleep(random.random() / 5)
    print(
        f"indexed after its create: median {statistics.median(waits):.2f} s, worst {max(waits):.2f} s"
    )


def measure_deleting(store: Store, account: AccountInfo) -> None:
    page = stored_resumes.list_page(store, account.id, limit=100)
    began_s = time.process_time()
    for entry in page.entries:
        stored_resumes.delete_resume(store, account.id, entry.id)
    print(
        f"deleted one by one: {1e6 * (time.process_time() - began_s) / 100:.0f} µs of this process each"
    )


def measure_idle(store: Store, span_s: float) -> None:
    with Indexer(store):
        time.sleep(2)
        before_s = time.process_time()
        time.sleep(span_s)
        used = (time.process_time() - before_s) / span_s
    print(f"an idle indexer: {used:.4%} of a core over {span_s:.0f} s")


@contextlib.contextmanager
def a_store(version: str | None, kept: Path | None) -> Iterator[Store]:
    with contextlib.ExitStack() as stack:
        if kept is not None:
            url = f"sqlite:///{kept.resolve()}"
        elif version is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            url = f"sqlite:///{folder}/r.db"
        else:
            server = stack.enter_context(postgres.running(version, settings=DURABLE))
            url = server.url(server.make_database())
        yield stack.enter_context(open_store(url))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--resumes", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--creates", type=int, default=30_000)
    parser.add_argument("--idle", type=float, default=10)
    parser.add_argument("--postgresql", metavar="VERSION", choices=postgres.VERSIONS)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--corpus", type=Path)
    arguments = parser.parse_args()
    engine = (
        f"PostgreSQL {arguments.postgresql}"
        if arguments.postgresql
        else f"SQLite {dbapi.sqlite_version}"
    )
    print(f"{engine}, {arguments.resumes:,} resumes\n")
    mixer = Mixer(arguments.corpus)
    sys.setswitchinterval(SWITCH_INTERVAL_S)  # as the service does, before it indexes
    tune_gc()
    measure_words(mixer)
    with a_store(arguments.postgresql, arguments.store) as store:
        plans.set_plan_limits(store, PlanChange("business", None))
        if not (known := accounts.list_accounts(store)):
            for number in range(ACCOUNTS):
                accounts.create_account(store, f"a{number:02}", plan="business")
            known = accounts.list_accounts(store)
        fill(store, mixer, arguments.resumes)
        measure_indexing(store)
        for account in (known[0], known[1]):
            count = accounts.get_account(store, account.name).resume_count
            print(f"in an account of {count:,}")
            measure_finding(store, account, mixer, queries=arguments.queries)
        measure_deleting(store, known[0])
        if arguments.creates:
            measure_creating(store, mixer, arguments.creates)
            measure_lag(store, mixer)
        if arguments.idle:
            measure_idle(store, arguments.idle)


if __name__ == "__main__":
    main()
