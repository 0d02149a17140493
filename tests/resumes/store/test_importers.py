import dataclasses

import pytest

from resumes.store import Store, importers
from resumes.store.importers import Finding, SeenImporter, State, count_waiting
from tests.resumes.store.builders import an_importer
from tests.resumes.store.conftest import SteppingClock

pytestmark = pytest.mark.engines


def listed(store: Store) -> list[str]:
    """The first digit of the ids of the importers."""
    return [seen.importer.id[0] for seen in importers.list_importers(store)]


def test_an_importer_is_listed_as_it_says(store: Store) -> None:
    findings = (Finding("events", State.POLLING, "The folder tells of no changes."),)
    importer = an_importer(state=State.POLLING, findings=findings)
    importers.announce(store, importer)
    (seen,) = importers.list_importers(store)
    assert seen.importer == importer
    assert (seen.seen_at, seen.age_s, seen.is_live) == ("2027-01-15T08:00:00.000Z", 0, True)


def test_an_importer_is_listed_once_as_it_was_last(store: Store, clock: SteppingClock) -> None:
    importers.announce(store, an_importer(state=State.DEGRADED))
    clock.advance(10)
    now = dataclasses.replace(an_importer(), waiting=None)
    importers.announce(store, now)
    (seen,) = importers.list_importers(store)
    assert (seen.importer, seen.seen_at) == (now, "2027-01-15T08:00:10.000Z")


def test_an_importer_that_says_nothing_for_a_minute_is_not_live(
    store: Store, clock: SteppingClock
) -> None:
    importers.announce(store, an_importer())
    clock.advance(59)
    assert importers.list_importers(store)[0].is_live
    clock.advance(1)
    (seen,) = importers.list_importers(store)
    assert (seen.age_s, seen.is_live) == (60, False)


def test_an_importer_is_live_though_the_clock_was_set_back(
    store: Store, clock: SteppingClock
) -> None:
    importers.announce(store, an_importer())
    clock.advance(-3_600)
    (seen,) = importers.list_importers(store)
    assert (seen.age_s, seen.is_live) == (0, True)


def test_an_importer_that_spoke_by_a_clock_a_day_ahead_is_forgotten(
    store: Store, clock: SteppingClock
) -> None:
    importers.announce(store, an_importer("1" * 24))
    clock.advance(-24 * 3_600)
    assert listed(store) == ["1"]
    clock.advance(-1)
    assert listed(store) == []
    importers.announce(store, an_importer("2" * 24))
    clock.advance(3_600)
    assert listed(store) == ["2"]


def test_an_importer_that_leaves_is_gone(store: Store) -> None:
    importers.announce(store, an_importer("1" * 24))
    importers.announce(store, an_importer("2" * 24))
    importers.leave(store, "1" * 24)
    importers.leave(store, "3" * 24)
    assert listed(store) == ["2"]


def test_after_a_day_without_a_word_an_importer_is_forgotten(
    store: Store, clock: SteppingClock
) -> None:
    importers.announce(store, an_importer("1" * 24))
    clock.advance(24 * 3_600)
    assert listed(store) == ["1"]
    clock.advance(1)
    assert listed(store) == []
    importers.announce(store, an_importer("2" * 24))
    clock.advance(-3_600)
    assert listed(store) == ["2"]


def test_importers_are_listed_by_folder_the_last_seen_first(
    store: Store, clock: SteppingClock
) -> None:
    for importer_id, root in (("1" * 24, "/b"), ("2" * 24, "/a"), ("3" * 24, "/b")):
        importers.announce(store, an_importer(importer_id, root=root))
        clock.advance(1)
    assert listed(store) == ["2", "3", "1"]


def seen(root: str = "/srv/inbox", waiting: int | None = 3, age_s: float = 1.0) -> SeenImporter:
    return SeenImporter(an_importer(root=root, waiting=waiting), "2027-01-15T08:00:00.000Z", age_s)


def test_importers_of_one_folder_see_the_same_files() -> None:
    assert count_waiting([seen(waiting=3), seen(waiting=5), seen("/srv/other", 2)]) == 7


def test_what_a_silent_importer_saw_does_not_count() -> None:
    assert count_waiting([seen(age_s=61), seen("/srv/other", None)]) == 0
