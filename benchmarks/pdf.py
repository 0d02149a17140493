"""What a PDF costs: drawing one, asking for one, the renderer's memory, and what others notice.

    .venv/bin/python -m benchmarks.pdf [--pdfs N] [--seconds S] [--rounds K]

Needs wrk, as https://github.com/wg/wrk makes it and Debian packages it, and Linux, whose /proc says
what processes hold. Makes homes of its own in a temporary folder, and leaves nothing behind.

    drawing   the first PDF of a renderer; then the samples in turn, each time with another name, so
              that no page is drawn twice; a resume of four pages; the same page again
    memory    the renderer after --pdfs PDFs, without CJK fonts and samples and with them
    HTTP      304 beside GET one, and fresh PDFs, from `resumes serve`
    beside    POST and a page of 20 alone, and while a client asks for PDFs without a pause:
              all processes on any core, then the PDFs on a core of their own
"""

import argparse
import contextlib
import itertools
import json
import os
import shutil
import statistics
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.server import SERVE, Load, Server, a_home, load, median, running, tree
from resumes import analyzer
from resumes.rendering import Rendered, Renderer, compose
from resumes.rendering.fonts import SYSTEM_FONTS
from resumes.store import Store, accounts, api_keys, creation
from resumes.store.creation import Created, NewResume

SAMPLES = Path(__file__).parents[1] / "sample_data"
FOUR_PAGES = "long-senior-career-high-performer-en.json"
PATH = "/api/v1/resumes"
RESUME_ID = "0" * 24
FIRSTS = 5
WARM_UP = 25
"""PDFs of a renderer that are not counted."""

Document = dict[str, Any]


class Sample(NamedTuple):
    """A good sample, by the name of its file."""

    name: str
    body: bytes
    document: Document


def load_samples() -> list[Sample]:
    return [
        Sample(path.name, body, json.loads(analyzer.parse(body).document))
        for path in sorted(SAMPLES.glob("*.json"))
        for body in [path.read_bytes()]
    ]


def is_cjk(sample: Sample) -> bool:
    """Whether the sample has a Chinese, Japanese or Korean character, or one from an emoji font."""
    return any(ord(char) >= 0x2E80 for char in sample.body.decode())


def renamed(document: Document, number: int) -> Document:
    """The document of somebody else, so that Typst has not drawn it before."""
    header = {**document["header"], "name": f"{document['header'].get('name') or ''} {number}"}
    return {**document, "header": header}


# Drawing


def drawing_ms(renderer: Renderer, document: Document) -> float:
    """Milliseconds from the document to the PDF."""
    began_s = time.perf_counter()
    rendered: Rendered = renderer.render(compose(document, RESUME_ID))
    took_s = time.perf_counter() - began_s
    assert rendered.body.startswith(b"%PDF-")
    return took_s * 1_000


@contextlib.contextmanager
def a_renderer(folders: Sequence[Path]) -> Iterator[Renderer]:
    renderer = Renderer(folders, timeout_s=60)
    try:
        yield renderer
    finally:
        renderer.close()


def show(what: str, figures: Sequence[float]) -> None:
    """Median, 95th percentile and worst of milliseconds."""
    ordered = sorted(figures)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    print(f"{what:<44}{statistics.median(ordered):>9.1f}{p95:>9.1f}{ordered[-1]:>9.1f}", flush=True)


def measure_drawing(samples: Sequence[Sample], folders: Sequence[Path], pdfs: int) -> None:
    print(f"{'ms':<44}{'median':>9}{'p95':>9}{'worst':>9}")
    firsts = []
    for _ in range(FIRSTS):
        with a_renderer(folders) as renderer:
            firsts.append(drawing_ms(renderer, samples[0].document))
    show("the first PDF of a renderer", firsts)
    [long] = [one.document for one in samples if one.name == FOUR_PAGES]
    with a_renderer(folders) as renderer:
        numbers = itertools.count()
        for sample in itertools.islice(itertools.cycle(samples), WARM_UP):
            drawing_ms(renderer, renamed(sample.document, next(numbers)))
        began_s = time.perf_counter()
        warm = [
            drawing_ms(renderer, renamed(sample.document, next(numbers)))
            for sample in itertools.islice(itertools.cycle(samples), pdfs)
        ]
        took_s = time.perf_counter() - began_s
        show("the samples in turn, each another person's", warm)
        some = range(max(10, pdfs // 10))
        show("four pages", [drawing_ms(renderer, renamed(long, next(numbers))) for _ in some])
        show("the same page again", [drawing_ms(renderer, samples[0].document) for _ in some])
    print(f"\n{pdfs / took_s:.1f} PDFs a second, one after the other")


# Memory


def memory_mb(pid: int, field: str) -> float:
    """`VmRSS`, what a process holds, or `VmHWM`, the most that it ever held."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    [line] = [line for line in status.splitlines() if line.startswith(f"{field}:")]
    return int(line.split()[1]) / 1_024


def children(pid: int) -> list[int]:
    """The processes that the process started, and that are there."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text(encoding="ascii").split())
    return found


def measure_memory(samples: Sequence[Sample], folders: Sequence[Path], pdfs: int) -> None:
    print(f"{'renderer, MB':<44}{'held':>9}{'most':>9}")
    kinds: Mapping[str, tuple[Sequence[Sample], Sequence[Path]]] = {
        "without CJK": ([one for one in samples if not is_cjk(one)], ()),
        "with CJK": (samples, folders),
    }
    for name, (drawn, fonts) in kinds.items():
        before = set(children(os.getpid()))
        with a_renderer(fonts) as renderer:
            for number in range(pdfs):
                document = drawn[number % len(drawn)].document
                drawing_ms(renderer, renamed(document, number))
            [pid] = set(children(os.getpid())) - before
            held, most = memory_mb(pid, "VmRSS"), memory_mb(pid, "VmHWM")
        print(f"{f'after {pdfs:,} PDFs {name}':<44}{held:>9.0f}{most:>9.0f}", flush=True)


# HTTP


def fill(store: Store, account_id: str, samples: Sequence[Sample], count: int) -> list[str]:
    """So many resumes are stored, each of another person. Their ids."""
    new = [
        NewResume(
            analyzer.parse(
                json.dumps(renamed(samples[number % len(samples)].document, number)).encode()
            )
        )
        for number in range(count)
    ]
    ids = [one.id for one in creation.create(store, account_id, new) if isinstance(one, Created)]
    assert len(ids) == count
    return ids


def ask(server: Server, path: str, **headers: str) -> tuple[int, Mapping[str, str]]:
    """The status and headers of an answer, of which all was read."""
    request = urllib.request.Request(
        f"{server.url}{path}", headers={"Authorization": f"Bearer {server.key}", **headers}
    )
    with urllib.request.urlopen(request) as answer:
        answer.read()
        return answer.status, answer.headers


def a_script(path: str, **headers: str) -> str:
    """What has wrk ask for one path with these headers, and refuse other answers than 200 and 304."""
    fields = "".join(
        f"wrk.headers[{json.dumps(k)}] = {json.dumps(v)}; " for k, v in headers.items()
    )
    return f'wrk.method = "GET"; wrk.path = "{path}"; {fields}'


def show_load(what: str, figures: Load) -> None:
    print(
        f"{what:<44}{figures.per_s:>9,.0f}{figures.p50_ms:>9.2f}{figures.p99_ms:>9.2f}", flush=True
    )


def measure_304(server: Server, resume_id: str, seconds: int, rounds: int) -> None:
    one = f"{PATH}/{resume_id}"
    tag = ask(server, f"{one}/pdf")[1]["ETag"]
    scripts = {"GET one": a_script(one), "304": a_script(f"{one}/pdf", **{"If-None-Match": tag})}
    found = {name: list[Load]() for name in scripts}
    for _, (name, script) in itertools.product(range(rounds), scripts.items()):
        found[name].append(load(server, "GET", seconds, script))
    for name, loads in found.items():
        show_load(name, median(loads))
    ratios = [a.per_s / b.per_s for a, b in zip(found["GET one"], found["304"], strict=True)]
    print(f"  304 takes as long as so many GET one, median: {statistics.median(ratios):.2f}")


def measure_fresh(server: Server, ids: Sequence[str]) -> None:
    figures = []
    for resume_id in ids:
        began_s = time.perf_counter()
        ask(server, f"{PATH}/{resume_id}/pdf")
        figures.append((time.perf_counter() - began_s) * 1_000)
    print(f"\n{'ms':<44}{'median':>9}{'p95':>9}{'worst':>9}")
    show("GET of a fresh PDF", figures)


# Beside


@contextlib.contextmanager
def rendering(
    server: Server, ids: Sequence[str], cores: Collection[int]
) -> Iterator[Callable[[], int]]:
    """A client on the cores asks for PDFs without a pause during the block.

    Yields what returns how many it has had.
    """
    stop, had = threading.Event(), itertools.count()

    def run() -> None:
        os.sched_setaffinity(0, cores)
        for number, resume_id in enumerate(itertools.cycle(ids)):
            if stop.is_set():
                return
            # Letter and A4 in turn: no page is drawn twice in a row.
            paper = ("a4", "letter")[number // len(ids) % 2]
            ask(server, f"{PATH}/{resume_id}/pdf?paper={paper}")
            next(had)

    client = threading.Thread(target=run)
    client.start()
    try:
        yield lambda: next(had)
    finally:
        stop.set()
        client.join()


@contextlib.contextmanager
def apart(server: Server) -> Iterator[Collection[int]]:
    """The renderer has the last core to itself during the block; server and wrk have the others.

    Yields the renderer's, which is for its client as well.
    """
    cores = sorted(os.sched_getaffinity(0))
    others, last = cores[:-1], cores[-1:]
    renderers = [pid for pid in tree(server.pid) if b"rendering" in read_command(pid)]
    pin([pid for pid in tree(server.pid) if pid not in renderers], others)
    pin(renderers, last)
    os.sched_setaffinity(0, others)
    try:
        yield last
    finally:
        pin(tree(server.pid), cores)
        os.sched_setaffinity(0, cores)


def pin(pids: Sequence[int], cores: Sequence[int]) -> None:
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)


def read_command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def measure_beside(
    server: Server, ids: Sequence[str], cores: Collection[int], seconds: int, rounds: int
) -> None:
    found: dict[tuple[str, bool], list[Load]] = {
        (method, is_beside): [] for method in ("POST", "GET") for is_beside in (False, True)
    }
    pdfs = 0
    for _, (method, is_beside) in itertools.product(range(rounds), found):
        with contextlib.ExitStack() as stack:
            if is_beside:
                had = stack.enter_context(rendering(server, ids, cores))
            found[method, is_beside].append(load(server, method, seconds))
            if is_beside:
                pdfs += had()
    for method in ("POST", "GET"):
        for is_beside in (False, True):
            what = f"{method} {'beside PDFs' if is_beside else 'alone'}"
            show_load(what, median(found[method, is_beside]))
        pairs = zip(found[method, True], found[method, False], strict=True)
        ratio = statistics.median(a.p99_ms / b.p99_ms for a, b in pairs)
        print(f"  p99 beside PDFs to alone, median: {ratio:.2f}")
    print(f"  {pdfs / (2 * rounds * seconds):.1f} PDFs a second meanwhile")


def measure_server(samples: Sequence[Sample], pdfs: int, seconds: int, rounds: int) -> None:
    with a_home() as (home, store), contextlib.ExitStack() as stack:
        account = accounts.create_account(store, "ada", plan="business")
        ids = fill(store, account.id, samples, pdfs)
        key = api_keys.create_key(store, "ada").secret
        server = stack.enter_context(running(SERVE, home, key, rate_limit=False))
        print(f"{'':<44}{'/s':>9}{'p50 ms':>9}{'p99 ms':>9}")
        measure_304(server, ids[0], seconds, rounds)
        measure_fresh(server, ids)
        print(f"\n{'':<44}{'/s':>9}{'p50 ms':>9}{'p99 ms':>9}")
        cores = os.sched_getaffinity(0)
        measure_beside(server, ids, cores, seconds, rounds)
        if len(cores) > 1:
            print("\nthe renderer on a core of its own, server and wrk on the others")
            with apart(server) as renderers:
                measure_beside(server, ids, renderers, seconds, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a PDF costs.")
    parser.add_argument("--pdfs", type=int, default=1_000, help="of each part [1000]")
    parser.add_argument("--seconds", type=int, default=4, help="of each load [4]")
    parser.add_argument("--rounds", type=int, default=3, help="whose medians count [3]")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is missing (Debian: apt install wrk)")
    samples = load_samples()
    folders = [folder for folder in SYSTEM_FONTS if folder.is_dir()]
    measure_drawing(samples, folders, options.pdfs)
    print()
    measure_memory(samples, folders, options.pdfs)
    print()
    measure_server(samples, min(options.pdfs, 500), options.seconds, options.rounds)


if __name__ == "__main__":
    main()
