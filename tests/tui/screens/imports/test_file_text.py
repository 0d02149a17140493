"""What a file's page says."""

import dataclasses
import fnmatch
from pathlib import Path
from typing import Any

import pytest

from resumes.reasons import HINTS, Reason
from resumes.store import ledger, plans
from resumes.store.engine import Store
from resumes.store.items import Items, Problem
from resumes.store.ledger import SO_FAR, FileOutcome, Item
from resumes.store.plans import PlanChange
from resumes.store.requests import Action, Request
from resumes.text import is_harmless
from tests.resumes.builders import a_document
from tests.tui.builders import HOSTILE, an_account
from tests.tui.screens.imports.builders import AnImporter, a_file, an_id
from tui.screens.imports.file_text import (
    copied_text,
    counts_text,
    file_paragraphs,
    filed_in,
    why_not,
)
from tui.screens.imports.reading import FileRead

FAILED, HELD, DUPLICATE, DONE = (
    FileOutcome.FAILED,
    FileOutcome.HELD,
    FileOutcome.DUPLICATE,
    FileOutcome.DONE,
)
A_REQUEST = Request("a" * 16, an_id("1"), Action.RETRY, "2027-01-15T08:00:00.000Z", None)


def said(store: Store, /, *, request: Request | None = None, **fields: Any) -> list[str]:
    """The lines about a file."""
    is_watched, resumes = fields.pop("is_watched", True), fields.pop("resumes", [])
    read = FileRead(a_file(store, **fields), request, is_watched, resumes, None)
    return [f"{one.mark}{one.content.plain}" for one in file_paragraphs(read)]


def test_the_verdict_comes_first_and_then_what_to_do(store: Store) -> None:
    lines = said(
        store,
        reason="invalid_resume",
        message="title must be a string",
        path="title",
        byte_offset=7,
    )
    assert lines[:5] == [
        "✗ failed: not a valid resume",
        "title must be a string",
        "At         title",
        "Byte       7, counted from 0",
        f"→ {HINTS[Reason.INVALID_RESUME]}",
    ]


def test_the_file_is_named_with_where_it_lies(store: Store) -> None:
    lines = said(store, claim_id="0" * 16 + "89abcdef")
    assert "File       ana/cv-0.json" in lines
    assert "Folder     /srv/inbox" in lines
    assert "Now in     _failed/invalid_json, as …-89abcdef" in lines


@pytest.mark.anyio
async def test_every_file_lies_where_it_is_said_to(store: Store, tmp_path: Path) -> None:
    plans.set_plan_limits(store, PlanChange("one", 1, is_new=True))
    an_account(store, "zoe", plan="one")
    importer = AnImporter(store, tmp_path)
    for name, content in (
        ("zoe/done.json", a_document(name="Ada")),
        ("zoe/duplicate.json", a_document(name="Ada")),
        ("zoe/held.json", a_document(name="Grace")),
        ("zoe/failed.json", b"{"),
    ):
        importer.drop(name, content)
        await importer.round()
    importer.close()

    files = ledger.list_files(store)

    assert {file.outcome for file in files} == set(FileOutcome)
    for file in files:
        folder, name = filed_in(file).split(", as ")
        there = [one.name for one in (tmp_path / folder).iterdir() if ".report" not in one.name]
        (found,) = fnmatch.filter(there, f"{name.replace('…', '*')}.json")
        assert file.outcome in found


def test_a_done_file_lies_under_the_day_that_it_was_taken(store: Store) -> None:
    file = dataclasses.replace(
        a_file(store, outcome=DONE),
        claimed_at="2027-01-15T23:59:59.000Z",
        finished_at="2027-01-16T00:00:01.000Z",
    )
    assert filed_in(file).startswith("_done/2027-01-15/ana, as")


def test_a_done_file_says_what_it_became(store: Store) -> None:
    resumes = [Item(0, DONE, "a" * 24), Item(1, DUPLICATE, "b" * 24)]
    lines = said(store, outcome=DONE, resumes=resumes)
    assert lines[0] == "✓ done"
    assert f"Became     {'a' * 24}" in lines
    assert f"           {'b' * 24}, stored before" in lines


def test_a_file_of_several_says_what_became_of_each_that_is_not_done(store: Store) -> None:
    problem = Problem(3, "line 3", "failed", "invalid_json", "cut short", None, 1)
    items = Items(total=1_000, done=997, duplicate=2, held=0, failed=1, problems=(problem,))
    lines = said(store, items=items)
    assert "Resumes    1,000: 1 failed, 2 duplicate, 997 done" in lines
    assert "  ! line 3: cut short" in lines
    assert counts_text(dataclasses.replace(items, total=0, done=0, duplicate=0, failed=0)) == "0"


def test_only_so_many_problems_are_known(store: Store) -> None:
    problems = tuple(Problem(at, f"line {at}", "failed", "too_large") for at in range(50))
    items = Items(total=60, done=0, duplicate=0, held=0, failed=60, problems=problems)
    lines = said(store, items=items)
    assert "  ! line 7: too large" in lines
    assert lines[-1].startswith("These are the first 50")


def test_what_is_asked_is_said_and_whether_it_waits(store: Store) -> None:
    asked = "↻ retry asked at 2027-01-15 08:00 UTC; "
    lines = said(store, request=A_REQUEST)
    assert lines[0].startswith("↻ failed")
    assert f"{asked}the importer takes it up." in lines
    waits = f"{asked}it waits, since no importer of its folder is running."
    assert waits in said(store, request=A_REQUEST, is_watched=False)


def test_a_file_on_its_way_has_no_verdict_yet(store: Store) -> None:
    lines = said(store, reason=SO_FAR.reason, message=SO_FAR.message)
    assert lines[:2] == ["… importing", ""]
    assert "Now in     .work" in lines


def test_a_reason_that_is_not_known_here_is_shown_as_it_is(store: Store) -> None:
    assert said(store, reason="eaten_by_a_dog", message=None)[:2] == [
        "✗ failed: eaten_by_a_dog",
        "",
    ]


def test_nothing_that_is_said_acts_upon_a_terminal(store: Store) -> None:
    hostile = Problem(1, HOSTILE, "failed", "invalid_json", HOSTILE)
    items = Items(total=1, done=0, duplicate=0, held=0, failed=1, problems=(hostile,))
    lines = said(store, name=HOSTILE, message=HOSTILE, path=HOSTILE, items=items, root=HOSTILE)
    assert all(is_harmless(line) for line in lines)


@pytest.mark.parametrize(
    ("outcome", "action", "why"),
    [
        (FAILED, Action.RETRY, None),
        (HELD, Action.RELEASE, None),
        (DONE, Action.RETRY, "is imported: there is nothing to retry"),
        (DUPLICATE, Action.RELEASE, "is stored already: there is nothing to release"),
        (FAILED, Action.RELEASE, "t tries it again"),
        (HELD, Action.RETRY, "l lets it in"),
    ],
)
def test_what_does_not_fit_says_why(
    store: Store, outcome: FileOutcome, action: Action, why: str | None
) -> None:
    refusal = why_not(a_file(store, outcome=outcome), action)
    assert refusal is None if why is None else why in (refusal or "")


def test_a_file_on_its_way_cannot_be_asked_for(store: Store) -> None:
    file = a_file(store, reason=SO_FAR.reason, message=SO_FAR.message)
    assert "is being imported" in (why_not(file, Action.RETRY) or "")


def test_the_reason_is_copied_with_the_place(store: Store) -> None:
    file = a_file(store, reason="invalid_resume", message="must be a string", path="title")
    assert copied_text(file) == "invalid_resume: must be a string: title"
    named = dataclasses.replace(file, message="Invalid field title: must be a string")
    assert copied_text(named) == "invalid_resume: Invalid field title: must be a string"
    assert copied_text(a_file(store, outcome=DONE)) is None
