from importer.rhythm import FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S, Rhythm
from tests.importer.builders import FakeMonotonic


def a_rhythm(monotonic: FakeMonotonic, random: float = 1.0) -> Rhythm:
    return Rhythm(2.0, monotonic=monotonic, random=lambda: random)


def test_the_first_scan_is_due_at_once(monotonic: FakeMonotonic) -> None:
    assert a_rhythm(monotonic).is_scan_due


def test_the_next_scan_is_due_after_the_interval(monotonic: FakeMonotonic) -> None:
    rhythm = a_rhythm(monotonic)
    rhythm.scanned(0.01)
    assert not rhythm.is_scan_due
    assert rhythm.until_scan_s() == 2.0
    monotonic.advance(2)
    assert rhythm.is_scan_due


def test_a_long_scan_is_repeated_after_ten_times_its_length(monotonic: FakeMonotonic) -> None:
    rhythm = a_rhythm(monotonic)
    rhythm.scanned(3)
    assert rhythm.until_scan_s() == 30


def test_an_event_asks_for_a_scan_at_once_but_not_without_a_pause(
    monotonic: FakeMonotonic,
) -> None:
    rhythm = a_rhythm(monotonic)
    rhythm.scanned(0.5)
    rhythm.ask()
    assert rhythm.until_scan_s() == 1.0
    rhythm.ask(monotonic() + 1.5)
    assert rhythm.until_scan_s() == 1.0


def test_failures_back_off_longer_each_time_up_to_a_limit(monotonic: FakeMonotonic) -> None:
    rhythm = a_rhythm(monotonic)
    pauses = []
    for _ in range(10):
        rhythm.failed()
        rhythm.ask()
        pauses.append(rhythm.until_scan_s())
    assert pauses[:3] == [FIRST_BACK_OFF_S, 2 * FIRST_BACK_OFF_S, 4 * FIRST_BACK_OFF_S]
    assert pauses[-1] == LONGEST_BACK_OFF_S
    rhythm.succeeded()
    rhythm.failed()
    assert rhythm.until_scan_s() == FIRST_BACK_OFF_S


def test_importers_do_not_come_back_all_at_once(monotonic: FakeMonotonic) -> None:
    rhythm = a_rhythm(monotonic, random=0.0)
    rhythm.failed()
    assert rhythm.until_scan_s() == FIRST_BACK_OFF_S / 2
