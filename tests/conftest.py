"""What every test gets, whether it asks or not."""

import contextlib
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import engines, postgres


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine",
        action="append",
        choices=engines.NAMES,
        help="of the tests that run on several engines, run those on this one",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for an engine, or for what is kept by one, runs on each."""
    if "engine" in metafunc.fixturenames:
        is_sqlite_alone = metafunc.definition.get_closest_marker("sqlite") is not None
        names = [engines.SQLITE] if is_sqlite_alone else engines.NAMES
        metafunc.parametrize("engine", names, indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Only tests on the engines that were asked for are left, and those that need none."""
    wanted = config.getoption("--engine")
    if wanted:
        others = [item for item in items if _engine_of(item) not in (None, *wanted)]
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)


def _engine_of(item: pytest.Item) -> str | None:
    name: str | None = item.callspec.params.get("engine") if hasattr(item, "callspec") else None
    return name


@pytest.fixture(autouse=True)
def _shielded(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the developer's own home, settings or working directory."""
    for name in [name for name in os.environ if name.startswith(("RESUMES_", "XDG_"))]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
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
