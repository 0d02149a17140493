"""A store of its own for every test of the terminal UI, and asyncio to run it in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resumes.store.engine import Store
from tests.support.stores import open_home
from tests.support.terminal.builders import an_account


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual waits for an idle 20 ms twice after each key; our tests poll what they assert."""
    monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", 0.004)


@pytest.fixture(autouse=True)
def _lasting_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message is there until the next one, however long a test takes to look at it."""
    monkeypatch.setattr("tui.toasts.SHOWN_S", 3_600.0)


@pytest.fixture
def empty_store(tmp_path: Path) -> Iterator[Store]:
    """A store without accounts."""
    with open_home(tmp_path) as store:
        yield store


@pytest.fixture
def store(empty_store: Store) -> Store:
    """A store with the account ana, on the business plan and without resumes."""
    an_account(empty_store, "ana")
    return empty_store
