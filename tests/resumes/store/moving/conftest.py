from collections.abc import Iterator
from pathlib import Path

import pytest

from resumes.store import Store, open_store
from tests.resumes.store.moving.builders import fill_store


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Store]:
    """A store in a file, with rows in every table."""
    with open_store(f"sqlite:///{tmp_path / 'source.db'}") as store:
        fill_store(store)
        yield store
