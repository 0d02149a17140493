from importer.reading import Signature
from importer.settling import Settling
from tests.importer.builders import FakeMonotonic

FIRST, SECOND = Signature(1, 2, 3), Signature(1, 4, 3)


def test_a_file_is_quiet_after_the_settling_time(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    assert not settling.is_quiet("a", FIRST)
    monotonic.advance(4.9)
    assert not settling.is_quiet("a", FIRST)
    monotonic.advance(0.2)
    assert settling.is_quiet("a", FIRST)


def test_a_change_starts_the_time_again(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    settling.is_quiet("a", FIRST)
    monotonic.advance(4)
    assert not settling.is_quiet("a", SECOND)
    monotonic.advance(4)
    assert not settling.is_quiet("a", SECOND)
    monotonic.advance(1)
    assert settling.is_quiet("a", SECOND)


def test_without_a_settling_time_everything_is_quiet(monotonic: FakeMonotonic) -> None:
    assert Settling(0, monotonic).is_quiet("a", FIRST)


def test_a_file_is_looked_at_when_new_changed_or_due(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    assert settling.is_due("a", FIRST)
    settling.is_quiet("a", FIRST)
    assert not settling.is_due("a", FIRST)
    assert settling.is_due("a", SECOND)
    assert settling.next_due() == monotonic() + 5
    monotonic.advance(5)
    assert settling.is_due("a", FIRST)


def test_a_file_at_rest_is_not_looked_at_before_it_changes(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    settling.rest("a", FIRST)
    monotonic.advance(1_000_000)
    assert not settling.is_due("a", FIRST)
    assert settling.is_due("a", SECOND)
    assert settling.next_due() is None
    assert settling.resting() == 1


def test_nobody_waits_for_a_file_that_cannot_be_taken(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    settling.leave("a", FIRST)
    assert settling.next_due() is None
    monotonic.advance(5)
    assert settling.is_due("a", FIRST)


def test_files_that_are_gone_are_forgotten_after_a_complete_round(
    monotonic: FakeMonotonic,
) -> None:
    settling = Settling(5, monotonic)
    for path in ("a", "b", "c"):
        settling.is_quiet(path, FIRST)
    settling.forget("c")
    settling.end_round(is_complete=True)
    settling.is_due("a", FIRST)
    settling.end_round(is_complete=False)
    assert not settling.is_due("b", FIRST)
    settling.end_round(is_complete=True)
    settling.is_due("a", FIRST)
    settling.end_round(is_complete=True)
    assert settling.is_due("b", FIRST)
    assert not settling.is_due("a", FIRST)
