"""The figures of an installation."""

import shutil
from pathlib import Path

import pytest

from resumes.health.gauges import read_gauges
from resumes.health.slow import SlowAnswers
from resumes.store import Store, accounts, asking, importers
from resumes.store.accounts import AccountInfo
from resumes.store.creating import create
from resumes.store.ledger import FileOutcome
from resumes.store.requests import Action
from tests.resumes.builders import a_resume
from tests.resumes.store.builders import a_file, an_importer
from tests.resumes.store.conftest import SteppingClock


def test_an_empty_store(store: Store) -> None:
    gauges = read_gauges(store, SlowAnswers())

    assert gauges.size.data_bytes > 0
    assert gauges.free_bytes
    assert (gauges.accounts, gauges.resumes, gauges.live_importers) == (0, 0, 0)
    assert set(gauges.files.values()) == {0}
    assert gauges.oldest_request_s is None


def test_everything_is_counted(store: Store, account: AccountInfo, clock: SteppingClock) -> None:
    zoe = accounts.create_account(store, "zoe")
    create(store, account.id, [a_resume()])
    create(store, zoe.id, [a_resume(), a_resume(name="Grace")])
    asking.ask(store, [a_file(store, account)], Action.RETRY)
    importers.announce(store, an_importer("1" * 24, root="/srv/old", waiting=9))
    clock.advance(300)
    importers.announce(store, an_importer("2" * 24, waiting=4))
    importers.announce(store, an_importer("3" * 24, root="/srv/other", waiting=None))

    gauges = read_gauges(store, SlowAnswers())

    assert (gauges.accounts, gauges.resumes) == (2, 3)
    assert (gauges.live_importers, gauges.waiting_files) == (2, 4)
    assert (gauges.files[FileOutcome.FAILED], gauges.oldest_request_s) == (1, 300)


def test_files_that_two_importers_of_a_folder_see_are_counted_once(store: Store) -> None:
    for digit in "12":
        importers.announce(store, an_importer(digit * 24, waiting=12))

    gauges = read_gauges(store, SlowAnswers())

    assert (gauges.live_importers, gauges.waiting_files) == (2, 12)


def test_a_disk_that_cannot_be_looked_at_is_no_failure(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(shutil, "disk_usage", refuse)

    assert read_gauges(store, SlowAnswers()).free_bytes is None
