"""The sequences of `test_everything`, with the service's own processes. In a module of its own: both
take long, and whoever runs tests side by side gives out modules."""

from pathlib import Path

import pytest

from tests.stateful import machine
from tests.stateful.processes import Processes
from tests.support.engines import Engine

pytestmark = [pytest.mark.engines, pytest.mark.slow]

STEPS = 25
"""Of which some take half a second."""


@pytest.mark.parametrize("examples", [1, pytest.param(50, marks=pytest.mark.campaign(minutes=5))])
def test_everything_goes_as_the_model_says_with_processes(
    engine: Engine, tmp_path: Path, examples: int, is_seeded: bool
) -> None:
    make = machine.making(Processes, engine, tmp_path)
    machine.run(make, examples=examples, steps=STEPS, is_seeded=is_seeded)
