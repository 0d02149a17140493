"""What every test gets, whether it asks or not."""

import logging
import os
import re
from collections.abc import Iterator
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


PRIVATE = re.compile("enh_live_[A-Za-z0-9]{64}|ada@example.com")
"""What no log may hold: a whole key, and the address that the tests' resumes bear."""


@pytest.fixture(autouse=True)
def _logs_hold_nothing_private(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No test makes anything log a key or an address in this process."""
    yield
    lines = map(logging.Formatter().format, caplog.get_records("call"))
    assert not [line for line in lines if PRIVATE.search(line)]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout that the tests are run from."""
    return Path(__file__).parent.parent
