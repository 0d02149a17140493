import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from importer.health import Health
from importer.presence import BEAT_S, Presence
from importer.rounds import Importer
from resumes.errors import StoreUnavailable
from resumes.store import Store, importers
from resumes.store.accounts import AccountInfo
from resumes.store.importers import SeenImporter, State
from tests.importer.builders import FakeMonotonic, MakeImporter, drop
from tests.resumes.store.builders import Busy
from tests.resumes.store.conftest import SteppingClock

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


@pytest.fixture
def health() -> Health:
    return Health(lambda finding: None)


@pytest.fixture
def importer(an_importer: MakeImporter) -> Importer:
    return an_importer()


@pytest.fixture
def presence(
    store: Store, root: Path, importer: Importer, health: Health, monotonic: FakeMonotonic
) -> Presence:
    return Presence(store, root, importer, health, monotonic=monotonic)


def the_row(store: Store) -> SeenImporter:
    (row,) = importers.list_importers(store)
    return row


def test_an_importer_is_listed_for_as_long_as_it_runs(
    store: Store, root: Path, importer: Importer, presence: Presence
) -> None:
    with presence:
        row = the_row(store).importer
        assert (row.id, row.root) == (importer.id, str(root))
        assert (row.host, row.pid) == (socket.gethostname(), os.getpid())
        assert (row.state, row.findings) == (State.OK, ())
    assert importers.list_importers(store) == []


def test_the_row_is_written_anew_when_it_is_time(
    store: Store, presence: Presence, clock: SteppingClock, monotonic: FakeMonotonic
) -> None:
    with presence:
        clock.advance(BEAT_S)
        presence.beat()
        assert the_row(store).age_s == BEAT_S
        monotonic.advance(BEAT_S)
        presence.beat()
        assert the_row(store).age_s == 0


def test_a_change_of_health_is_announced_at_once(
    store: Store, presence: Presence, health: Health
) -> None:
    with presence:
        health.polling("polling", "Events do not come")
        presence.beat()
        row = the_row(store).importer
        assert row.state is State.POLLING
        assert [(one.key, one.sentence) for one in row.findings] == [
            ("polling", "Events do not come")
        ]
        health.ok("polling")
        presence.beat()
        assert the_row(store).importer.state is State.OK


def test_what_waits_is_announced(
    store: Store,
    root: Path,
    importer: Importer,
    presence: Presence,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
) -> None:
    an_account()
    drop(root, "ana/cut.json", b"{")
    with presence:
        assert the_row(store).importer.waiting == 0
        importer.round()
        monotonic.advance(BEAT_S)
        presence.beat()
        assert the_row(store).importer.waiting == 1


def test_it_is_announced_later_when_the_store_is_out_of_reach(
    store: Store,
    presence: Presence,
    busy: Busy,
    monkeypatch: pytest.MonkeyPatch,
    monotonic: FakeMonotonic,
) -> None:
    monkeypatch.setattr("importer.presence.DEADLINE_S", 0.05)
    with busy.held():
        presence.beat()
    assert importers.list_importers(store) == []
    monotonic.advance(BEAT_S)
    with presence:
        assert len(importers.list_importers(store)) == 1
        with busy.held():
            monotonic.advance(BEAT_S)
            presence.beat()


def test_it_is_not_tried_more_often_while_the_store_is_out_of_reach(
    presence: Presence,
    busy: Busy,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("importer.presence.DEADLINE_S", 0.02)
    caplog.set_level("INFO", "resumes.importer")
    with busy.held():
        for _ in range(5):
            presence.beat()
    (record,) = caplog.records
    assert record.exc_info is None


def test_the_end_does_not_fail_for_want_of_the_store(
    presence: Presence, busy: Busy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importer.presence.DEADLINE_S", 0.05)
    with presence:
        busy.acquire()


def test_an_error_of_the_importer_is_not_hidden(store: Store, presence: Presence) -> None:
    with pytest.raises(StoreUnavailable), presence:
        raise StoreUnavailable("gone")
    assert importers.list_importers(store) == []
