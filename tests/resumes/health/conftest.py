"""An installation in a folder of its own, on a clock that stands still."""

import shlex
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from resumes.health.installation import Installation
from resumes.settings import Settings
from resumes.store import Store, accounts, open_store
from resumes.store.accounts import AccountInfo
from tests.resumes.store.conftest import SteppingClock
from tests.stores import make_store_file


def command_line(*words: str) -> str:
    return shlex.join(["resumes", *words])


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    tmp_path.chmod(0o700)
    return Settings(home=tmp_path)


@pytest.fixture
def store(settings: Settings, clock: SteppingClock) -> Iterator[Store]:
    url = make_store_file(settings.home / "resumes.db")
    with open_store(url, clock=clock) as store:
        yield store


@pytest.fixture
def installation(settings: Settings, store: Store) -> Installation:
    return Installation(lambda: settings, lambda: nullcontext(store), command_line)


@pytest.fixture
def account(store: Store) -> AccountInfo:
    return accounts.create_account(store, "acme")
