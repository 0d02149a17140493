import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.inbox.scenes import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A home without accounts or importers."""
    return Scene(tmp_path)


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Prints a line that is seen also when all goes well."""

    def write(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", flush=True)  # noqa: T201  (a campaign's seed and figures)

    return write


@pytest.fixture(autouse=True)
def _unbroken() -> Iterator[None]:
    """Who opens a file while an importer in this process proves that it has no writer makes the
    system send a signal, which would end the tests."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGIO, before)
