"""Servers that are killed while clients write and read, and what is left afterwards."""

import itertools
import random
from pathlib import Path

import pytest

from tests.support.api.ended_servers import KINDS, SHORT, check, live_through

LONG = 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "kills",
    [SHORT, pytest.param(LONG, marks=pytest.mark.campaign(minutes=6))],
    ids=["short", "long"],
)
def test_what_was_acknowledged_is_there_once_and_whole(tmp_path: Path, kills: int) -> None:
    """Half of the servers have two workers."""
    check(live_through(tmp_path, itertools.islice(itertools.cycle(KINDS), kills), random.Random(1)))
