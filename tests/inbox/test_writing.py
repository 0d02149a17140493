"""Files that are still written to, and how long one waits for them (pitfalls I3 to I5)."""

import contextlib
import os
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.support.inbox.builders import Inbox, Moment, drop, during, rounds_until
from tests.support.resumes import a_document
from tests.support.waiting import open_files


@pytest.mark.parametrize(
    ("body", "modified_s"),
    [(b"{}", 0), (b"\0" * 50, 1e9), (a_document()[:-1], 4e9), (b"[]", 1), (b"7", 1)],
)
def test_what_is_no_whole_resume_is_judged_after_it_was_quiet_whatever_its_age(
    inbox: Inbox, body: bytes, modified_s: float
) -> None:
    os.utime(inbox.drop("ana/cv.json", body), (modified_s, modified_s))
    importer = inbox.importer(settle_s=5, scan_s=600)
    importer.round()
    assert importer.schedule.next_due == inbox.monotonic() + 5
    inbox.advance(4.9)
    importer.round()
    assert inbox.files == []
    inbox.advance(0.1)
    assert importer.schedule.wait_s() == 0
    importer.round()
    assert inbox.outcomes() == {"ana/cv.json": "failed"}
    assert importer.schedule.next_due is None


def test_content_that_changed_without_a_trace_in_size_and_time_is_judged_as_it_is(
    inbox: Inbox,
) -> None:
    good = a_document("in time")
    path = inbox.drop("ana/cv.json", b" " * len(good))
    before = path.stat()
    importer = inbox.importer()
    importer.round()
    path.write_bytes(good)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    inbox.advance(5)
    importer.round()
    assert inbox.names() == ["in time"]


@pytest.mark.parametrize("change", ["another size", "another time", "another file"])
def test_a_change_starts_the_time_again(inbox: Inbox, change: str) -> None:
    path = inbox.drop("ana/cv.json", b"{}")
    before = path.stat()
    importer = inbox.importer(settle_s=5)
    importer.round()
    inbox.advance(4)
    if change == "another file":
        inbox.drop(".new/cv.json", b"[]").rename(path)
    elif change == "another size":
        path.write_bytes(b"{ }")
    modified_ns = 0 if change == "another time" else before.st_mtime_ns
    os.utime(path, ns=(before.st_atime_ns, modified_ns))
    inbox.rounds(importer, 4, 1.2)
    assert inbox.files == []
    inbox.advance(1)
    importer.round()
    assert inbox.outcomes() == {"ana/cv.json": "failed"}


def test_each_file_has_a_settling_time_of_its_own(inbox: Inbox) -> None:
    importer = inbox.importer(settle_s=5)
    for name in ("first", "second", "gone"):
        path = inbox.drop(f"ana/{name}.json", b"{")
        importer.round()
        inbox.advance(2)
    path.unlink()
    inbox.advance(-1)
    importer.round()
    assert inbox.outcomes() == {"ana/first.json": "failed"}
    inbox.advance(2)
    importer.round()
    assert inbox.outcomes() == {"ana/first.json": "failed", "ana/second.json": "failed"}
    assert importer.schedule.next_due is None
    assert importer.summary().waiting == 0


@pytest.mark.parametrize(
    ("settle_s", "quiet_s"), [(0, 60), (1, 60), (5, 60), (10, 120), (3_600, 43_200)]
)
def test_i4_a_file_that_is_never_closed_is_imported_after_a_minute_and_twelve_settling_times(
    inbox: Inbox, settle_s: float, quiet_s: float
) -> None:
    importer = inbox.importer(settle_s=settle_s)
    with inbox.drop("ana/cv.json", a_document("1")).open("r+b"):
        inbox.rounds(importer, 2)
        inbox.advance(quiet_s - 0.1)
        importer.round()
        assert inbox.names() == []
        inbox.advance(1.2)
        importer.round()
        assert inbox.names() == ["1"]
        assert importer.summary().done == 1


def test_i4_quiet_before_a_write_does_not_count_for_a_file_that_is_still_open(inbox: Inbox) -> None:
    importer = inbox.importer(settle_s=1)
    with inbox.drop("ana/cv.json", a_document("1")).open("r+b", buffering=0) as writer:
        inbox.rounds(importer, 1, 61)
        writer.write(a_document("First"))
        os.utime(writer.fileno(), (0, 0))
        importer.round()
        inbox.advance(2)
        importer.round()
        assert inbox.names() == []


@pytest.mark.parametrize("change", ["append", "replace", "remove"])
def test_a_file_that_changes_while_it_is_taken_is_imported_as_it_is_in_the_end(
    inbox: Inbox, change: str
) -> None:
    path = inbox.drop("ana/cv.json", a_document("First"))
    alias = inbox.root.parent / "alias"
    os.link(path, alias)
    left = [change]

    def act() -> None:
        now = left.pop() if left else ""
        if now == "append":
            alias.write_bytes(a_document("Second"))
        elif now == "remove":
            path.unlink()
        elif now == "replace":
            inbox.drop(".new/cv.json", a_document("Second")).rename(path)

    importer = inbox.importer(observe=during(Moment.NOTED, act))
    inbox.rounds(importer, 3, 5)
    expected = [] if change == "remove" else ["Second"]
    assert inbox.names() == expected
    assert inbox.counts("done", "failed") == [len(expected), 0]
    assert importer.summary().waiting == 0


def test_i4_a_file_that_is_opened_before_its_move_is_looked_at_until_it_is_closed(
    inbox: Inbox,
) -> None:
    path = inbox.drop("ana/cv.json", a_document("First"))
    opened: list[BinaryIO] = []
    with contextlib.ExitStack() as writing:

        def open_it() -> None:
            if not opened:
                opened.append(writing.enter_context(path.open("r+b")))

        importer = inbox.importer(settle_s=0, observe=during(Moment.COMMITTED, open_it))
        inbox.rounds(importer, 3, 5)
        assert inbox.counts("done") == [1]
        assert inbox.files == []
        assert importer.schedule.awaited == ["ana/cv.json"]
        inbox.drop("ana/other.json", a_document("Other"))
        importer.round()
        assert inbox.outcomes() == {"ana/other.json": "done"}
        opened[0].write(a_document("Second"))
    inbox.advance(5)
    rounds_until(importer, lambda: inbox.names() == ["First", "Other", "Second"])
    assert inbox.counts("done") == [2]


def open_below(folder: Path) -> list[str]:
    """What this process has open there."""
    return sorted(path for path in open_files(os.getpid()) if path.startswith(str(folder)))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="asks the kernel")
def test_no_file_or_folder_stays_open(inbox: Inbox, tmp_path: Path) -> None:
    inbox.account("bo")
    importer = inbox.importer(settle_s=0)
    importer.round()
    before = open_below(tmp_path)
    drop(tmp_path / "elsewhere", "sub/cv.json")
    (inbox.root / "bo").symlink_to(tmp_path / "elsewhere")
    for number in range(3):
        inbox.drop(f"ana/sub/{number}.json", b"{" if number else b"")
    inbox.drop("ana/many.ndjson", b"{}\n")
    importer.round()
    assert open_below(tmp_path) == before
