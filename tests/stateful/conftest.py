from pathlib import Path

import pytest

from resumes.store import accounts
from tests import engines

LEFT_OUT = engines.NAMES[1]
"""Between SQLite and the newest PostgreSQL there is nothing that these would find on it alone."""


SLICE_RESUMES = 1
"""Of a deletion: fewer than most accounts hold here, so that it may be cut off in the middle."""


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounts are deleted in several slices."""
    monkeypatch.setattr(accounts, "SLICE_RESUMES", SLICE_RESUMES)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The older PostgreSQL is left out unless it was asked for."""
    if LEFT_OUT in (config.getoption("--engine") or ()):
        return
    here = [item for item in items if item.path.parent == Path(__file__).parent]
    others = [
        item
        for item in here
        if hasattr(item, "callspec") and item.callspec.params.get("engine") == LEFT_OUT
    ]
    items[:] = [item for item in items if item not in others]
    config.hook.pytest_deselected(items=others)
