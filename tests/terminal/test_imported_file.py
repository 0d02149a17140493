"""An imported file on a page of its own: why, where in its source, what to do, what it became."""

import json
from typing import Any

import pytest

from resumes.analyzer import parse
from resumes.analyzer.fault import Fault, decoded, find_fault
from resumes.store import accounts, creation, import_requests, importers, stored_resumes
from resumes.store.creation import Created, NewResume
from resumes.store.import_ledger import (
    IN_PROGRESS,
    Analysis,
    ClaimedFile,
    FileOutcome,
    Items,
    Problem,
)
from resumes.store.store import Store
from tests.support.terminal.builders import a_document, a_file, an_id, an_importer
from tests.support.terminal.driving import (
    LARGE,
    NEVER_S,
    SOON_S,
    at_rest,
    leads,
    lines,
    presses,
    running,
    shows,
    shows_no,
)
from tests.support.terminal.outages import UnsteadyStore
from tui.screens.file_source import Mark, lay_out

pytestmark = pytest.mark.anyio

SOURCE = b'{\n  "header": {"name": "Ada"},\n  "title": 5\n}\n'


def a_refused_file(store: Store) -> None:
    a_file(
        store,
        reason="invalid_resume",
        message="Invalid field title: must be a string",
        path="title",
        source=SOURCE,
    )


async def test_the_source_stands_beside_the_reason_at_the_fault(store: Store) -> None:
    texts = (
        "ana/cv-1.json · ✗ failed",
        "must be a string",
        "Fix the listed fields",
        '3 ▶   "title": 5',
        "line 3, column 3",
    )
    a_refused_file(store)
    async with running(store, "not a valid resume", screen="imports") as pilot:
        await leads(pilot, "enter", *texts)
        await pilot.resize_terminal(*LARGE)
        await shows(pilot.app, *texts)


async def test_an_analyzed_file_shows_how_it_was_read_and_what_was_written(store: Store) -> None:
    a_file(
        store,
        name="ana/cv.pdf",
        reason="analyzer",
        message="The analyzer's output cannot be stored: Invalid field title: must be a string",
        path="title",
        source=SOURCE,
        items=Items(0, 0, 0, 0, 0, analysis=Analysis("0" * 64, 2.5, "page 2 is a picture")),
    )
    async with running(store, "not analyzed", screen="imports", size=LARGE) as pilot:
        await leads(
            pilot,
            "enter",
            "ana/cv.pdf · ✗ failed",
            "Analyzed   in 2.5 s",
            "The analyzer said: page 2 is a picture",
            "Written by the analyzer · ▶ line 3, column 3",
            '3 ▶   "title": 5',
        )


async def test_a_retried_file_says_so_and_then_what_became_of_it(store: Store) -> None:
    a_refused_file(store)
    async with running(store, "not a valid resume", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter t", "↻ failed", "retry requested", "waiting: no importer")
        (request,) = import_requests.list_requests(store)
        assert request.action == "retry"
        importers.register(store, an_importer())
        await shows(pilot.app, "↻ retry requested at", "; the importer will")

        import_requests.drop_requests(store, [request])
        a_file(store, outcome=FileOutcome.DONE)

        await shows(pilot.app, "ana/cv-1.json · ✓ done")
        await shows_no(pilot.app, "▶")


async def test_what_cannot_be_done_says_why(store: Store) -> None:
    a_file(store, outcome=FileOutcome.DONE)
    async with running(store, "✓ done", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter", "_done/")
        for key, why in (
            ("t", "Already imported: nothing to retry."),
            ("l", "Already imported: nothing to release."),
            ("o", "No resume: this file is already imported."),
            ("tab", "The source of imported files is not kept."),
        ):
            await leads(pilot, key, why)
    assert import_requests.list_requests(store) == []


async def test_a_file_that_is_gone_says_so_and_stays_readable(store: Store) -> None:
    a_refused_file(store)
    async with running(store, "not a valid resume", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter", "Fix the listed fields")

        accounts.delete_account(store, "ana")

        await shows(pilot.app, "! File not found", "Fix the listed fields", "press t")


async def test_what_is_done_is_done_with_the_file_that_is_seen(store: Store) -> None:
    for digit in "12":
        a_file(store, an_id(digit))
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "1 of 2", screen="imports", refresh_s=NEVER_S) as pilot:
        await leads(pilot, "enter", "ana/cv-2.json ·")
        with unsteady.held_reads():
            await presses(pilot, "n")
            for key in ("t", "l", "y", "o"):
                await leads(pilot, key, "Loading the next file…", "ana/cv-2.json ·")
            assert import_requests.list_requests(store) == []

        await shows(pilot.app, "ana/cv-1.json ·")
        await leads(pilot, "t", "Queued 1 file")
        assert [one.claim_id for one in import_requests.list_requests(store)] == [an_id("1")]


# What it became.


async def test_the_one_resume_of_a_file_is_opened_at_once_unless_it_was_deleted(
    store: Store,
) -> None:
    (made,) = imported(store, "Ada Example")
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "✓ done", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter", f"Resume     {made}", "o Resume")
        await leads(pilot, "o", "› Title of Ada")
        await leads(pilot, "escape", f"Resume     {made}")
        stored_resumes.delete_resume(store, accounts.get_account(store, "ana").id, made)

        await shows(pilot.app, f"Resume     {made} (deleted)")
        await shows_no(pilot.app, "o Resume")
        with unsteady.held_reads():
            await leads(pilot, "o", "This resume was deleted.")


async def test_of_several_one_is_chosen_and_the_deleted_ones_are_named(store: Store) -> None:
    first, second = imported(store, "Ada Example", "Bea Example")
    async with running(store, "✓ done", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter", f"Resume     {first}", f"           {second}")
        stored_resumes.delete_resume(store, accounts.get_account(store, "ana").id, first)
        await shows(pilot.app, f"Resume     {first} (deleted)", "o Resume")

        await leads(pilot, "o", "Choose resume", "0  deleted", "1  done")
        await leads(pilot, "enter", "This resume was deleted.")
        await leads(pilot, "enter", "Choose resume", "1  done")
        await leads(pilot, "j enter", "› Title of Bea")


def imported(store: Store, *names: str) -> list[str]:
    """A file of these resumes is done; their ids."""
    account = accounts.get_account(store, "ana")
    claim = ClaimedFile(an_id("1"), "ana/many.ndjson", 9, "2027-01-15T08:00:00.000Z", b"")
    new = [
        NewResume(
            parse(json.dumps(a_document(name=name, title=f"Title of {name}")).encode()), item=item
        )
        for item, name in enumerate(names)
    ]
    outcomes = creation.create(store, account.id, new, claim=claim)
    return [one.id for one in outcomes if isinstance(one, Created)]


# What is said of it.


async def page_of(store: Store, **fields: Any) -> str:
    """What the page of a file says."""
    a_file(store, **fields)
    async with running(store, "1 of 1", screen="imports", size=(140, 80)) as pilot:
        await leads(pilot, "enter", "esc Back", "Location")
        await at_rest(pilot)
        await pilot.pause()
        return "\n".join(line.strip("│ ") for line in lines(pilot.app))


async def test_all_that_is_wrong_is_told_not_only_the_first(store: Store) -> None:
    source = b'{"title": 1, "header": {"email": 2}, "sections": {"nothings": {"column": 0}}}'
    page = await page_of(
        store, reason="invalid_resume", message="Invalid field title", path="title", source=source
    )
    assert "header.email" in page, page
    assert "nothings" in page.partition("header.email")[2], page


@pytest.mark.parametrize(
    ("fields", "texts"),
    [
        (
            {
                "items": Items(
                    1_000, 997, 2, 0, 1, (Problem(3, "line 3", "failed", "invalid_json", "cut short", None, 1),)
                )
            },
            ("Resumes    1,000: 997 done, 2 duplicate, 1 failed", "! line 3: cut short"),
        ),
        (
            {
                "items": Items(
                    60, 0, 0, 0, 60, tuple(Problem(at, f"line {at}", "failed", "too_large") for at in range(50))
                )
            },
            ("! line 7: too large", "Only the first 50 are kept;"),
        ),
        ({"reason": "eaten_by_a_dog", "message": None}, ("✗ failed: eaten_by_a_dog",)),
    ],
    ids=["of several", "of too many to tell", "of an unknown reason"],
)  # fmt: skip
async def test_a_file_says_what_became_of_each_that_is_not_done_and_why(
    store: Store, fields: dict[str, Any], texts: tuple[str, ...]
) -> None:
    page = await page_of(store, **fields)
    assert [text for text in texts if text not in page] == []


async def test_a_file_on_its_way_has_no_verdict_yet_and_cannot_be_asked_for(store: Store) -> None:
    a_file(store, reason=IN_PROGRESS.reason, message=IN_PROGRESS.message)
    async with running(store, "… importing", "It is being imported", screen="imports") as pilot:
        await leads(pilot, "t", "is being imported")
        await leads(pilot, "enter", "… importing", "Location   the inbox")
    assert import_requests.list_requests(store) == []


# Where in its source the error is, and the source as lines that are harmless.


DOCUMENT = b"""{
  "header": {"name": "Ada"},
  "sections": {
    "skills": {"column": 0, "items": [{"title": "a"}, {"title": 5, "tags": ["x", 1]}]}
  }
}
"""
LINES = b'{"header": 1}\n{"header": 2}\n'
LATER = b'{"a": 1}\n\n  {"b": x}\n'
ARRAY = b'[{"header": 1}, {"header": 2}]'


@pytest.mark.parametrize(
    ("source", "fault", "found"),
    [
        (DOCUMENT, Fault("header"), '"header": '),
        (DOCUMENT, Fault("header.name"), '"name": "A'),
        (DOCUMENT, Fault("sections.skills"), '"skills": '),
        (DOCUMENT, Fault("sections.skills.items[1]"), '{"title": '),
        (DOCUMENT, Fault("sections.skills.items[1].title"), '"title": 5'),
        (DOCUMENT, Fault("sections.skills.items[1].tags[1]"), "1]}]}\n  }\n"),
        # Of a missing field what should hold it; of a source that is cut off what is there.
        (DOCUMENT, Fault("sections.skills.order"), '"skills": '),
        (DOCUMENT, Fault("style.layout"), None),
        (DOCUMENT[:60], Fault("sections.skills.items[1].title"), '"skills":'),
        (b"", Fault("header"), None),
        (b'{"a"', Fault("a.b"), '"a"'),
        # As paths write a name that is not harmless.
        (json.dumps({"a\x1bb": {"c": 1}}).encode(), Fault("a\\x1bb.c"), '"c": 1}}'),
        # Offsets count bytes, also those that are no text.
        ('{"é": "ü" x}'.encode(), Fault(byte_offset=12), "x}"),
        (b"\xff\xfe{x", Fault(byte_offset=3), "x"),
        (b"{", Fault(byte_offset=1), ""),
        (b"{", Fault(byte_offset=2), None),
        # An offset or a path is one within its line or item.
        (LATER, Fault(position="line 3", byte_offset=6), "x}\n"),
        (LATER, Fault(position="line 3"), '  {"b": x}'),
        (LATER, Fault(position="line 9", byte_offset=0), None),
        (LINES, Fault("header", position="line 2"), '"header": '),
        (ARRAY, Fault("header", position="item 2"), '"header": '),
        (ARRAY, Fault(position="item 2"), '{"header":'),
        (b"PK", Fault("header", 1, "member a.json"), None),
        (DOCUMENT, Fault(), None),
    ],
)
def test_a_fault_is_found_in_the_source(source: bytes, fault: Fault, found: str | None) -> None:
    at = find_fault(source, fault)
    assert (None if at is None else decoded(source)[at : at + 10]) == found


@pytest.mark.parametrize("source", [b"[" * 5_000, b'{"a":' * 5_000, b"\x00\xff", b"]", b"{5: 1}"])
def test_whatever_the_source_is_nothing_is_raised(source: bytes) -> None:
    find_fault(source, Fault(path="a.a[0].b"))


@pytest.mark.parametrize(
    ("source", "offset", "lines", "mark"),
    [
        (b"a\xffb\x1b[2J\xc2\x9b", None, ("a\\xffb\\x1b[2J\\x9b",), None),
        (b"", None, ("",), None),
        (b"{\r\n\t1\r\n}", 4, ("{", "  1", "}"), Mark(2, 2, 2)),
        (b"{", 1, ("{",), Mark(1, 2, 1)),
        (b"{", 9, ("{",), None),
        # Before it stand an escape and a tab, which are longer on the screen.
        (b"\x1b\tx", 2, ("\\x1b  x",), Mark(1, 3, 6)),
        (b"ab\r\nc", 2, ("ab", "c"), Mark(1, 3, 2)),
    ],
)
def test_the_source_is_laid_out_in_harmless_lines_and_the_fault_marked(
    source: bytes, offset: int | None, lines: tuple[str, ...], mark: Mark | None
) -> None:
    shown = lay_out(source, Fault(byte_offset=offset))
    assert (shown.lines, shown.mark) == (lines, mark)
