"""Slots: who works in a folder, and what a note says of a process that is gone."""

import errno
import fcntl
import json
import os
import stat
from pathlib import Path

import pytest

from importer import slots
from importer.claims import Claim, File
from importer.files import UNREAD, Signature
from importer.slots import Slot
from resumes.errors import InvalidArgument
from tests.support.inbox.builders import Inbox, a_full_disk

OWNER = "a" * 16


def a_claim(number: int) -> Claim:
    """A claim of a file whose name is no text."""
    source = f"ana/{number}\udcff.json"
    return Claim(f"{number:024x}", OWNER, "ana", f"ana/{number}", source)


def a_file(number: int) -> File:
    return File(a_claim(number))


def taken(root: Path, number: int = 0) -> Slot:
    slot = Slot(root, number)
    assert slot.take()
    return slot


def test_a_slot_is_one_process_s_until_it_leaves_or_is_gone(root: Path) -> None:
    first, second = taken(root), Slot(root, 0)
    assert not second.take()
    assert first.is_held
    assert taken(root, 1).is_held
    for name in ("x.lock", "2.new", "3.files", "x2.files"):
        (root / ".importer" / name).touch(mode=0o600)
    assert slots.list_numbers(root) == [0, 1, 3]
    assert {stat.S_IMODE(path.stat().st_mode) for path in root.glob(".importer/*")} == {0o600}
    first.leave()
    assert second.take()
    assert not first.is_held


def test_what_was_under_way_is_what_was_noted_and_not_ended(root: Path) -> None:
    slot = taken(root)
    files = [a_file(number) for number in range(4)]
    read = Signature(2**63, 5, -1)
    slot.note(files)
    for file in files[:3]:
        file.signature, file.digest = read, b"digest"
    slot.note(files[:3], must_last=False)
    slot.end([files[0].claim.id])
    files[1].claim = files[1].claim._replace(attempt=1, name="ana/\x1b[2J.json")
    files[1].is_begun = files[3].is_begun = True
    slot.note([files[1], files[3]])
    files[3].is_begun = False
    files[2].claim = files[2].claim._replace(items=7)
    slot.note(files[2:])
    slot.leave()

    found = taken(root).load()

    assert [file.claim.id for file in found] == [file.claim.id for file in files[1:]]
    begun, replaced, unread = found
    assert begun.claim.name == "ana/\\x1b[2J.json"
    assert (begun.is_begun, begun.claim.attempt, begun.signature) == (True, 1, read)
    assert (replaced.claim.items, replaced.digest) == (7, b"digest")
    assert (unread.is_begun, unread.claim, unread.signature) == (False, a_claim(3), UNREAD)


def test_a_line_that_was_cut_off_or_written_by_others_says_nothing(root: Path) -> None:
    slot = taken(root)
    slot.note([a_file(1)])
    slot.leave()
    note = root / ".importer" / "0.files"
    whole = note.read_bytes()
    claim = [f"{2:024x}", OWNER, "a", "a", "78", 0, 0, 0, False]
    rest: list[object] = [None, None, False]
    wrong = [
        *([*claim[:4], path.hex(), *claim[5:]] for path in (b"../x", b"a/./x", b"a//x", b"a\0x")),
        ["../../x", *claim[1:]],
        [claim[0], "../../x", *claim[2:]],
    ]
    foreign = [
        b"5",
        b'{"files": [[1, 2]]}',
        b'{"files": [["../../x"]]}',
        *(json.dumps({"files": [[one, *rest]]}).encode() for one in wrong),
        json.dumps({"files": [[claim, ["x", "1", "1"], None, False]]}).encode(),
        json.dumps({"files": [[claim, None, "x", False]]}).encode(),
        b'{"ended": [1]}',
        whole.strip()[:-9],
    ]
    note.write_bytes(whole + b"\n".join(foreign))
    slot = taken(root)
    assert [file.claim for file in slot.load()] == [a_claim(1)]
    slot.note([a_file(3)])
    slot.leave()
    assert [file.claim for file in taken(root).load()] == [a_claim(1), a_claim(3)]
    note.with_name("1.files").write_bytes(b"\n".join(foreign))
    slot = taken(root, 1)
    assert slot.load() == []
    slot.leave()
    assert slots.list_numbers(root) == [0]


def test_what_need_not_last_is_no_error_on_a_full_disk(root: Path) -> None:
    slot = taken(root)
    file = a_file(1)
    slot.note([file, a_file(2)])
    file.is_begun = True
    slot.note([file])
    with a_full_disk():
        assert not slot.end([a_claim(2).id])
        file.is_begun, file.signature = False, Signature(1, 2, 3)
        slot.note([file], must_last=False)
        with pytest.raises(OSError, match="File too large"):
            slot.note([file])
    found, _ = slot.load()
    assert (found.is_begun, found.signature) == (True, UNREAD)


def test_a_long_note_is_written_anew_with_what_is_still_under_way(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "LONG_BYTES", 10_000)
    slot = taken(root)
    first = a_file(0)
    slot.note([first])
    first.signature = Signature(1, 2, 3)
    slot.note([first], must_last=False)
    (root / ".importer" / "0.files.new").touch()  # as a kill leaves it
    for number in range(1, 500):
        slot.note([a_file(number)])
        slot.end([a_claim(number).id])
    status = (root / ".importer" / "0.files").stat()
    assert status.st_size < 20_000
    assert stat.S_IMODE(status.st_mode) == 0o600
    slot.leave()
    (found,) = taken(root).load()
    assert (found.claim, found.signature) == (a_claim(0), Signature(1, 2, 3))


def test_where_nothing_can_be_locked_the_folder_is_refused(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", fail)
        with pytest.raises(InvalidArgument, match=r"Cannot write to .*: No locks"):
            inbox.importer()
