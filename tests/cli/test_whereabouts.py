"""A dropped file is found wherever the importer put it."""

from pathlib import Path

import pytest

from cli.whereabouts import find_place, find_roots
from resumes.store import ledger
from resumes.store.ledger import FileRow
from tests.cli.conftest import CommandLine, a_resume, open_home


def import_one(run: CommandLine, content: bytes, name: str = "x y.json") -> FileRow:
    """The row of a file that was dropped and imported."""
    inbox = run.home / "inbox" / "acme"
    inbox.mkdir(parents=True, exist_ok=True)
    (inbox / name).write_bytes(content)
    run("watch", "--once", "--settle", "0")
    with open_home(run.home) as store:
        [row, *_] = ledger.list_files(store)
    return row


@pytest.mark.parametrize(
    ("content", "most", "below"),
    [
        (a_resume(), "9", "_done/"),
        (a_resume(), "0", "_held/acme/"),
        (b"{", "9", "_failed/invalid_json/"),
    ],
    ids=["done", "held", "failed"],
)
def test_a_file_is_found_where_it_was_put(
    acme: CommandLine, content: bytes, most: str, below: str
) -> None:
    acme.succeeds("plans", "set", "free", "--max-resumes", most)
    row = import_one(acme, content)

    told = acme.answers("imports", "show", row.claim_id, "--json")

    path = Path(told["filedAs"])
    assert path.read_bytes() == content
    assert str(path.relative_to(acme.home / "inbox")).startswith(below)
    shown = acme.succeeds("imports", "show", row.claim_id)
    assert f"lies at   {path.relative_to(acme.home / 'inbox')}\n" in shown


def test_duplicates_are_found_too(acme: CommandLine) -> None:
    import_one(acme, a_resume(), "first.json")
    row = import_one(acme, a_resume(), "second.json")

    place = find_place(row, [acme.home / "inbox"])

    assert place is not None
    assert place.below.startswith("_duplicate/second-")


def test_what_is_gone_is_not_found(acme: CommandLine) -> None:
    row = import_one(acme, b"{")
    Path(acme.answers("imports", "show", row.claim_id, "--json")["filedAs"]).unlink()

    shown = acme.succeeds("imports", "show", row.claim_id)

    assert "lies at   not found where it was put\n" in shown
    assert acme.answers("imports", "show", row.claim_id, "--json")["filedAs"] is None


def test_in_a_home_that_was_moved_the_file_is_found_in_its_inbox_now(acme: CommandLine) -> None:
    row = import_one(acme, b"{")
    moved = acme.home.with_name("moved")
    acme.home.rename(moved)

    shown = CommandLine(moved).succeeds("imports", "show", row.claim_id)

    assert f"lies at   {moved}/inbox/_failed/invalid_json/x y-" in shown
    assert find_roots(row, moved / "nowhere") == []
