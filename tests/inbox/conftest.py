from collections.abc import Iterator
from pathlib import Path

import pytest

from resumes.store import Store
from tests.store.conftest import clock as clock
from tests.store.conftest import store as store
from tests.support.clocks import FakeMonotonic, SteppingClock
from tests.support.inbox.builders import Inbox
from tests.support.store.builders import Busy


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
