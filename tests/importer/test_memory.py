import gc
from collections.abc import Iterator

import pytest

from importer import memory


@pytest.fixture(autouse=True)
def own_collector() -> Iterator[None]:
    """Other tests keep theirs."""
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


class Knot:
    """Something that refers to itself."""

    freed = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        Knot.freed += 1


def test_what_refers_to_itself_is_freed_seldom_but_is_freed() -> None:
    memory.collect_seldom()
    before = Knot.freed
    knots = [Knot() for _ in range(2_000)]
    del knots
    assert Knot.freed == before
    kept = [[] for _ in range(memory.YOUNG + 1)]  # type: ignore[var-annotated]
    assert Knot.freed == before + 2_000
    assert kept
