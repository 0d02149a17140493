"""Deletions that wait until they can no longer be taken back."""

from tui.deletions import GRACE_S, Deletions


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_deletion_is_due_after_its_grace() -> None:
    clock = Clock()
    deletions = Deletions(clock)
    asked = deletions.add("ana", "1", "Mine")

    assert deletions.take_due() == []
    assert deletions.left_s(asked) == GRACE_S
    clock.now_s += GRACE_S
    assert deletions.take_due() == [asked]
    assert len(deletions) == 0


def test_asking_twice_does_not_put_it_off() -> None:
    clock = Clock()
    deletions = Deletions(clock)
    first = deletions.add("ana", "1", "Mine")
    clock.now_s += 5

    assert deletions.add("ana", "1", "Mine") is first
    assert len(deletions) == 1


def test_undo_takes_back_the_newest() -> None:
    deletions = Deletions(Clock())
    deletions.add("ana", "1", "First")
    deletions.add("ana", "2", "Second")

    undone = deletions.undo()

    assert undone is not None
    assert undone.title == "Second"
    assert "1" in deletions
    assert "2" not in deletions
    assert [one.title for one in deletions] == ["First"]


def test_there_may_be_nothing_to_undo() -> None:
    assert Deletions(Clock()).undo() is None


def test_time_in_which_nobody_could_undo_does_not_count() -> None:
    clock = Clock()
    deletions = Deletions(clock)
    deletions.add("ana", "1", "Mine")
    clock.now_s += 60  # stopped, as by Ctrl+Z

    deletions.put_off()

    assert deletions.take_due() == []
    assert [deletions.left_s(one) for one in deletions] == [GRACE_S]
