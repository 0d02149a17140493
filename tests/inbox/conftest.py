from collections.abc import Iterator
from pathlib import Path

import pytest

from resumes.store import Store, open_store
from tests.support.clocks import SteppingClock
from tests.support.inbox.builders import FakeMonotonic, Inbox
from tests.support.store.builders import Busy


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def store(url: str, clock: SteppingClock) -> Iterator[Store]:
    with open_store(url, clock=clock) as store:
        yield store


@pytest.fixture
def busy(store: Store) -> Iterator[Busy]:
    """What others hold while they write to the store."""
    busy = Busy(store)
    yield busy
    busy.release()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The watched folder."""
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture
def monotonic() -> FakeMonotonic:
    return FakeMonotonic()


@pytest.fixture
def inbox(
    store: Store, root: Path, clock: SteppingClock, monotonic: FakeMonotonic
) -> Iterator[Inbox]:
    inbox = Inbox(store, root, clock, monotonic)
    yield inbox
    inbox.close()
