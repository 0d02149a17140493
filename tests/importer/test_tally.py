from importer.tally import Tally
from importer.telling import FileReport
from resumes.store.ledger import FileOutcome


def a_report(outcome: FileOutcome, claim_id: str = "1" * 24) -> FileReport:
    return FileReport("ana", "ana/cv.json", outcome, None, None, "", None, 0, claim_id)


def test_each_file_counts_under_its_outcome() -> None:
    tally = Tally()
    tally.add(a_report(FileOutcome.DONE, "1" * 24))
    tally.add(a_report(FileOutcome.DONE, "2" * 24))
    tally.add(a_report(FileOutcome.FAILED, "3" * 24))
    assert (tally[FileOutcome.DONE], tally[FileOutcome.FAILED]) == (2, 1)
    assert tally.filed == 3


def test_a_held_file_that_was_released_counts_where_it_ended() -> None:
    tally = Tally()
    tally.add(a_report(FileOutcome.HELD))
    tally.add(a_report(FileOutcome.HELD))
    assert tally[FileOutcome.HELD] == 1
    tally.add(a_report(FileOutcome.DONE))
    assert (tally[FileOutcome.HELD], tally[FileOutcome.DONE]) == (0, 1)


def test_a_file_that_an_earlier_importer_held_adds_to_its_end_alone() -> None:
    tally = Tally()
    tally.add(a_report(FileOutcome.DONE))
    assert (tally[FileOutcome.HELD], tally[FileOutcome.DONE]) == (0, 1)
