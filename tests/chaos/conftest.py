"""What the rows of the fault campaign get, and what becomes of what they measured."""

import random
import signal
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from resumes.store import open_store
from tests.chaos import campaign, checker
from tests.chaos.campaign import FAILED, Figures, Row

ROW = pytest.StashKey[Row]()
FIGURES = pytest.StashKey[Figures]()
DONE = pytest.StashKey[list[Row]]()
SEED = pytest.StashKey[int]()


@pytest.fixture(autouse=True)
def unbroken() -> Iterator[None]:
    """A program that opens a file while an importer in this process proves that it has no writer
    makes the system send a signal, which would end the tests."""
    before = signal.signal(signal.SIGIO, lambda *_: None)  # which no program inherits
    yield
    signal.signal(signal.SIGIO, before)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, help="have the fault campaign choose as it did before")
    parser.addoption("--table", type=Path, help="the page whose table gets the figures of this run")


def pytest_configure(config: pytest.Config) -> None:
    asked = config.getoption("--seed", None)
    page: Path | None = config.getoption("--table", None)
    if page is not None and not page.is_file():
        raise pytest.UsageError(
            f"--table {page}: no such page; a copy of docs/contributors/faults.md would do"
        )
    config.stash[SEED] = random.SystemRandom().randrange(1, 10**6) if asked is None else asked
    config.stash[DONE] = []


def pytest_report_header(config: pytest.Config) -> str:
    """Before anything runs, so that also a run that is broken off can be done again."""
    return f"chaos: --seed {config.stash[SEED]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each row knows what it says of itself."""
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("chaos") is not None:
            case = item.name.removeprefix(item.originalname)
            row = campaign.find_row(item.function, case=case)
            if row is not None:
                item.stash[ROW] = row


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A row that passed has its figures, one that failed is told how to do it again."""
    report = yield
    row = item.stash.get(ROW, None)
    if row is None:
        return report
    seed = item.config.stash[SEED]
    if report.failed:
        name = row.function.rpartition(":")[2]
        report.sections.append(("again", f'make chaos ARGS="--seed {seed} -k {name}"'))
        _keep(item, replace(row, figures=FAILED, seed=str(seed)))
    elif report.passed and report.when == "call":
        figures: Figures = item.stash.setdefault(FIGURES, {})
        _keep(item, replace(row, figures=campaign.written(figures), seed=str(seed)))
    return report


def _keep(item: pytest.Item, row: Row) -> None:
    """The row stands for its test, which may fail after it passed, in what it cleans up."""
    done = item.config.stash[DONE]
    done[:] = [*(one for one in done if one.test != row.test), row]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """What each row measured is seen also when all goes well."""
    done: list[Row] = config.stash[DONE]
    for row in sorted(done, key=lambda row: row.order):
        terminalreporter.write_line(f"{row.number:>3} {row.fault} ({row.test}): {row.figures}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    page: Path | None = session.config.getoption("--table", None)
    done = session.config.stash[DONE]
    if page is not None and done:
        text = campaign.merged(page.read_text("utf-8"), done, campaign.iter_rows())
        page.write_text(text, "utf-8")


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """Where a row puts what it measured: `figures["lost"] = 0`, in the order of the page."""
    found: Figures = request.node.stash.setdefault(FIGURES, {})
    return found


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> random.Random:
    """All chance of a row, which is the same for the same `--seed`."""
    row: Row = request.node.stash[ROW]
    return random.Random(f"{request.config.stash[SEED]}/{row.number}")


@pytest.fixture(autouse=True)
def _sound(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """`resumes db check` finds nothing in any store that a row leaves behind: those below its folder,
    and that at `url`. One that is damaged on purpose is gone by then."""
    urls = {request.getfixturevalue("url")} if "url" in request.fixturenames else set()
    yield
    for url in urls | {checker.address_of(path) for path in tmp_path.rglob("resumes.db")}:
        with open_store(url, upgrade=False) as store:
            checker.check_soundness(store)
