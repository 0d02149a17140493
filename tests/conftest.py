"""What every test gets, whether it asks or not."""

import contextlib
import gc
import itertools
import logging
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from tests.support import engines, postgres

ALL: Final = "all"

LIMITS_S: Final = {"slow": 900, "timing": 900, "campaign": 3_600, "chaos": 3_600}
"""How long a test of these kinds may take; pyproject.toml has the limit of the others."""


# Hypothesis too measures no time, neither of what is tried nor of what is made up for it.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine",
        action="append",
        choices=(*engines.NAMES, ALL),
        help="keep the stores of all tests that ask for one on this engine, or on each",
    )


def pytest_configure() -> None:
    """Have programs under test hear Ctrl-C, also where whoever started the tests ignores it.

    And the end of their terminal, below `nohup` as well: a program that is started does not inherit
    a handler, so here it goes on doing nothing.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_collection_finish() -> None:
    """Leave what was imported out of garbage collection: going through it is a tenth of all tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def own_collector() -> Iterator[None]:
    """Give each test Python's collector as it was: programs that run in this process tune it."""
    threshold, switch_s = gc.get_threshold(), sys.getswitchinterval()
    yield
    assert gc.isenabled()
    gc.set_threshold(*threshold)
    sys.setswitchinterval(switch_s)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that asks for a store an engine that keeps it.

    That is SQLite, and for the contract of a store the newest PostgreSQL as well. The other engines
    are for `make campaign`, or for whoever asks for them with --engine.
    """
    if "engine" not in metafunc.fixturenames:
        return
    asked: list[str] = metafunc.config.getoption("--engine") or []
    has = metafunc.definition.get_closest_marker
    names = [engines.SQLITE] if has("sqlite") else engines.NAMES
    usual = engines.CONTRACT if has("engines") else (engines.SQLITE,)
    parameters = [
        pytest.param(name, marks=() if asked or name in usual else pytest.mark.campaign)
        for name in names
        if not asked or ALL in asked or name in asked or names == [engines.SQLITE]
    ]
    metafunc.parametrize("engine", parameters, indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests on the engines that were asked for, and those that need none; limit each.

    The long form of a test is for the engines of the contract, unless another is asked for. What
    takes longest comes first: what is begun last must not be long.
    """
    asked: list[str] = config.getoption("--engine") or [ALL]
    if ALL not in asked:
        others = [item for item in items if _engine_of(item) not in (None, *asked)]
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)
    others = [item for item in items if len([*item.iter_markers("campaign")]) > 1]
    others = [item for item in others if _engine_of(item) not in engines.CONTRACT]
    items[:] = [item for item in items if item not in others]
    config.hook.pytest_deselected(items=others)
    for item in items:
        limits = [limit for name, limit in LIMITS_S.items() if item.get_closest_marker(name)]
        if limits and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(max(limits)))
    minutes = Counter[str]()
    for item in items:
        minutes[_unit_of(item.nodeid)] += _minutes_of(item)
    items.sort(key=lambda item: -minutes[_unit_of(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two for each processor: tests spend about a quarter of their time waiting."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """Give each worker the tests of a module on one engine, which share their fixtures."""
    return _ByModuleAndEngine(config, log)


class _ByModuleAndEngine(LoadFileScheduling):  # type: ignore[misc]  # it ships no types
    def _split_scope(self, nodeid: str) -> str:
        return _unit_of(nodeid)


def _unit_of(nodeid: str) -> str:
    """Return the module of a test and its engine, if it has one."""
    module, _, test = nodeid.partition("::")
    found = re.search(rf"[\[-]({'|'.join(engines.NAMES)})[]-]", test)
    return f"{module}::{found[1]}" if found else module


def _minutes_of(item: pytest.Item) -> int:
    return max((one.kwargs.get("minutes", 0) for one in item.iter_markers("campaign")), default=0)


def _engine_of(item: pytest.Item) -> str | None:
    name: str | None = item.callspec.params.get("engine") if hasattr(item, "callspec") else None
    return name


@pytest.fixture(scope="session")
def _homes() -> Iterator[Iterator[Path]]:
    """Names of folders for homes: short, since screens cut off what is long."""
    with tempfile.TemporaryDirectory(prefix="home") as folder:
        yield (Path(folder, str(number)) for number in itertools.count())


@pytest.fixture(autouse=True)
def _shielded(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the developer's own home, settings or working directory."""
    ours = ("RESUMES_", "XDG_", "COLUMNS", "LINES")
    for name in [name for name in os.environ if name.startswith(ours)]:
        monkeypatch.delenv(name)
    home = next(_homes)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)


PRIVATE = re.compile("enh_live_[A-Za-z0-9]{64}|ada@example.com")
"""What no log may hold: a whole key, and the address that the tests' resumes bear."""


@pytest.fixture(autouse=True)
def _logs_hold_nothing_private(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No test makes anything log a key or an address in this process."""
    yield
    lines = map(logging.Formatter().format, caplog.get_records("call"))
    assert not [line for line in lines if PRIVATE.search(line)]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Prints a line that is seen also when all goes well."""

    def write(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", flush=True)  # noqa: T201  (a campaign's seed and figures)

    return write


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout that the tests are run from."""
    return Path(__file__).parent.parent


@pytest.fixture(scope="session")
def _engines() -> Iterator[engines.Engines]:
    with contextlib.closing(engines.Engines()) as started:
        yield started


@pytest.fixture(scope="session")
def shared_postgres(_engines: engines.Engines) -> postgres.Server:
    """The newest PostgreSQL, which nobody stops or configures; databases of it are to be dropped."""
    engine = _engines.get(engines.NAMES[-1])
    assert isinstance(engine, engines.PostgresEngine)
    return engine.server


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest, _engines: engines.Engines) -> engines.Engine:
    """What keeps the store of a test."""
    name: str = request.param
    return _engines.get(name)


@pytest.fixture
def place(engine: engines.Engine, tmp_path: Path) -> Iterator[str]:
    """The address of a place where no store was made yet."""
    with engine.a_place(tmp_path) as url:
        yield url


@pytest.fixture
def url(engine: engines.Engine, tmp_path: Path) -> Iterator[str]:
    """The address of an empty store."""
    with engine.a_store(tmp_path) as url:
        yield url


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files, in which nothing is left at the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not [*folder.iterdir()]
