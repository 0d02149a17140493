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

Install = Callable[[Path, str], AbstractContextManager[Reach]]
STEPS = 50
FEWER_STEPS = 25
"""With processes, of which some steps take half a second."""


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
    engine: Engine, tmp_path: Path, examples: int
) -> None:
    machine.run(making(in_process, engine, tmp_path), examples=examples, steps=STEPS)


@pytest.mark.parametrize("examples", [1, pytest.param(50, marks=pytest.mark.campaign)])
def test_everything_goes_as_the_model_says_with_processes(
    engine: Engine, tmp_path: Path, examples: int
) -> None:
    machine.run(making(processes, engine, tmp_path), examples=examples, steps=FEWER_STEPS)
