"""The resumes of an account: listed, looked for, copied, exported, deleted and taken back."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from resumes.store import accounts, labels, plans, stored_resumes
from resumes.store.store import Store
from tests.support.clocks import FakeMonotonic
from tests.support.pdfs import read_with_pdftotext
from tests.support.terminal.builders import (
    HOSTILE,
    a_copy,
    a_document,
    a_section,
    an_account,
    stored,
    stored_many,
)
from tests.support.terminal.driving import (
    LARGE,
    NEVER_S,
    SMALL,
    at_rest,
    copied,
    leads,
    lines,
    marked,
    presses,
    running,
    shows,
    shows_no,
    tells,
    toasts,
    types,
    until,
)
from tests.support.terminal.outages import AWAY, UnsteadyStore

pytestmark = pytest.mark.anyio


def titles(store: Store, name: str = "ana") -> list[str]:
    """What the API lists of the account."""
    account = accounts.get_account(store, name)
    return [entry.shown_title for entry in stored_resumes.list_page(store, account.id).entries]


# Whose resumes.


async def test_the_first_account_is_shown_when_none_is_given(store: Store) -> None:
    an_account(store, "aaron")
    stored(store, a_document(title="Mine"), account="aaron")
    async with running(store, "aaron · 1 of 1", "Mine"):
        pass
    async with running(store, "ana · no resumes", account="ana", read_only=True) as pilot:
        for key in "123456":
            await leads(pilot, key, "read-only")


async def test_another_account_is_chosen_and_escape_changes_nothing(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 2, account="zoe")
    async with running(store, account="ana") as pilot:
        await shows(pilot.app, "ana · no resumes", "resumes import FILE --account ana")
        await leads(pilot, "a", "Choose account", "zoe")
        await presses(pilot, "escape")
        await shows_no(pilot.app, "Choose account")
        await shows(pilot.app, "ana · no resumes")

        await leads(pilot, "a", "Choose account", "zoe")
        await presses(pilot, "j")
        for name in ("bea", "cyd"):  # read again while the cursor stays
            an_account(store, name)
            await leads(pilot, "r", name)
        await leads(pilot, "enter", "zoe · 1 of 2", "Number 1")


async def test_without_accounts_it_says_how_to_make_one(empty_store: Store) -> None:
    async with running(empty_store, program="resumes --home /srv") as pilot:
        await shows(pilot.app, "No accounts yet.", "Press 3 then n, or run")
        await shows(pilot.app, "`resumes --home /srv accounts create NAME`")
        await leads(pilot, "a", "Choose account")
        await presses(pilot, "enter", "escape")
        await shows_no(pilot.app, "Choose account")
    async with running(empty_store, read_only=True) as pilot:
        await shows(pilot.app, "Create one with `resumes accounts create NAME`.")


# A store that is away.


async def test_an_error_that_nobody_foresaw_is_shown_by_its_reference_and_logged_whole(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(UnsteadyStore):
        def read(self) -> None:  # type: ignore[override]
            raise ZeroDivisionError("secret details")

    async with running(Broken(store), "! Internal error ") as pilot:
        await shows_no(pilot.app, "secret")
        (line,) = [line for line in lines(pilot.app) if "Internal error" in line]
        assert f"Internal error {line.split('Internal error ')[1][:8]}" in caplog.text
    assert "secret details" in caplog.text


# The filter.


async def test_typing_finds_and_escape_brings_all_back(store: Store) -> None:
    stored(
        store,
        a_document(name="Ada Lovelace", title="Analyst"),
        a_document(name="Bo", title="Baker", header={"name": "Bo", "email": "bo@example.org"}),
    )
    async with running(store, "ana · 1 of 2") as pilot:
        await types(pilot, "/love", 'ana · "love" · 1 of 1', "Analyst", "Results")
        await shows_no(pilot.app, "Baker")
        await leads(pilot, "escape", "ana · 1 of 2", "Baker")

        await types(pilot, "/  bo@example  \n", 'ana · "bo@example" · 1 of 1', "Baker")
        await at_rest(pilot)
        await leads(pilot, "enter", "ana › Baker")
        await leads(pilot, "escape", 'ana · "bo@example" · 1 of 1')
        await presses(pilot, "escape")
        await types(pilot, "/   ")
        await leads(pilot, "enter", "ana · 2 of 2", "/ Filter")
        await types(pilot, "/[/b]zz", 'No matches for "[/b]zz" in ana.')


async def test_what_was_found_is_marked_in_the_row_and_in_what_is_beside_the_list(
    store: Store,
) -> None:
    job = {"position": "Python trainer", "workplace": "Engine Works"}
    sections = a_section("skills", {"title": "Python"}) | a_section("experiences", job)
    header = {"name": "Zoé Łódź", "email": "zoe@example.org", "location": "Porto"}
    stored(
        store,
        a_document(name="Zoé Łódź", title="Porto and more", header=header, sections=sections),
        a_document(name="Bo", title="Porto"),
    )
    async with running(store, "1 of 2", size=LARGE) as pilot:
        for typed, found in (
            ("lodz porto", ["Porto", "Porto", "Łódź", "Łódź"]),
            ("zo skill:python", ["Python", "Zo", "Zo", "zo"]),
            ('"engine works" place:port', ["Engine Works", "Port"]),
            ("more -nowhere", ["more"]),
        ):
            await types(pilot, f"/{typed}", "1 of 1")
            await until(lambda found=found: sorted(marked(pilot.app)) == found)  # type: ignore[misc]
            await leads(pilot, "escape", "1 of 2")
            await until(lambda: not marked(pilot.app), lambda: marked(pilot.app))
        await types(pilot, "/python\n", "1 of 1")
        await at_rest(pilot)
        await leads(pilot, "enter", "Resumes › ana › Porto and more")
        await until(lambda: marked(pilot.app) == ["Python"] * 2, lambda: marked(pilot.app))


async def test_the_last_word_is_a_beginning_until_a_blank_follows(store: Store) -> None:
    stored(
        store,
        a_document(title="One", sections=a_section("skills", {"title": "JavaScript"})),
        a_document(title="Two", sections=a_section("skills", {"title": "Java"})),
    )
    async with running(store, "1 of 2", size=LARGE) as pilot:
        await types(pilot, "/jav", "No matches", "at least four letters of the last one")
        await types(pilot, "a", '"java" · 1 of 2')
        await types(pilot, " ", '"java" · 1 of 1', "Two")
        await leads(pilot, "escape", "of 2")
        # What there is nothing to search for in yet filters nothing.
        await types(pilot, '/"', 'ana · """ · 1 of 2', "One")
        await leads(pilot, "f1", "Filter of resumes", "words in this order")


# Beside the list.


def a_person(name: str) -> dict[str, object]:
    return a_document(
        name=name,
        title=f"Title of {name}",
        sections=a_section("skills", {"title": f"Skill of {name}"}),
    )


async def test_what_is_beside_the_list_follows_the_cursor_where_there_is_room(store: Store) -> None:
    stored(store, a_person("Ada"), a_person("Bo"))
    async with running(store, "Title of Ada", size=SMALL) as pilot:
        await leads(pilot, "v", "The preview needs 110 columns")
        await leads(pilot, "tab", "No preview is shown.")
        await pilot.resize_terminal(*LARGE)
        await shows(pilot.app, "Skill of Ada", "AdaResume.pdf")
        await leads(pilot, "j", "Skill of Bo")
        await shows_no(pilot.app, "Skill of Ada")

        await presses(pilot, "v")
        await shows_no(pilot.app, "Skill of Bo")
        await leads(pilot, "v", "Skill of Bo")
        await leads(pilot, "shift+tab", "Created in ana")
        await leads(pilot, "tab tab", '"showTitle": true')


# Copying.


@pytest.mark.parametrize("opens", [False, True])
async def test_the_chosen_text_reaches_the_clipboard(
    store: Store, monkeypatch: pytest.MonkeyPatch, opens: bool
) -> None:
    (resume_id,) = stored(store, a_document(name="Ada", title=HOSTILE))
    async with running(store, "1 of 1") as pilot:
        if opens:
            await leads(pilot, "enter", "Resumes › ana › a[")
        texts = copied(pilot.app, monkeypatch)
        await leads(pilot, "y", "─ Copy ─", "file name")
        await shows_no(pilot.app, "email")  # it has none
        await presses(pilot, "enter")
        await until(lambda: texts == [resume_id])
        await shows(pilot.app, "Sent the ID to the clipboard (OSC 52).")

        # "JSON" may shine through the dialog, before its rows are there.
        await leads(pilot, "y", "─ Copy ─", "file name", "JSON")
        await presses(pilot, "G", "enter")
        await until(lambda: len(texts) == 2)
    assert json.loads(texts[1])["title"] == HOSTILE
    assert texts[1].isascii()  # nothing in it acts when it is pasted
    assert texts[1].isprintable()


# Exporting.


@pytest.mark.parametrize("opens", [False, True])
async def test_a_resume_is_exported_to_the_folder_that_is_named(
    store: Store, tmp_path: Path, opens: bool
) -> None:
    stored(store, a_document(title="Mine"))
    async with running(store, "Mine") as pilot:
        if opens:
            await leads(pilot, "enter", "ana › Mine")

        await leads(pilot, "x", "Format", "PDF")
        await presses(pilot, "home", "ctrl+k")
        await types(pilot, f" {tmp_path / 'there'} \n", "Exported 1 resume to")
        last = "PDF"
        for keys, kind in (("down down", "Word"), ("down down", "JSON, as imported")):
            await leads(pilot, "x", "Format", last)
            await leads(pilot, f"shift+tab enter {keys} enter", kind)
            await leads(pilot, "tab enter", "Exported 1 resume to")
            last = kind
    word, file, pdf = sorted((tmp_path / "there").iterdir())
    assert pdf.read_bytes().startswith(b"%PDF")
    assert zipfile.is_zipfile(word)
    assert json.loads(file.read_bytes())["title"] == "Mine"


async def test_marked_resumes_become_a_book_and_a_table_as_the_dialog_says(store: Store) -> None:
    stored(store, *(a_document(name=name) for name in ("Ada", "Bo", "Cy")))
    async with running(store, "Cy Resume") as pilot:
        await presses(pilot, "space", "space")
        await leads(pilot, "x", "2 marked", "Layout", "Anonymous")
        await leads(pilot, "shift+tab enter down enter", "PDFs in one book")
        await leads(pilot, "tab tab enter end enter", "minimal")
        await leads(pilot, "tab tab enter down enter", "yes")
        await leads(pilot, "tab enter", "Exported 2 resumes to", "book.pdf")
        await leads(pilot, "x", "PDFs in one book", "minimal", "yes")
        await leads(pilot, "tab tab tab tab enter", "Exported 2 resumes to", "book-2.pdf")
        await leads(pilot, "x", "2 marked")
        await leads(pilot, "shift+tab enter down down enter", "CSV table")
        await shows_no(pilot.app, "Layout")
        await leads(pilot, "tab enter", "Exported 2 resumes to", "resumes.csv")
    table, *books = sorted(Path("exported-resumes").iterdir(), key=lambda path: path.suffix)
    text = table.read_text("utf-8-sig")
    assert [name for name in ("Ada", "Bo", "Cy") if name in text] == ["Ada", "Bo"]
    for book in books:
        text = read_with_pdftotext(book.read_bytes())
        assert "Candidate 1" in text
        assert "Ada" not in text


async def test_the_export_dialog_fits_a_tiny_terminal(store: Store) -> None:
    stored(store, a_document(name="Ada"))
    async with running(store, "1 of 1", size=(40, 10)) as pilot:
        await leads(pilot, "x", "Format", "Folder", "Layout", "Anonymous", "Export ↵", "Cancel")


async def test_a_file_in_the_way_of_an_export_stays_as_it_is(store: Store) -> None:
    Path("exported-resumes").write_text("")
    stored(store, a_document(title="Mine"))
    async with running(store, "Mine") as pilot:
        await leads(pilot, "x", "Format")
        await leads(pilot, "enter", "✗ Cannot write to")
        await shows_no(pilot.app, "Exporting…")
        Path("exported-resumes").unlink()
        await leads(pilot, "x", "Format")
        await leads(pilot, "enter", "Exported 1 resume to")
        await shows_no(pilot.app, "Cannot write to")

        (file,) = Path("exported-resumes").iterdir()
        await leads(pilot, "x", "Format")
        await leads(pilot, "enter", "Exported 0 resumes to", "Kept 1 file")

        file.write_text("edited")
        await leads(pilot, "x", "Format")
        await leads(pilot, "enter", "Exported 1 resume to")
    assert file.read_text() == "edited"


# Deleting.


async def test_undo_keeps_the_newest_resume_that_was_to_go(store: Store) -> None:
    stored(store, a_document(title="First"), a_document(title="Second"))
    clock = FakeMonotonic()
    async with running(store, "Second", clock=clock) as pilot:
        await leads(pilot, "d j d", "(u to undo) First", "(u to undo) Seco")

        await leads(pilot, "u", 'Undid the deletion of "Second".')
        clock.advance(10)
        await shows(pilot.app, 'Deleted "First".', "1 of 1")
        await leads(pilot, "u", "Nothing to undo.")
    assert titles(store) == ["Second"]


async def test_of_several_those_that_are_not_begun_yet_can_still_be_undone(store: Store) -> None:
    stored(store, a_document(title="First"), a_document(title="Second"))
    clock, unsteady = FakeMonotonic(), UnsteadyStore(store)
    async with running(unsteady, "Second", clock=clock) as pilot:
        await leads(pilot, "space", "1 marked")
        assert ["●" in line for line in lines(pilot.app) if "Lovelace" in line] == [True, False]
        await leads(pilot, "space d", "Deleting 2 resumes in 10 s")
        await shows_no(pilot.app, "marked")
        hold = unsteady.hold("write")
        clock.advance(10)
        await until(hold.begun.is_set)

        await leads(pilot, "u", 'Undid the deletion of "Second".')
        await hold.arrives(pilot)
        await shows(pilot.app, 'Deleted "First".')
    assert titles(store) == ["Second"]


@pytest.mark.parametrize("opens", [False, True])
async def test_a_deletion_waits_and_is_then_carried_out_once(store: Store, opens: bool) -> None:
    stored(store, a_document(title="First"), a_document(title="Second"))
    clock = FakeMonotonic()
    async with running(store, "Second", clock=clock) as pilot:
        if opens:
            await leads(pilot, "enter", "› First")
        await leads(pilot, "d", 'Deleting "First" in 10 s')
        clock.advance(4)
        await leads(pilot, "d", 'Already deleting "First".')  # which does not put it off
        assert titles(store) == ["First", "Second"]
        if not opens:
            await shows(pilot.app, "Deleting in 6 s (u to undo) First")

        clock.advance(6)
        await until(lambda: titles(store) == ["Second"])
        await shows(pilot.app, 'Deleted "First".')
        if opens:
            await leads(pilot, "d", 'Already deleted: "First".')
        else:
            await shows(pilot.app, "1 of 1")
        # What ends the program keeps what was not deleted yet.
        await presses(pilot, *(["escape"] if opens else []), "d", "q")
    assert titles(store) == ["Second"]


async def test_of_several_all_that_could_not_be_deleted_are_told_and_those_that_were(
    store: Store,
) -> None:
    ids = stored_many(store, 4)
    clock, unsteady = FakeMonotonic(), UnsteadyStore(store)
    async with running(unsteady, "Number 3", clock=clock) as pilot:
        await leads(pilot, "d", "Deleting in 10 s")
        stored_resumes.delete_resume(store, accounts.get_account(store, "ana").id, ids[0])
        clock.advance(10)
        await shows(pilot.app, 'Could not delete "Number 0": Resume not found')

        await leads(pilot, "space space space d", "Deleting 3 resumes in 10 s")
        hold = unsteady.hold("write")
        clock.advance(10)
        await until(hold.begun.is_set)
        unsteady.go_away(only="write")
        await hold.arrives(pilot)

        await shows(pilot.app, 'Deleted "Number 1".', f"Could not delete 2 resumes: {AWAY}")
    assert titles(store) == ["Number 2", "Number 3"]


async def test_a_resume_of_the_same_id_in_another_account_stays_and_is_deleted_on_its_own(
    store: Store,
) -> None:
    stored(store, a_document(title="First"))
    a_copy(store, "bob")
    clock = FakeMonotonic()
    async with running(store, "First", account="ana", clock=clock) as pilot:
        await leads(pilot, "d", "Deleting in 10 s")
        await leads(pilot, "a", "Choose account", "bob")
        await leads(pilot, "down enter", "Resumes › bob · 1 of 1", "First")
        await shows_no(pilot.app, "Deleting in 10 s")
        clock.advance(10)
        await shows(pilot.app, 'Deleted "First".', "First")
        assert titles(store) == []

        await leads(pilot, "d", 'Deleting "First" in 10 s')
        clock.advance(10)
        await shows(pilot.app, "no resumes")
    assert titles(store, "bob") == []


# Editing.


def content(store: Store, resume_id: str) -> dict[str, Any]:
    account = accounts.get_account(store, "ana")
    document: dict[str, Any] = json.loads(
        stored_resumes.get_resume(store, account.id, resume_id).document
    )
    return document


@pytest.fixture
def drafts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the texts of edited resumes lie."""
    (folder := tmp_path / "drafts").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.mark.parametrize("opens", [False, True])
async def test_a_resume_is_corrected_in_the_editor_and_keeps_its_id(
    store: Store, editor: Path, drafts: Path, opens: bool
) -> None:
    first, second = stored(store, a_document(title="First"), a_document(title="Second"))
    async with running(store, "First", refresh_s=NEVER_S, size=LARGE) as pilot:
        if opens:
            await leads(pilot, "enter", "ana › First")
        await presses(pilot, "e")
        await tells(pilot.app, "The resume was not changed.")
        assert list(drafts.iterdir()) == []

        (editor / "typed").write_bytes(json.dumps(a_document(title="Better", mood=1)).encode())
        await presses(pilot, "enter", "e") if not opens else await presses(pilot, "e")
        await tells(pilot.app, 'Updated "First", with 1 warning.')
        await shows(pilot.app, "Better")
        if opens:
            await leads(pilot, "escape", "Better", "Second")
    assert content(store, first) == a_document(title="Better", mood=1)
    assert content(store, second) == a_document(title="Second")
    assert list(drafts.iterdir()) == []


async def test_a_text_that_is_no_resume_is_edited_again_or_kept(
    store: Store, editor: Path, drafts: Path
) -> None:
    (first,) = stored(store, a_document(title="First"))
    (editor / "typed").write_bytes(json.dumps(a_document(title=5, style=[])).encode())
    async with running(store, "First", size=LARGE) as pilot:
        await leads(pilot, "e", "Continue editing?", "title: must be a string", "style: must be")
        await presses(pilot, "enter")
        await until(lambda: "Nothing was stored. Your text is in " in "".join(toasts(pilot.app)))
        [draft] = drafts.rglob("*.json")
        assert json.loads(draft.read_bytes())["title"] == 5
        assert content(store, first) == a_document(title="First")

        await leads(pilot, "e", "Continue editing?")
        (editor / "typed").write_bytes(json.dumps(a_document(title="Better")).encode())
        await presses(pilot, "tab", "enter")
        await until(lambda: content(store, first) == a_document(title="Better"))
        assert "+" in (editor / "called").read_text()
    assert [*drafts.rglob("*.json")] == [draft]


# The scenarios of docs/pitfalls.md.


async def test_r4_until_its_ten_seconds_end_a_deletion_has_not_happened(store: Store) -> None:
    clock = FakeMonotonic()
    plans.set_plan_limits(store, plans.PlanChange("business", 1))
    stored(store, a_document(title="First"))
    async with running(store, "First", clock=clock) as pilot:
        await leads(pilot, "d", "Deleting in 10 s")

        assert titles(store) == ["First"]
        assert stored(store, a_document(title="Slips in")) == []
        await leads(pilot, "u", 'Undid the deletion of "First".')

        await presses(pilot, "d")
        clock.advance(10)
        await until(lambda: titles(store) == [])
        assert stored(store, a_document(title="Second"))

    assert titles(store) == ["Second"]


async def test_r5_what_no_index_has_yet_is_told_and_what_is_deleted_is_not_found(
    store: Store,
) -> None:
    (first, _) = stored(store, a_document(title="Analyst"), a_document(title="Analyst too"))
    stored(store, a_document(title="Analyst, new"), is_indexed=False)
    stored_resumes.delete_resume(store, accounts.get_account(store, "ana").id, first)
    async with running(store, "1 of 2", size=LARGE) as pilot:
        await types(
            pilot, "/analyst", "1 of 1", "Analyst too", "The newest resume is not searched yet"
        )


# Labels.


def labels_of(store: Store) -> list[str | None]:
    """The labels of ana's resumes, oldest first."""
    account = accounts.get_account(store, "ana")
    return [entry.label for entry in stored_resumes.list_page(store, account.id, limit=100).entries]


async def test_the_label_is_shown_beside_the_name_once_a_resume_has_one(store: Store) -> None:
    stored(store, a_document(name="Ada", title="First"), a_document(name="Bo", title="Second"))
    async with running(store, "Second", size=LARGE) as pilot:
        assert "LABEL" not in "\n".join(lines(pilot.app))
        await leads(pilot, "j L", 'Label of "Second"')
        await types(pilot, " class 2026 ")
        await leads(pilot, "enter", 'Set the label "class 2026" of "Second".', "label class 2026")
        await shows(pilot.app, "LABEL")
        heading, first, second = (line.split()[1:4] for line in lines(pilot.app)[2:5])
        assert heading == ["NAME", "LABEL", "TITLE"]
        assert (first, second) == (["Ada", "—", "First"], ["Bo", "class", "2026"])
        # On a resume's page, too, once it is loaded.
        await leads(pilot, "enter", "layout Double Column")
        await leads(pilot, "L", 'Label of "Second"', "class 2026")
        await presses(pilot, "ctrl+u")
        await leads(pilot, "enter", 'Removed the label of "Second".')
        await shows_no(pilot.app, "label class 2026")
    assert labels_of(store) == [None, None]


async def test_how_many_versions_a_person_has_is_beside_the_name_and_the_history_lists_them(
    store: Store,
) -> None:
    def a_version(name: str, title: str) -> dict[str, Any]:
        header = {"name": name, "email": f"{name}@example.com"}
        return a_document(title=title) | {"header": header}

    versions = (("Ada", "First"), ("Bo", "Only"), ("Ada", "Second"))
    stored(store, *(a_version(*version) for version in versions))
    async with running(store, "Second", size=LARGE) as pilot:
        rows = [line.split()[1:4] for line in lines(pilot.app)[3:6]]
        twice = "2\N{MULTIPLICATION SIGN}"
        assert rows == [
            ["Ada", twice, "First"],
            ["Bo", "Only", "BoResume.pdf"],
            ["Ada", twice, "Second"],
        ]
        await leads(pilot, "enter", "First")
        await shows(pilot.app, "version 1 of 2 of this person's resume (see History)")
        await leads(pilot, "tab tab tab", "2 versions of this person's resume, newest first:")
        await shows(pilot.app, "First (this one)")


async def test_the_label_of_marked_resumes_is_completed_and_changed(store: Store) -> None:
    ids = stored_many(store, 4)
    account = accounts.get_account(store, "ana")
    labels.set_label(store, account.id, ids[:1], "class-2026")
    async with running(store, "Number 3") as pilot:
        await leads(pilot, "space space j space L", "Label of 3 resumes")
        await types(pilot, "Cl")
        await presses(pilot, "right")
        await leads(pilot, "enter", 'Set the label "class-2026" of 3 resumes.')
        await shows_no(pilot.app, "marked")
        await leads(pilot, "L", 'Label of "Number 3"', "class-2026")
        await types(pilot, "x" * 100)
        await leads(pilot, "escape", "Number 3")
    assert labels_of(store) == ["class-2026", "class-2026", None, "class-2026"]


async def test_what_a_filter_shows_is_marked_and_deleted_at_once_unless_that_is_undone(
    store: Store,
) -> None:
    ids = stored_many(store, 250)
    account = accounts.get_account(store, "ana")
    labels.set_label(store, account.id, ids[:230], "class-2025")
    labels.set_label(store, account.id, ids[230:], "class-2026")
    clock = FakeMonotonic()
    async with running(store, "Number 3", clock=clock) as pilot:
        await presses(pilot, "slash")
        await types(pilot, "label:2025")
        await shows(pilot.app, '"label:2025"')
        await leads(pilot, "enter A", "230 marked", "Marked 230 resumes.")
        assert {*marked(pilot.app)} == {"2025"}
        await leads(pilot, "d", "Deleting 230 resumes in 10 s")
        await leads(pilot, "u", "Undid the deletion of 230 resumes.")
        await leads(pilot, "A", "230 marked")
        await leads(pilot, "x", "Resumes       230 marked")
        await presses(pilot, "escape", "d")
        await shows(pilot.app, "Deleting 230 resumes in 10 s")
        clock.advance(10)
        await shows(pilot.app, "Deleted 230 resumes.")
    assert labels_of(store) == ["class-2026"] * 20
