"""Each input that is kept, seeds and what once failed, keeps its promises, and so does what is made of it."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.changing import changed_bytes
from tests.fuzz.targets import CORPUS, TARGETS, Target

MOST_KIB = 300
INPUTS = [(target, path) for target in TARGETS.values() for path in target.iter_inputs()]


@pytest.mark.parametrize(
    ("target", "path"), INPUTS, ids=[f"{target.name}-{path.name}" for target, path in INPUTS]
)
def test_an_input_of_the_corpus_keeps_its_promises(target: Target, path: Path) -> None:
    target.check(path.read_bytes())


def test_the_corpus_is_small_and_all_of_it_is_used() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert sorted(files) == sorted(path for _, path in INPUTS)
    assert sum(path.stat().st_size for path in files) < MOST_KIB * 1024


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_extreme_inputs_keep_the_promises_too(target: Target) -> None:
    for data in (b"", b"\n", b"\0", b"[" * 5_000, b"{" * 5_000, b'"' * 5_000, b"\xff" * 5_000):
        target.check(data)


# Changed for some seconds: `make fuzz` does it for longer, and better


EXAMPLES = 150
CHANGES = st.lists(st.integers(0, 2**32), min_size=1, max_size=6)
"""The seed of each change."""


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_changed_input_keeps_its_promises(target: Target) -> None:
    inputs = [path.read_bytes() for path in target.iter_inputs()]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.sampled_from(inputs) | st.binary(max_size=200), CHANGES)
    def keeps_its_promises(data: bytes, seeds: list[int]) -> None:
        for seed in seeds:
            made = _changed(target, data, random.Random(seed))
            # Values are copied into values: what is too long would be twice that the next time.
            data = made if len(made) <= target.max_bytes else data[: target.max_bytes]
        target.check(data)

    keeps_its_promises()


def _changed(target: Target, data: bytes, chosen: random.Random) -> bytes:
    def change_bytes(some: bytes) -> bytes:
        return changed_bytes(some, chosen)

    if target.change is None:
        return change_bytes(data)
    return target.change(data, chosen, change_bytes)
