"""What waits, and how long it takes."""

from resumes.store.importers import SeenImporter
from tests.resumes.store.builders import an_importer
from tui.screens.imports.backlog import FEW, Backlog, Outlook, last_said


class FakeMonotonic:
    """A clock that is moved by hand. Seconds."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def seen(age_s: float = 1.0) -> SeenImporter:
    return SeenImporter(an_importer(), "2027-01-15T08:00:00.000Z", age_s)


def test_nothing_is_said_while_few_files_wait() -> None:
    backlog = Backlog()
    for waiting in (0, 1, FEW - 1):
        backlog.note_waiting(waiting, "0")
        assert backlog.find_outlook() is None


def test_the_outlook_is_of_the_most_that_waited_until_none_does() -> None:
    backlog = Backlog()
    backlog.note_waiting(100, "1")
    backlog.note_waiting(4, "2")
    assert backlog.find_outlook() == Outlook(4, 100, None)
    backlog.note_waiting(0, "3")
    assert backlog.find_outlook() is None
    backlog.note_waiting(20, "4")
    assert backlog.find_outlook() == Outlook(20, 20, None)


def test_the_pace_is_that_at_which_files_come_to_their_ends() -> None:
    clock = FakeMonotonic()
    backlog = Backlog(clock)
    backlog.note_waiting(100, "5")
    backlog.note_ended(1_000)
    clock.now_s += 10
    backlog.note_ended(1_050)
    outlook = backlog.find_outlook()
    assert outlook is not None
    assert (outlook.files_per_s, outlook.left_s) == (5.0, 10.0)
    backlog.forget_pace()
    assert backlog.find_outlook() == Outlook(100, 100, None)


def test_what_ended_since_importers_spoke_does_not_wait_any_more() -> None:
    backlog = Backlog(FakeMonotonic())
    backlog.note_ended(1_000)
    for ended, waiting in ((1_000, 100), (1_060, 40)):
        backlog.note_waiting(100, "first")
        backlog.note_ended(ended)
        assert backlog.find_outlook() == Outlook(waiting, 100, None)
    backlog.note_waiting(35, "second")
    assert backlog.find_outlook() == Outlook(35, 100, None)
    backlog.note_ended(1_100)
    assert backlog.find_outlook() is None


def test_it_is_known_when_an_importer_spoke_last() -> None:
    assert last_said([seen(), seen(age_s=61)]) == "2027-01-15T08:00:00.000Z"
    assert last_said([seen(age_s=61)]) == ""
