"""What the sequences of all modules share."""

import pytest

from resumes.store import accounts

SLICE_RESUMES = 1
"""Of a deletion: fewer than most accounts hold here, so that it may be cut off in the middle."""


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounts are deleted in several slices."""
    monkeypatch.setattr(accounts, "SLICE_RESUMES", SLICE_RESUMES)


@pytest.fixture
def is_seeded(pytestconfig: pytest.Config) -> bool:
    """Whether `--hypothesis-seed` was given."""
    return pytestconfig.getoption("--hypothesis-seed") is not None
