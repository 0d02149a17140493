from pathlib import Path

import pytest

from tests.support.inbox.scenes import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A home without accounts or importers."""
    return Scene(tmp_path)
