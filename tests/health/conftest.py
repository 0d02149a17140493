"""An installation in a folder of its own, on a clock that stands still."""

import os
import pwd
import shlex
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from resumes.health import checks
from resumes.health.findings import Finding, Installation
from resumes.settings import Settings
from resumes.store import Store, accounts, open_store
from resumes.store.accounts import AccountInfo
from tests.support.clocks import SteppingClock
from tests.support.stores import make_store_file

MY_NAME = pwd.getpwuid(os.getuid()).pw_name


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
    with open_store(make_store_file(settings.home / "resumes.db"), clock=clock) as store:
        yield store


@pytest.fixture
def installation(settings: Settings, store: Store) -> Installation:
    return Installation(lambda: settings, lambda: nullcontext(store), command_line)


@pytest.fixture
def account(store: Store) -> AccountInfo:
    return accounts.create_account(store, "acme")


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    return inbox


def find(installation: Installation, subject: str) -> list[Finding]:
    """All that is found of a subject."""
    return [one for one in checks.iter_findings(installation) if one.subject == subject]


def write(store: Store, statement: Any) -> None:
    store.write(lambda connection: connection.execute(statement))


def opening(settings: Settings) -> Installation:
    """An installation whose store is opened when somebody looks."""
    return Installation(
        lambda: settings, lambda: open_store(settings.database_url, upgrade=False), command_line
    )
