import pytest

from importer.rhythm import FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S, BackOff, Rhythm
from tests.importer.builders import FakeMonotonic


@pytest.fixture
def rhythm(monotonic: FakeMonotonic) -> Rhythm:
    return Rhythm(2.0, monotonic=monotonic)


def test_the_first_scan_is_due_at_once(rhythm: Rhythm) -> None:
    assert rhythm.is_scan_due
    assert rhythm.until_scan_s() == 0


def test_the_next_scan_is_due_after_the_interval(rhythm: Rhythm, monotonic: FakeMonotonic) -> None:
    rhythm.scanned(0.01)
    assert not rhythm.is_scan_due
    assert rhythm.until_scan_s() == 2.0
    monotonic.advance(2)
    assert rhythm.is_scan_due


def test_a_long_scan_is_repeated_after_ten_times_its_length(rhythm: Rhythm) -> None:
    rhythm.scanned(3)
    assert rhythm.until_scan_s() == 30


def test_an_event_asks_for_a_scan_at_once_but_not_without_a_pause(
    rhythm: Rhythm, monotonic: FakeMonotonic
) -> None:
    rhythm.scanned(0.5)
    assert rhythm.until_earliest_s() == 1.0
    rhythm.ask()
    assert rhythm.until_scan_s() == 1.0
    rhythm.ask(monotonic() + 1.5)
    assert rhythm.until_scan_s() == 1.0
    monotonic.advance(1)
    assert rhythm.is_scan_due
    assert rhythm.until_earliest_s() == 0


def test_a_scan_can_be_asked_for_at_a_time(rhythm: Rhythm, monotonic: FakeMonotonic) -> None:
    rhythm.scanned(0.01)
    rhythm.ask(monotonic() + 1.5)
    assert rhythm.until_scan_s() == 1.5


def test_a_scan_that_is_forced_does_not_wait_for_the_pause(rhythm: Rhythm) -> None:
    rhythm.scanned(60)
    rhythm.force()
    assert rhythm.is_scan_due
    assert rhythm.until_earliest_s() == 0


def a_back_off(monotonic: FakeMonotonic, random: float = 1.0) -> BackOff:
    return BackOff(monotonic=monotonic, random=lambda: random)


def test_nothing_is_held_back_before_something_failed(monotonic: FakeMonotonic) -> None:
    back_off = a_back_off(monotonic)
    assert (back_off.failures, back_off.left_s()) == (0, 0)


def test_failures_back_off_longer_each_time_up_to_a_limit(monotonic: FakeMonotonic) -> None:
    back_off = a_back_off(monotonic)
    pauses = []
    for _ in range(10):
        back_off.failed()
        pauses.append(back_off.left_s())
    assert pauses[:3] == [FIRST_BACK_OFF_S, 2 * FIRST_BACK_OFF_S, 4 * FIRST_BACK_OFF_S]
    assert pauses[-1] == LONGEST_BACK_OFF_S
    assert back_off.failures == 10
    monotonic.advance(LONGEST_BACK_OFF_S)
    assert back_off.left_s() == 0


def test_after_a_success_the_next_failure_is_the_first_again(monotonic: FakeMonotonic) -> None:
    back_off = a_back_off(monotonic)
    back_off.failed()
    back_off.failed()
    back_off.succeeded()
    assert (back_off.failures, back_off.left_s()) == (0, 0)
    back_off.failed()
    assert back_off.left_s() == FIRST_BACK_OFF_S


def test_importers_do_not_come_back_all_at_once(monotonic: FakeMonotonic) -> None:
    back_off = a_back_off(monotonic, random=0.0)
    back_off.failed()
    assert back_off.left_s() == FIRST_BACK_OFF_S / 2
