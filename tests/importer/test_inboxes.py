import os
from pathlib import Path

import pytest

from importer import inboxes
from importer.inboxes import SPARE_PLACES, Inbox
from importer.rhythm import Rhythm
from importer.settling import Settling
from resumes.store.accounts import AccountInfo
from tests.importer.builders import FakeMonotonic, drop

SCAN_S = 2.0


def an_owner(*, max_resumes: int | None = None, resume_count: int = 0) -> AccountInfo:
    return AccountInfo(
        id="a" * 16,
        name="ana",
        plan="any",
        created_at="2027-01-15T08:00:00.000Z",
        resume_count=resume_count,
        max_resumes=max_resumes,
        api_listing=True,
    )


@pytest.fixture
def inbox(root: Path, monotonic: FakeMonotonic) -> Inbox:
    """The inbox of ana, who has room for any number of resumes."""
    (root / "ana").mkdir()
    made = Inbox(
        str(root / "ana"),
        "ana",
        settling=Settling(5, monotonic),
        rhythm=Rhythm(SCAN_S, monotonic=monotonic),
        monotonic=monotonic,
        remark=lambda key, sentence: None,
    )
    made.account = an_owner()
    return made


def drop_aged(root: Path, *names: str) -> None:
    """Files in ana's inbox, the oldest first."""
    for age, name in enumerate(names):
        os.utime(drop(root, f"ana/{name}"), ns=(age, age))


def take_all(inbox: Inbox) -> list[str]:
    """The names of all files that are to be tried, in order."""
    names = []
    while (seen := inbox.take()) is not None:
        names.append(seen.name.removeprefix("ana/"))
    return names


def test_a_look_finds_what_is_to_be_tried_the_oldest_first(inbox: Inbox, root: Path) -> None:
    drop_aged(root, "c.json", "deep/a.json", "b.json", "notes.txt")
    inbox.look_whole()
    assert (inbox.waiting, inbox.ignored) == (3, 1)
    assert inbox.waiting_bytes == sum(path.stat().st_size for path in root.rglob("*.json"))
    assert take_all(inbox) == ["c.json", "deep/a.json", "b.json"]
    assert (inbox.waiting, inbox.waiting_bytes) == (0, 0)


def test_nobody_tries_files_that_nobody_owns(inbox: Inbox, root: Path) -> None:
    inbox.account = None
    drop(root, "ana/1.json")
    inbox.look_whole()
    assert inbox.waiting == 1
    assert inbox.take() is None


def test_a_file_that_settles_is_tried_again_when_it_is_time(
    inbox: Inbox, root: Path, monotonic: FakeMonotonic
) -> None:
    drop(root, "ana/1.json")
    inbox.look_whole()
    seen = inbox.take()
    assert seen is not None
    assert seen.signature is not None
    inbox.land(seen.path)
    inbox.note_left(seen.signature.size_bytes)
    inbox.settling.note(seen.path, seen.signature)
    assert (inbox.waiting, inbox.waiting_bytes) == (1, seen.signature.size_bytes)
    inbox.look_whole()
    assert take_all(inbox) == []
    monotonic.advance(5)
    inbox.wake_due()
    assert inbox.wants_look
    inbox.look_whole()
    assert take_all(inbox) == ["1.json"]


def test_a_file_that_is_being_tried_is_not_tried_twice(inbox: Inbox, root: Path) -> None:
    path = drop(root, "ana/1.json")
    inbox.look_whole()
    assert take_all(inbox) == ["1.json"]
    inbox.look_whole()
    assert take_all(inbox) == []
    inbox.land(str(path))
    inbox.look_whole()
    assert take_all(inbox) == ["1.json"]


def test_a_look_at_many_names_gives_others_their_turn(
    inbox: Inbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inboxes, "SLICE_FILES", 3)
    drop_aged(root, *(f"{number}.json" for number in range(7)))
    states = []
    for _ in range(3):
        inbox.look()
        states.append((inbox.is_looking, inbox.next_due_s(), inbox.found, len(take_all(inbox))))
    assert states == [(True, 0, 2, 0), (True, 0, 5, 0), (False, 0, 0, 7)]


def test_of_more_than_fit_in_memory_the_oldest_come_first_and_the_rest_soon(
    inbox: Inbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inboxes, "QUEUE_FILES", 2)
    drop_aged(root, *(f"{number}.json" for number in (5, 1, 4, 2, 3)))
    tried = []
    for _ in range(3):
        assert inbox.wants_look
        inbox.look_whole()
        assert len(inbox.queue) <= 2
        for name in take_all(inbox):
            tried.append(name)
            (root / "ana" / name).unlink()
    assert tried == ["5.json", "1.json", "4.json", "2.json", "3.json"]
    assert not inbox.wants_look


def test_the_next_look_is_not_before_everything_found_was_tried(
    inbox: Inbox, root: Path, monotonic: FakeMonotonic
) -> None:
    drop_aged(root, "1.json", "2.json")
    inbox.look_whole()
    monotonic.advance(SCAN_S)
    assert not inbox.wants_look
    assert inbox.next_due_s() == 0
    take_all(inbox)
    assert inbox.wants_look


def test_there_is_nothing_to_do_before_the_next_look_or_the_first_file_that_is_due(
    inbox: Inbox, root: Path, monotonic: FakeMonotonic
) -> None:
    path = drop(root, "ana/1.json")
    inbox.look_whole()
    seen = inbox.take()
    assert seen is not None
    assert seen.signature is not None
    assert inbox.next_due_s() == SCAN_S
    inbox.settling.note(str(path), seen.signature, again_s=0.5)
    assert inbox.next_due_s() == 0.5
    monotonic.advance(0.5)
    assert inbox.next_due_s() == 0


def test_a_blocked_inbox_gives_nothing_until_the_next_look(inbox: Inbox, root: Path) -> None:
    drop_aged(root, "1.json", "2.json")
    inbox.look_whole()
    inbox.block()
    assert inbox.take() is None
    assert inbox.next_due_s() == SCAN_S
    inbox.look_whole()
    assert take_all(inbox) == ["1.json", "2.json"]


def test_an_account_is_nearly_full_when_what_waits_may_not_fit(inbox: Inbox, root: Path) -> None:
    drop_aged(root, "1.json", "2.json", "3.json")
    inbox.look_whole()
    inbox.take()
    assert not inbox.is_nearly_full
    inbox.account = an_owner(max_resumes=SPARE_PLACES + 13, resume_count=10)
    assert not inbox.is_nearly_full
    inbox.account = an_owner(max_resumes=SPARE_PLACES + 12, resume_count=10)
    assert inbox.is_nearly_full


def test_a_backlog_is_not_listened_to_and_is_looked_through_again_once_it_is_taken(
    inbox: Inbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inboxes, "BACKLOG_FILES", 3)
    drop_aged(root, "1.json", "2.json", "3.json")
    inbox.look_whole()
    floods = [inbox.is_flooded]
    assert inbox.rhythm.until_scan_s() == SCAN_S
    assert take_all(inbox) == ["1.json", "2.json", "3.json"]
    assert inbox.rhythm.until_scan_s() == 0
    (root / "ana" / "1.json").unlink()
    inbox.look_whole()
    assert [*floods, inbox.is_flooded] == [True, False]
