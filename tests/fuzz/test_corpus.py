"""Each input that is kept, seeds and what once failed, keeps its promises."""

from pathlib import Path

import pytest

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
