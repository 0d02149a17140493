from importer.telling import Remarks, Summary


def test_a_thing_is_told_once_until_it_is_over() -> None:
    told: list[str] = []
    remarks = Remarks(told.append)
    remarks("a", "first")
    remarks("a", "again")
    assert remarks.has_told("a")
    assert remarks.over("a")
    assert not remarks.over("a")
    remarks("a", "anew")
    remarks.tell("whatever")
    assert told == ["first", "anew", "whatever"]


def test_a_summary_begins_at_nothing() -> None:
    assert Summary() == Summary(done=0, failed=0, duplicate=0, held=0, ignored=0, waiting=0)
