"""Whatever clients, admins and analyzers do, in any order, all is as the model says.

A failing sequence is printed as a program of the rules in `clients`, `admins` and `analyzers`, with
`@reproduce_failure`, which goes above `a_service` in `machine` to have it again. With
`--hypothesis-seed` the same sequences are tried.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.engines import Engine
from tests.stateful import machine
from tests.stateful.in_process import in_process
from tests.stateful.processes import processes
from tests.stateful.reach import Reach

pytestmark = pytest.mark.engines

Install = Callable[[Path, str], AbstractContextManager[Reach]]
STEPS = 50
FEWER_STEPS = 25
"""With processes, of which some steps take half a second."""


@pytest.fixture
def is_seeded(pytestconfig: pytest.Config) -> bool:
    """Whether `--hypothesis-seed` was given."""
    return pytestconfig.getoption("--hypothesis-seed") is not None


def making(
    install: Install, engine: Engine, folder: Path
) -> Callable[[], AbstractContextManager[Reach]]:
    """Makes installations, each with a home and a store of its own."""

    @contextlib.contextmanager
    def make() -> Iterator[Reach]:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            home = Path(name)
            with engine.a_store(home) as url, install(home, url) as reach:
                yield reach

    return make


@pytest.mark.parametrize("examples", [machine.FEW, pytest.param(2_000, marks=pytest.mark.campaign)])
def test_everything_goes_as_the_model_says_in_process(
    engine: Engine, tmp_path: Path, examples: int, is_seeded: bool
) -> None:
    make = making(in_process, engine, tmp_path)
    machine.run(make, examples=examples, steps=STEPS, is_seeded=is_seeded)


@pytest.mark.slow
@pytest.mark.parametrize("examples", [1, pytest.param(50, marks=pytest.mark.campaign)])
def test_everything_goes_as_the_model_says_with_processes(
    engine: Engine, tmp_path: Path, examples: int, is_seeded: bool
) -> None:
    make = making(processes, engine, tmp_path)
    machine.run(make, examples=examples, steps=FEWER_STEPS, is_seeded=is_seeded)


def test_an_account_may_begin_to_go_at_each_step_of_an_import(
    engine: Engine, tmp_path: Path
) -> None:
    """Chance seldom comes to the one step between a commit and the filing of its file."""
    for at in range(1, 9):
        service = machine.Service(making(in_process, engine, tmp_path))
        service.begin()
        service.begin_with_bodies()
        service.delete_while_importing(name="ana", at=at)
        service.everything_is_where_it_was_put()
        service.teardown()
