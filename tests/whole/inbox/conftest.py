import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.inbox.scenes import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A home without accounts or importers."""
    return Scene(tmp_path)


@pytest.fixture(autouse=True)
def unbroken() -> Iterator[None]:
    """Who opens a file while an importer in this process proves that it has no writer makes the
    system send a signal, which would end the tests."""
    before = signal.signal(signal.SIGIO, lambda *_: None)  # which no program inherits
    yield
    signal.signal(signal.SIGIO, before)
