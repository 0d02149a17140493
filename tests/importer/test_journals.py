import contextlib
import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from importer import journals
from importer.claims import Claim
from importer.journals import Entry
from importer.names import escaped
from tests.importer.builders import AN_ID, a_full_disk, a_work_claim, names_below

A_CLAIM_ID = st.text("0123456789abcdef", min_size=24, max_size=24)
SOME_TEXT = st.text(max_size=30).map(escaped)
SOME_BYTES = st.lists(st.integers(1, 255), max_size=30).map(bytes)
A_NUMBER = st.integers(0, 2**53)


@st.composite
def some_claims(draw: st.DrawFn) -> list[Claim]:
    """Claims of several accounts, in a workspace that is yet to be named."""
    return [
        Claim(
            id=claim_id,
            folder=draw(st.sampled_from(["a" * 16, "b" * 16])),
            account=draw(SOME_TEXT),
            name=draw(SOME_TEXT),
            name_hex=draw(SOME_BYTES).hex(),
            claimed_at_us=draw(A_NUMBER),
            attempt=draw(A_NUMBER),
            items=draw(A_NUMBER),
            reports=tuple(draw(st.lists(SOME_TEXT, max_size=3))),
        )
        for claim_id in draw(st.lists(A_CLAIM_ID, min_size=1, max_size=5, unique=True))
    ]


@settings(max_examples=50, deadline=None)
@given(claims=some_claims())
def test_claims_are_found_again_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, claims: list[Claim]
) -> None:
    workspace = tmp_path_factory.mktemp("workspace")
    claims = [claim._replace(folder=f"{workspace}/{claim.folder}") for claim in claims]
    journals.write(workspace, claims)
    entries, unread = journals.load(workspace)
    assert [entry.claim for entry in entries.values()] == claims
    assert [entry.claim for entry in unread] == claims


@pytest.fixture
def claim(tmp_path: Path) -> Claim:
    return a_work_claim(tmp_path / AN_ID)


def the_entry(workspace: Path) -> Entry:
    """The one entry of all journals."""
    (entry,) = journals.load(workspace)[0].values()
    return entry


def test_of_lines_on_one_claim_the_last_counts(tmp_path: Path, claim: Claim) -> None:
    journal = journals.write(tmp_path, [claim])
    later = claim._replace(items=7, reports=("_held/a.report.json",))
    journal.add([later])
    assert the_entry(tmp_path).claim == later


def test_all_journals_of_a_workspace_count(tmp_path: Path, claim: Claim) -> None:
    other = claim._replace(id="2" * 24)
    journals.write(tmp_path, [claim])
    journals.write(tmp_path, [other])
    assert set(journals.load(tmp_path)[0]) == {claim.id, other.id}


def test_a_batch_is_unread_until_it_was_read_to_its_end(tmp_path: Path, claim: Claim) -> None:
    read = journals.write(tmp_path, [claim])
    journals.write(tmp_path, [claim._replace(id="2" * 24)])
    read.end_reading()
    assert [entry.claim.id for entry in journals.load(tmp_path)[1]] == ["2" * 24]


def test_a_file_counts_as_deadly_from_the_beginning_of_its_reading_to_the_end(
    tmp_path: Path, claim: Claim
) -> None:
    journal = journals.write(tmp_path, [claim])
    assert not the_entry(tmp_path).is_begun
    journal.begin(claim)
    assert the_entry(tmp_path).is_begun
    journal.end(claim)
    assert not the_entry(tmp_path).is_begun


def test_a_journal_goes_with_the_last_of_its_claims(tmp_path: Path, claim: Claim) -> None:
    other = claim._replace(id="2" * 24)
    journal = journals.write(tmp_path, [claim])
    journal.add([other])
    assert not journal.settle(claim.id)
    assert len(names_below(tmp_path)) == 1
    assert journal.settle(other.id)
    assert names_below(tmp_path) == []
    assert journal.settle(other.id)


def test_a_journal_that_was_found_goes_with_the_last_of_its_claims_too(
    tmp_path: Path, claim: Claim
) -> None:
    journals.write(tmp_path, [claim, claim._replace(id="2" * 24)])
    for claim_id, entry in journals.load(tmp_path)[0].items():
        assert names_below(tmp_path)
        entry.journal.settle(claim_id)
    assert names_below(tmp_path) == []


# Cut off


def test_a_line_that_was_cut_off_says_nothing(tmp_path: Path, claim: Claim) -> None:
    journal = Path(journals.write(tmp_path, [claim]).path)
    begun = journal.read_bytes()
    later = claim._replace(attempt=1)
    journals.Journal(str(journal), []).begin(later)
    whole = journal.read_bytes()
    for length in range(len(begun), len(whole) - 1):
        journal.write_bytes(whole[:length])
        entry = the_entry(tmp_path)
        assert (entry.claim, entry.is_begun) == (claim, False)
    journal.write_bytes(whole[:-1])
    assert the_entry(tmp_path).claim == later


def test_a_journal_that_was_cut_off_knows_the_claims_before(tmp_path: Path, claim: Claim) -> None:
    claims = [claim._replace(id=str(number) * 24) for number in range(4)]
    journal = Path(journals.write(tmp_path, claims).path)
    whole = journal.read_bytes()
    for length in range(0, len(whole), 7):
        journal.write_bytes(whole[:length])
        known = [entry.claim for entry in journals.load(tmp_path)[0].values()]
        assert known == claims[: len(known)]
        assert len(known) >= whole[:length].count(b'"begun":false}')


def test_what_is_added_after_a_line_that_was_cut_off_counts(tmp_path: Path, claim: Claim) -> None:
    path = Path(journals.write(tmp_path, [claim]).path)
    path.write_bytes(path.read_bytes() + path.read_bytes()[:40])
    the_entry(tmp_path).journal.begin(claim)
    assert the_entry(tmp_path).is_begun


def test_what_the_disk_has_no_room_for_is_not_taken_for_written(
    tmp_path: Path, claim: Claim
) -> None:
    with a_full_disk(100), pytest.raises(OSError, match="too large"):
        journals.write(tmp_path, [claim])
    assert names_below(tmp_path) == []


def test_what_is_added_when_there_is_room_again_counts(tmp_path: Path, claim: Claim) -> None:
    journal = journals.write(tmp_path, [claim])
    size_bytes = Path(journal.path).stat().st_size
    with a_full_disk(size_bytes + 100), pytest.raises(OSError, match="too large"):
        journal.begin(claim)
    assert not the_entry(tmp_path).is_begun
    journal.begin(claim)
    assert the_entry(tmp_path).is_begun


# Edited


def edited(journal: journals.Journal, **fields: Any) -> None:
    """Somebody changed the only line; a field without a value is gone."""
    path = Path(journal.path)
    line = json.loads(path.read_bytes()) | fields
    path.write_text(json.dumps({key: value for key, value in line.items() if value is not ...}))


@pytest.mark.parametrize(
    "field",
    [
        {"id": "../../../../etc/x"},
        {"id": "1" * 23},
        {"id": 1},
        {"id": None},
        {"account_id": "../.."},
        {"account_id": ".."},
        {"account_id": "."},
        {"account_id": ""},
        {"account_id": "a" * 300},
        {"account_id": "a\0"},
        {"account_id": 5},
        {"account_id": ...},
        {"account": ...},
        {"name": ...},
        {"name": 5},
        {"name": "\ud800"},
        {"name_hex": ...},
        {"name_hex": "no hexadecimal"},
        {"name_hex": "00"},
        {"name_hex": 5},
        {"claimed_at_us": "soon"},
        {"claimed_at_us": 1e30},
        {"attempt": None},
        {"items": "1"},
        {"reports": "a.report.json"},
        {"reports": ...},
    ],
    ids=str,
)
def test_a_line_that_somebody_spoiled_says_nothing(
    tmp_path: Path, claim: Claim, field: dict[str, Any]
) -> None:
    edited(journals.write(tmp_path, [claim]), **field)
    assert journals.load(tmp_path) == ({}, [])


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"[]\n5\nnull\ntrue\n", b'"id"\n["id"]', b"\xff\xfe\x00", b"[" * 100_000],
)
def test_a_journal_that_holds_anything_else_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.journal").write_bytes(content)
    assert journals.load(tmp_path) == ({}, [])
    assert names_below(tmp_path) == []


def test_what_is_no_file_is_no_journal_and_stays(tmp_path: Path) -> None:
    (tmp_path / "folder.journal").mkdir()
    (tmp_path / "link.journal").symlink_to("nothing")
    assert journals.load(tmp_path) == ({}, [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.journal", "link.journal"]


def test_a_journal_that_cannot_be_read_for_now_is_kept(
    tmp_path: Path, claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    journals.write(tmp_path, [claim])
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fail)
        with contextlib.suppress(OSError):
            journals.load(tmp_path)
    assert the_entry(tmp_path).claim == claim


def test_a_journal_that_somebody_edited_brings_no_broken_text_in(
    tmp_path: Path, claim: Claim
) -> None:
    edited(journals.write(tmp_path, [claim]), name="\x1b[2J\u202e", account="\n")
    found = the_entry(tmp_path).claim
    assert (found.name, found.account) == ("\\x1b[2J\\u202e", "\\x0a")
