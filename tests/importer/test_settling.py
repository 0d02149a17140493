import math

from importer.reading import Signature
from importer.settling import SOON_S, Settling
from tests.importer.builders import FakeMonotonic

FIRST, SECOND = Signature(1, 2, 3), Signature(1, 4, 3)


def known_for_s(settling: Settling, path: str = "a") -> float:
    known = settling.find_known(path)
    assert known is not None
    return known.for_s


def test_how_long_a_file_is_quiet_counts_from_when_its_signature_was_first_seen(
    monotonic: FakeMonotonic,
) -> None:
    settling = Settling(5, monotonic)
    assert settling.find_known("a") is None
    settling.note("a", FIRST)
    monotonic.advance(3)
    settling.note("a", FIRST)
    monotonic.advance(1)
    assert settling.find_known("a") == (FIRST, 4)


def test_what_is_waited_for_is_told_from_what_cannot_be_taken(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    settling.note("a", FIRST)
    settling.leave("b", FIRST, again_s=5)
    settling.rest("c", FIRST)
    assert settling.awaited() == ["a"]
    assert settling.left() == 1
    settling.forget("b")
    assert settling.left() == 0


def test_a_change_starts_the_time_again(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    settling.note("a", FIRST)
    monotonic.advance(4)
    settling.note("a", SECOND)
    assert known_for_s(settling) == 0
    assert settling.next_due() == monotonic() + 5


def test_a_file_is_looked_at_when_new_changed_or_due(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    assert settling.is_due("a", FIRST)
    settling.note("a", FIRST)
    assert not settling.is_due("a", FIRST)
    assert settling.is_due("a", SECOND)
    assert settling.is_due("a", None)
    assert settling.next_due() == monotonic() + 5
    monotonic.advance(5)
    assert settling.is_due("a", FIRST)


def test_a_file_that_was_quiet_and_could_not_be_judged_is_due_after_another_settling_time(
    monotonic: FakeMonotonic,
) -> None:
    settling = Settling(5, monotonic)
    settling.note("a", FIRST)
    monotonic.advance(6)
    settling.note("a", FIRST)
    assert settling.next_due() == monotonic() + 5
    at_once = Settling(0, monotonic)
    at_once.note("a", FIRST)
    assert at_once.next_due() == monotonic() + SOON_S


def test_a_file_can_be_due_sooner(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    settling.note("a", FIRST, again_s=1)
    settling.note("b", FIRST)
    assert settling.next_due() == monotonic() + 1
    monotonic.advance(1)
    assert settling.is_due("a", FIRST)
    assert not settling.is_due("b", FIRST)


def test_a_file_at_rest_is_not_looked_at_before_it_changes(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    settling.rest("a", FIRST)
    monotonic.advance(1_000_000)
    assert not settling.is_due("a", FIRST)
    assert settling.is_due("a", SECOND)
    assert settling.next_due() is None
    assert settling.next_try() == math.inf
    assert settling.resting() == 1


def test_nobody_waits_for_a_file_that_cannot_be_taken_and_it_is_tried_again(
    monotonic: FakeMonotonic,
) -> None:
    settling = Settling(5, monotonic)
    settling.leave("a", FIRST, again_s=7)
    assert settling.next_due() is None
    assert settling.next_try() == monotonic() + 7
    assert settling.resting() == 0
    monotonic.advance(7)
    assert settling.is_due("a", FIRST)


def test_that_a_file_became_due_is_said_once(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    assert not settling.take_due()
    settling.note("a", FIRST)
    settling.note("b", FIRST, again_s=7)
    assert not settling.take_due()
    monotonic.advance(5)
    assert settling.take_due()
    assert not settling.take_due()
    assert settling.next_try() == monotonic() + 2


def test_files_that_a_look_did_not_see_are_forgotten(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    for path in ("seen", "gone", "taken"):
        settling.note(path, FIRST)
    settling.forget("taken")
    assert settling.find_known("taken") is None
    settling.end_round()
    settling.is_due("seen", FIRST)
    assert settling.find_known("gone") is not None
    settling.end_round()
    assert settling.find_known("gone") is None
    assert settling.find_known("seen") is not None


def test_a_file_that_is_noted_again_is_due_when_it_would_have_been(
    monotonic: FakeMonotonic,
) -> None:
    settling = Settling(5, monotonic)
    began_s = monotonic()
    settling.note("a", FIRST)
    monotonic.advance(3)
    settling.note("a", FIRST)
    assert settling.next_due() == settling.next_try() == began_s + 5


def test_a_file_that_cannot_be_taken_is_looked_at_before_its_time_only_if_it_changed(
    monotonic: FakeMonotonic,
) -> None:
    settling = Settling(5, monotonic)
    settling.leave("a", FIRST, again_s=7)
    assert not settling.is_due("a", FIRST)
    assert settling.is_due("a", SECOND)
    assert settling.find_known("a") == (FIRST, 0)


def test_forgetting_a_file_that_is_not_known_changes_nothing(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    settling.note("a", FIRST)
    settling.forget("b")
    assert settling.find_known("a") == (FIRST, 0)


def test_nothing_is_due_any_more_when_all_files_were(monotonic: FakeMonotonic) -> None:
    settling = Settling(5, monotonic)
    settling.note("a", FIRST)
    monotonic.advance(5)
    assert settling.take_due()
    assert settling.next_try() == math.inf
    assert not settling.take_due()
    settling.note("b", FIRST, again_s=1)
    assert settling.next_try() == monotonic() + 1


def test_files_are_forgotten_in_any_round_in_which_they_were_not_seen(
    monotonic: FakeMonotonic,
) -> None:
    settling = Settling(5, monotonic)
    settling.note("seen", FIRST)
    settling.note("gone", FIRST)
    for _ in range(4):
        settling.is_due("seen", FIRST)
        settling.is_due("gone", FIRST)
        settling.end_round()
    settling.is_due("seen", FIRST)
    settling.end_round()
    assert settling.find_known("gone") is None
    assert settling.find_known("seen") is not None
