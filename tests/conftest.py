"""What every test gets, whether it asks or not."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _shielded(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the developer's own home, settings or working directory."""
    for name in [name for name in os.environ if name.startswith(("RESUMES_", "XDG_"))]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout that the tests are run from."""
    return Path(__file__).parent.parent
