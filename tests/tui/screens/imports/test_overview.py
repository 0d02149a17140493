"""What stands above the list, and when it is read."""

import pytest

from resumes.errors import NotFound
from resumes.store import importers
from resumes.store.engine import Store
from resumes.store.ledger import FileOutcome
from resumes.store.tallies import FileTally
from tests.resumes.store.builders import an_importer
from tests.tui.builders import an_account
from tests.tui.screens.imports.builders import WaitingClient, a_file, an_id
from tui.notices import Failure
from tui.screens.imports.overview import (
    TALLY_EVERY_S,
    TALLY_TIMES,
    Overview,
    Tallied,
    Watching,
    read_tallies,
    read_watching,
)
from tui.session import Session


class FakeMonotonic:
    """A clock that is moved by hand. Seconds."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def client() -> WaitingClient:
    return WaitingClient()


@pytest.fixture
def clock() -> FakeMonotonic:
    return FakeMonotonic()


@pytest.fixture
def overview(store: Store, client: WaitingClient, clock: FakeMonotonic) -> Overview:
    return Overview(Session(store), client, monotonic=clock)


def shown(overview: Overview) -> list[str]:
    """The lines, as they stand."""
    return [line.plain for line in overview.lines._lines]


def test_the_lines_come_as_they_are_read(overview: Overview, client: WaitingClient) -> None:
    overview.read(None)
    client.waiting["importers"][0](Watching([], "resumes up"))
    assert shown(overview)[0] == "counting…"
    client.waiting["tallies"][0](Tallied([FileTally(FileOutcome.FAILED, "x", 3)], 0.0))
    assert shown(overview)[0].startswith("✗ 3 failed")
    assert shown(overview)[1].startswith("○ No importer is running")


def test_files_are_not_counted_twice_at_once(overview: Overview, client: WaitingClient) -> None:
    overview.read(None)
    (then, _) = client.waiting.pop("tallies")
    overview.read(None)
    assert "tallies" not in client.waiting
    then(Tallied([], 0.0))


def test_importers_are_not_read_twice_at_once(overview: Overview, client: WaitingClient) -> None:
    overview.read(None)
    then, failed = client.waiting.pop("importers")
    overview.read(None)
    assert "importers" not in client.waiting

    then(Watching([], "resumes up"))
    overview.read(None)
    assert client.waiting.pop("importers")
    failed(Failure("no", "r"))
    overview.read(None)
    assert "importers" in client.waiting


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.0, TALLY_EVERY_S), (3.0, 3 * TALLY_TIMES)])
def test_the_longer_counting_takes_the_more_seldom_it_is_done(
    overview: Overview, client: WaitingClient, clock: FakeMonotonic, took_s: float, pause_s: float
) -> None:
    overview.read(None)
    client.waiting.pop("tallies")[0](Tallied([], took_s))

    clock.now_s += pause_s - 0.1
    overview.read(None)
    assert "tallies" not in client.waiting

    clock.now_s += 0.1
    overview.read(None)
    assert "tallies" in client.waiting


def test_another_account_s_files_are_counted_at_once(
    overview: Overview, client: WaitingClient
) -> None:
    overview.read(None)
    client.waiting.pop("tallies")[0](Tallied([], 3.0))
    overview.restart("ana")
    assert "tallies" in client.waiting


def test_after_a_failure_files_are_counted_again(overview: Overview, client: WaitingClient) -> None:
    overview.read(None)
    client.waiting.pop("tallies")[1](Failure("no", "r"))
    overview.read(None)
    assert "tallies" in client.waiting


def test_tallies_are_of_one_account_or_of_all(store: Store) -> None:
    an_account(store, "zoe")
    a_file(store, an_id("1"))
    a_file(store, an_id("2"), account="zoe")
    assert sum(one.files for one in read_tallies(store, account=None).tallies) == 2
    assert sum(one.files for one in read_tallies(store, account="zoe").tallies) == 1
    with pytest.raises(NotFound):
        read_tallies(store, account="nobody")


def test_the_command_that_starts_an_importer_is_this_program_s(store: Store) -> None:
    importers.announce(store, an_importer())
    watching = read_watching(store, session=Session(store, program="res --home 'a b'"))
    assert watching.start == "res --home 'a b' up"
    assert len(watching.seen) == 1
