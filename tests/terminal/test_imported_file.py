"""An imported file on a page of its own: why, what to do, where it lies, and what it became."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from textual.app import App

from resumes.analyzer import parse
from resumes.store import (
    accounts,
    creation,
    import_requests,
    importers,
    plans,
    stored_resumes,
)
from resumes.store.creation import Created, NewResume
from resumes.store.import_ledger import SO_FAR, ClaimedFile, FileOutcome, Items, Problem
from resumes.store.plans import PlanChange
from resumes.store.store import Store
from tests.support.terminal.builders import (
    AnImporter,
    a_document,
    a_file,
    an_account,
    an_id,
    an_importer,
)
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
    toasts,
    until,
)
from tests.support.terminal.outages import UnsteadyStore
from tests.support.terminal.snapshot import cells_of, style_at

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


@pytest.mark.parametrize("size", [(80, 24), (120, 40), LARGE], ids=str)
async def test_the_source_stands_beside_the_reason_at_the_fault(
    store: Store, size: tuple[int, int]
) -> None:
    a_refused_file(store)
    async with running(store, screen="imports", refresh_s=SOON_S, size=size) as pilot:
        await shows(pilot.app, "not a valid resume")
        await presses(pilot, "enter")
        await shows(
            pilot.app,
            "ana/cv-1.json · ✗ failed",
            "must be a string",
            "Fix the listed fields",
            '3 ▶   "title": 5',
            "line 3, column 3",
        )


async def test_a_retried_file_says_so_and_then_what_became_of_it(store: Store) -> None:
    a_refused_file(store)
    async with running(store, "not a valid resume", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter t", "↻ failed", "retry requested", "waiting: no importer")
        (request,) = import_requests.list_requests(store)
        assert request.action == "retry"

        import_requests.drop_requests(store, [request])
        a_file(store, outcome=FileOutcome.DONE)

        await shows(pilot.app, "ana/cv-1.json · ✓ done")
        await shows_no(pilot.app, "▶")


async def test_what_is_read_stays_in_sight_while_the_file_changes(store: Store) -> None:
    a_file(store, message=" ".join(f"word{number}" for number in range(1_000)))
    async with running(store, "1 of 1", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter", "word0 word1 ")
        await presses(pilot, "pagedown")
        await shows_no(pilot.app, "word0 word1 ")
        seen = re.findall("word[0-9]+ ", "\n".join(lines(pilot.app)))[0]

        await leads(pilot, "t", "↻ failed", seen)
        await shows_no(pilot.app, "word0 word1 ")


async def test_a_file_that_is_moved_only_then_is_found(store: Store, tmp_path: Path) -> None:
    a_file(store, root=str(tmp_path))
    async with running(store, "1 of 1", screen="imports", refresh_s=SOON_S, size=LARGE) as pilot:
        await leads(pilot, "enter", "Location   _failed/invalid_json, as …-11111111")
        path = tmp_path / "_failed" / "invalid_json" / "cv-11111111.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"{")
        await shows_no(pilot.app, "as …-11111111")


async def test_n_and_p_go_through_the_list(store: Store) -> None:
    for digit in "123":
        a_file(store, an_id(digit))
    async with running(store, "1 of 3", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter", "ana/cv-3.json ·")
        await leads(pilot, "n", "ana/cv-2.json ·")
        await leads(pilot, "n n", "ana/cv-1.json ·", "Last file in the list.")
        await leads(pilot, "p escape", "OUTCOME")
        await shows(pilot.app, "2 of 3")


@pytest.mark.parametrize("size", [(80, 24), LARGE], ids=str)
async def test_the_title_of_the_part_with_the_keys_lights_up(
    store: Store, size: tuple[int, int]
) -> None:
    def lit(app: App[int]) -> list[bool]:
        cells = cells_of(app)
        return [bool(style_at(cells, title).bold) for title in ("ana/cv-", "Source ·")]

    a_refused_file(store)
    async with running(store, "1 of 1", screen="imports", refresh_s=SOON_S, size=size) as pilot:
        await leads(pilot, "enter", "Source ·", "ana/cv-")
        await until(lambda: lit(pilot.app) == [True, False])
        await presses(pilot, "tab")
        await until(lambda: lit(pilot.app) == [False, True])
        await presses(pilot, "tab")
        await until(lambda: lit(pilot.app) == [True, False])


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
    from resumes.store import accounts

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


async def test_a_file_that_cannot_be_read_is_not_acted_upon(store: Store) -> None:
    for digit in "12":
        a_file(store, an_id(digit))
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "1 of 2", screen="imports", refresh_s=NEVER_S) as pilot:
        await leads(pilot, "enter", "ana/cv-2.json ·")
        unsteady.go_away("It is away")
        await leads(pilot, "n", "! It is away", "ana/cv-2.json ·")
        # Pressed while it is just being tried again, the key is answered otherwise.
        while "Could not load the next file. Press r to retry." not in toasts(pilot.app):
            await presses(pilot, "t")
        unsteady.come_back()

        await leads(pilot, "r", "ana/cv-1.json ·")
        assert import_requests.list_requests(store) == []


async def test_a_file_that_takes_long_to_read_appears_all_the_same(store: Store) -> None:
    a_refused_file(store)
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "1 of 1", screen="imports", refresh_s=SOON_S) as pilot:
        with unsteady.held_reads() as reading:
            await presses(pilot, "enter")
            await until(reading.begun.is_set)
            await asyncio.sleep(3 * SOON_S)  # it is time to read it again, again and again

        await shows(pilot.app, "Fix the listed fields")


# What it became.


async def test_the_one_resume_of_a_file_is_opened_at_once(store: Store) -> None:
    imported(store, "Ada Example")
    async with running(store, "✓ done", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter", "Resume     ")

        await leads(pilot, "o", "› Title of Ada")


async def test_of_several_one_is_chosen(store: Store) -> None:
    imported(store, "Ada Example", "Bea Example")
    async with running(store, "✓ done", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter", "Resume     ")

        await leads(pilot, "enter", "Choose resume", "1  done")
        await leads(pilot, "j enter", "› Title of Bea")


async def test_a_resume_that_was_deleted_is_not_opened(store: Store) -> None:
    (made,) = imported(store, "Ada Example")
    async with running(store, "✓ done", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter", f"Resume     {made}", "o Resume")
        stored_resumes.delete_resume(store, accounts.get_account(store, "ana").id, made)

        await shows(pilot.app, f"Resume     {made} (deleted)")
        await shows_no(pilot.app, "o Resume")
        await leads(pilot, "o", "This resume was deleted.")


async def test_of_several_the_deleted_ones_are_named(store: Store) -> None:
    first, _ = imported(store, "Ada Example", "Bea Example")
    stored_resumes.delete_resume(store, accounts.get_account(store, "ana").id, first)
    async with running(store, "✓ done", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter", f"Resume     {first} (deleted)", "o Resume")

        await leads(pilot, "o", "Choose resume", "0  deleted", "1  done")
        await leads(pilot, "enter", "This resume was deleted.")
        await leads(pilot, "o", "1  done")
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


async def test_a_done_file_says_what_it_became(store: Store) -> None:
    first, second = imported(store, "Ada", "Bea")
    async with running(store, "✓ done", screen="imports") as pilot:
        await leads(pilot, "enter", f"Resume     {first}", f"           {second}")


# What is said of it.


async def page_of(store: Store, **fields: Any) -> str:
    """What the page of a file says."""
    a_file(store, **fields)
    async with running(store, "1 of 1", screen="imports", size=(140, 80)) as pilot:
        await leads(pilot, "enter", "esc Back", "Location")
        await at_rest(pilot)
        await pilot.pause()
        return "\n".join(line.strip("│ ") for line in lines(pilot.app))


async def test_the_verdict_comes_first_and_then_what_to_do_and_where_it_lies(store: Store) -> None:
    page = await page_of(
        store,
        claim_id="0" * 16 + "89abcdef",
        reason="invalid_json",
        message="title must be a string",
        path="title",
        byte_offset=7,
    )
    at = [
        page.index(text)
        for text in (
            "✗ failed: invalid JSON",
            "title must be a string",
            "Field      title",
            "Offset     byte 7",
            "→ ",
            "File       ana/cv-0.json",
            "Folder     /srv/inbox",
            "Location   _failed/invalid_json, as …-89abcdef",
        )
    ]
    assert at == sorted(at)


async def test_all_that_is_wrong_is_told_not_only_the_first(store: Store) -> None:
    source = b'{"title": 1, "header": {"email": 2}, "sections": {"nothings": {"column": 0}}}'
    page = await page_of(
        store, reason="invalid_resume", message="Invalid field title", path="title", source=source
    )
    assert "header.email" in page, page
    assert "nothings" in page.partition("header.email")[2], page


async def test_a_file_of_several_says_what_became_of_each_that_is_not_done(store: Store) -> None:
    problem = Problem(3, "line 3", "failed", "invalid_json", "cut short", None, 1)
    page = await page_of(store, items=Items(1_000, 997, 2, 0, 1, (problem,)))
    assert "Resumes    1,000: 1 failed, 2 duplicate, 997 done" in page
    assert "! line 3: cut short" in page


async def test_only_so_many_problems_are_known(store: Store) -> None:
    problems = tuple(Problem(at, f"line {at}", "failed", "too_large") for at in range(50))
    page = await page_of(store, items=Items(60, 0, 0, 0, 60, problems))
    assert "! line 7: too large" in page
    assert "Only the first 50 are kept;" in page


async def test_a_file_on_its_way_has_no_verdict_yet_and_cannot_be_asked_for(store: Store) -> None:
    a_file(store, reason=SO_FAR.reason, message=SO_FAR.message)
    async with running(store, "… importing", "It is being imported", screen="imports") as pilot:
        await leads(pilot, "t", "is being imported")
        await leads(pilot, "enter", "… importing", "Location   the inbox")
    assert import_requests.list_requests(store) == []


async def test_a_reason_that_is_not_known_here_is_shown_as_it_is(store: Store) -> None:
    assert "✗ failed: eaten_by_a_dog" in await page_of(store, reason="eaten_by_a_dog", message=None)


async def test_what_is_asked_is_taken_up_where_an_importer_watches(store: Store) -> None:
    importers.announce(store, an_importer())
    a_refused_file(store)
    async with running(store, "not a valid resume", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "enter t", "↻ failed", "↻ retry requested at", "; the importer will")


async def test_every_file_lies_where_it_is_said_to(store: Store, tmp_path: Path) -> None:
    plans.set_plan_limits(store, PlanChange("one", 1, is_new=True))
    an_account(store, "zoe", plan="one")
    importer = AnImporter(store, tmp_path)
    for name, content in (
        ("done", json.dumps(a_document(name="Ada")).encode()),
        ("duplicate", json.dumps(a_document(name="Ada")).encode()),
        ("held", json.dumps(a_document(name="Grace")).encode()),
        ("failed", b"{"),
    ):
        importer.drop(f"zoe/{name}.json", content)
        await importer.round()
    importer.close()

    found = set()
    async with running(store, "1 of 4", screen="imports", size=(240, 60)) as pilot:
        await presses(pilot, "enter")
        for outcome in ("failed", "held", "duplicate", "done"):
            await shows(pilot.app, f"zoe/{outcome}.json ·", "Location ")
            screen = "\n".join(line.split("││")[0].strip("│ █▂▃▄▅▆▇") for line in lines(pilot.app))
            path = Path("".join(screen.split("Location ")[1].split("Size ")[0].split()))
            assert path.is_file()
            found.add(path.name)
            await presses(pilot, "n")
    for outcome in ("failed", "held", "duplicate", "done"):
        assert len([name for name in found if outcome in name]) == 1, found
