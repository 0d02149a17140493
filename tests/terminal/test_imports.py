"""The imported files: failures first, as it happens, retried, released."""

import asyncio
import functools
import json
import os
from pathlib import Path

import pytest

from resumes.settings import Settings
from resumes.store import import_history, import_requests, importers, open_store
from resumes.store.import_ledger import FileOutcome, Items
from resumes.store.importers import ImporterFinding, ImporterState
from resumes.store.store import Store
from tests.support.clocks import SteppingClock
from tests.support.store.builders import an_importer
from tests.support.terminal.builders import (
    ROOT,
    AnImporter,
    a_copy,
    a_document,
    a_file,
    an_account,
    an_id,
)
from tests.support.terminal.driving import (
    LARGE,
    NEVER_S,
    SOON_S,
    copied,
    leads,
    lines,
    presses,
    running,
    shows,
    shows_no,
    tells,
    toasts,
    types,
    until,
)
from tests.support.terminal.outages import UnsteadyStore

pytestmark = pytest.mark.anyio

FAILED, HELD, DUPLICATE, DONE = (
    FileOutcome.FAILED,
    FileOutcome.HELD,
    FileOutcome.DUPLICATE,
    FileOutcome.DONE,
)

BROKEN = b'{"header": {"name": "Ada Example"}, "sections": [], "title": '


def asked(store: Store) -> dict[str, str]:
    """What is asked for each file, by the first digit of its id."""
    return {one.claim_id[0]: one.action for one in import_requests.list_requests(store)}


async def test_a_file_that_is_done_with_warnings_is_marked(store: Store) -> None:
    warned = Items(0, 0, 0, 0, 0, warnings=3)
    a_file(store, an_id("1"), DONE, items=warned)
    a_file(store, an_id("2"), DONE)
    a_file(store, an_id("3"), DONE, items=Items(2, 2, 0, 0, 0, warnings=1, skipped=4))
    async with running(store, screen="imports", size=(150, 50)) as pilot:
        await shows(pilot.app, "✓ done", "! done: 1 warning")
        await leads(pilot, "down down", "! done: 3 warnings", "in the report next to")
        await leads(pilot, "up up", "! done: 1 warning", "Skipped    4 members, named in")
        await types(pilot, "/warnings")
        await shows_no(pilot.app, "ana/cv-2.json")
        await shows(pilot.app, "ana/cv-1.json", "ana/cv-3.json")


async def test_one_outcome_can_be_shown_alone_and_esc_shows_all(store: Store) -> None:
    a_file(store, an_id("1"))
    a_file(store, an_id("2"), DONE)
    async with running(store, "1 of 2", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "o", "only failed · 1 of 1", "cv-1")
        await shows_no(pilot.app, "cv-2")
        await leads(pilot, "o", "No held files.")
        await leads(pilot, "o o", "only done", "cv-2")
        await leads(pilot, "escape", "failed first · 1 of 2")


async def test_beside_the_list_stands_the_file_at_the_cursor_also_if_reading_takes_long(
    store: Store,
) -> None:
    a_file(store, an_id("1"), source=b'{"one": x}', byte_offset=8)
    a_file(store, an_id("2"), source=b'{"two": x}', byte_offset=8)
    unsteady = UnsteadyStore(store)
    async with running(unsteady, screen="imports", refresh_s=SOON_S, size=LARGE) as pilot:
        await shows(pilot.app, '▶ {"two": x}')
        with unsteady.held_reads() as reading:
            await presses(pilot, "j")
            await until(reading.begun.is_set)
            await asyncio.sleep(3 * SOON_S)  # it is time to read it again, again and again
        await shows(pilot.app, '▶ {"one": x}', "_failed/invalid_json, as …-11111111")
        await presses(pilot, "v")
        await shows_no(pilot.app, "▶")
        await leads(pilot, "v", '▶ {"one": x}')


async def test_a_failed_file_is_retried_and_a_held_one_released(store: Store) -> None:
    a_file(store, an_id("1"))
    a_file(store, an_id("2"), HELD)
    async with running(store, "1 of 2", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "t", "retry requested", "Queued 1 file for retry, but no importer is")
        importers.register(store, an_importer(root=ROOT))
        await leads(pilot, "G t", "Press l to release this one.")
        await until(lambda: asked(store) == {"1": "retry"})
        await leads(pilot, "l", "release requested", "Queued 1 file for release; it will be")
        await until(lambda: asked(store) == {"1": "retry", "2": "release"})


async def test_all_that_failed_are_tried_again_after_an_explicit_yes(store: Store) -> None:
    an_account(store, "zoe")
    a_file(store, an_id("1"))
    a_file(store, an_id("2"), reason="too_large")
    a_file(store, an_id("3"), HELD)
    a_file(store, an_id("4"), account="zoe")
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "1 of 4", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "R", "Files      3", "all accounts", "too large (1)")
        await leads(pilot, "enter", "OUTCOME")
        assert asked(store) == {}

        # A filtered list is read again once they are asked for.
        await types(pilot, "/cv\n", '"cv"', "1 of 4")
        await leads(pilot, "R", "Cancel")
        asking = unsteady.hold("write")
        await leads(pilot, "tab enter", "Queuing…")
        await until(asking.begun.is_set)
        await shows(pilot.app, "OUTCOME", "✗ failed")
        await asking.arrives(pilot)
        await shows(pilot.app, "Queued 3 files", "retry requested")
        assert asked(store) == {"1": "retry", "2": "retry", "4": "retry"}


async def test_all_held_files_of_the_account_shown_are_released(store: Store) -> None:
    an_account(store, "zoe")
    a_file(store, an_id("1"), HELD)
    a_file(store, an_id("2"), HELD, account="zoe")
    async with running(store, "1 of 2", "‖ 2 held", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "a", "(all accounts)", "zoe")
        await leads(pilot, "G enter", "zoe · failed first · 1 of 1", "‖ 1 held")
        await shows_no(pilot.app, "ana/cv-1")
        await leads(pilot, "R", "No failed files in zoe: nothing to retry.")

        await leads(pilot, "L", "Cancel")
        await leads(pilot, "tab enter", "Queued 1 file")
        await until(lambda: asked(store) == {"2": "release"})


async def test_a_broken_file_is_fixed_and_retried_and_that_is_told_once(
    store: Store, importer: AnImporter
) -> None:
    async with running(store, "No files imported", screen="imports", refresh_s=SOON_S) as pilot:
        importer.drop("ana/ada.json", BROKEN)
        await importer.round()
        await shows(pilot.app, "✗ failed", "invalid JSON", "ana/ada.json")
        importer.failed.write_bytes(json.dumps(a_document()).encode())
        await leads(pilot, "t", "retry requested")
        await importer.round()
        await shows(pilot.app, "✓ done", "Done: ana/ada.json", "✗ 0 failed", "✓ 1 done")

        await presses(pilot, "g")
        told: list[str] = []

        def is_there(name: str) -> bool:
            told.extend(toasts(pilot.app))
            return any(name in line for line in lines(pilot.app))

        for number in range(2):  # the list is read again and again
            importer.drop(f"ana/{number}.json", BROKEN)
            await importer.round()
            await until(functools.partial(is_there, f"ana/{number}.json"))

        assert told == []


@pytest.mark.parametrize("opens", [False, True])
async def test_the_path_the_reason_or_the_id_is_copied(
    store: Store, importer: AnImporter, monkeypatch: pytest.MonkeyPatch, opens: bool
) -> None:
    importer.drop("ana/cv.json", b"[")
    await importer.round()
    [file] = import_history.list_files(store)
    async with running(store, "1 of 1", screen="imports", refresh_s=SOON_S) as pilot:
        if opens:
            await leads(pilot, "enter", "ana/cv.json · ✗ failed")
        texts = copied(pilot.app, monkeypatch)
        for keys, what in ("enter", "path"), ("j enter", "reason"), ("j j enter", "ID"):
            await leads(pilot, "y", "─ Copy ─", "reason      invalid_json: ")
            await leads(pilot, keys, f"Sent the {what} to the clipboard (OSC 52).")
    assert Path(texts[0]).read_bytes() == b"["
    assert texts[1:] == [f"invalid_json: {file.message}", file.claim_id]


# What stands above the list.


async def test_an_empty_ledger_says_where_to_drop_files(store: Store) -> None:
    async with running(
        store, screen="imports", settings=Settings(home=Path("h")), program="res --home 'a b'"
    ) as pilot:
        await shows(pilot.app, "No files imported from the inbox yet.", "h/inbox/ACCOUNT/")
        await shows(pilot.app, "Importer not running. Start it with `res --home 'a b' up`.")
        for key, what in ("t", "file to retry"), ("l", "file to release"), ("y", "file to copy"):
            await leads(pilot, key, f"No {what}.")


async def test_who_watches_is_said_with_what_waits_and_what_people_should_know(
    store: Store,
) -> None:
    importers.register(store, an_importer(waiting=30))
    async with running(store, screen="imports", refresh_s=SOON_S) as pilot:
        await shows(pilot.app, f"● watching {ROOT} · last seen", "30 files waiting", "░ 30 waiting")
        importers.register(store, an_importer(waiting=15))
        await shows(pilot.app, "██████████░░░░░░░░░░ 15 waiting")
        importers.register(store, an_importer(waiting=1))
        await shows(pilot.app, "1 file waiting")
        importers.register(store, an_importer(waiting=0))
        await shows(pilot.app, "no files waiting")
        await shows_no(pilot.app, "░")
        for state, sign in (ImporterState.POLLING, "●"), (ImporterState.DEGRADED, "!"):
            finding = ImporterFinding("root", state, "The folder is on a share.")
            importers.register(store, an_importer(state=state, findings=(finding,)))
            told = f"  {state}: The folder is on a share."
            await shows(pilot.app, f"{sign} watching {ROOT}", told)


async def test_an_importer_that_is_silent_is_said_to_be_and_of_many_the_first_are_told(
    empty_store: Store,
) -> None:
    clock = SteppingClock()
    with open_store(empty_store.url, clock=clock) as store:
        importers.register(store, an_importer())
        clock.advance(180)
        async with running(store, screen="imports", refresh_s=SOON_S) as pilot:
            await shows(
                pilot.app,
                f"○ {ROOT}: importer has not responded for 3 minutes",
                "○ Importer not running. Start it with `resumes up`.",
            )
            for number in range(5):
                importers.register(store, an_importer(f"{number:024x}", root=f"/srv/{number}"))
            await shows(pilot.app, "● watching", "and 3 more importers")
            assert len([line for line in lines(pilot.app) if "● watching" in line]) == 3


# What comes late, and what comes in between.


@pytest.mark.parametrize(
    ("away", "there", "back", "files"),
    [("3", "business", "2", 2), ("a", "Choose account", "escape", 2)],
)
async def test_a_reader_who_went_elsewhere_is_not_asked(
    store: Store, away: str, there: str, back: str, files: int
) -> None:
    an_account(store, "zoe")
    for digit, account in (("1", "ana"), ("2", "zoe")):
        a_file(store, an_id(digit), account=account)
    unsteady = UnsteadyStore(store)
    async with running(unsteady, screen="imports", refresh_s=NEVER_S) as pilot:
        await shows(pilot.app, "1 of 2", "✗ 2 failed")
        counting = await unsteady.holds_back(pilot, "R")
        await leads(pilot, away, there)

        await counting.arrives(pilot)
        await leads(pilot, "j", there)

        await leads(pilot, back, "OUTCOME")
        await leads(pilot, "R", f"Files      {files}")


# Editing a file


async def test_a_failed_file_is_edited_at_its_fault_and_retried(
    store: Store, importer: AnImporter, editor: Path
) -> None:
    importer.drop("ana/cv.json", b'{"header": {},\n "sections": {},\n "title": 1}')
    await importer.round()
    path = importer.failed
    # What editors leave beside it.
    for left in (f"{path.name}~", f"{path.name}.bak", f".{path.name}.swp", f".#{path.name}"):
        path.with_name(left).write_bytes(BROKEN)
    async with running(store, screen="imports", refresh_s=SOON_S, size=LARGE) as pilot:
        await shows(pilot.app, "✗ failed", "1 of 1", "Location ")
        await presses(pilot, "e")
        await tells(pilot.app, "The file was not changed.")
        assert (editor / "called").read_text() == f"-u NO NE +3 {path}\n"
        assert asked(store) == {}

        (editor / "typed").write_bytes(json.dumps(a_document(title="Nurse")).encode())
        await presses(pilot, "enter", "e")
        await until(lambda: "Queued 1 file for retry" in "".join(toasts(pilot.app)))
        await importer.round()
        await shows(pilot.app, "✓ done")


@pytest.mark.parametrize("kind", ["link", "pipe"])
async def test_what_is_no_file_is_not_edited(
    store: Store, importer: AnImporter, editor: Path, kind: str
) -> None:
    importer.drop("ana/cv.json", BROKEN)
    await importer.round()
    path = importer.failed
    path.unlink()
    if kind == "link":
        path.symlink_to(editor / "elsewhere")
        (editor / "elsewhere").write_bytes(BROKEN)
    else:
        os.mkfifo(path)
    async with running(store, "1 of 1", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "e", "The file is no longer in _failed/")
    assert not (editor / "called").exists()


async def test_the_editor_is_the_user_s_own_or_vi(
    store: Store, importer: AnImporter, editor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("nano", "mg", "vi"):
        program = editor / "bin" / name
        program.write_text(f"#!/bin/sh\necho {name} > {editor}/called\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(editor / "bin"), prepend=":")
    importer.drop("ana/cv.json", BROKEN)
    await importer.round()
    async with running(store, "1 of 1", screen="imports", refresh_s=SOON_S) as pilot:
        for visual, own, called in (("nano", "mg", "nano"), ("", "mg", "mg"), ("", "", "vi")):
            monkeypatch.setenv("VISUAL", visual)
            monkeypatch.setenv("EDITOR", own)
            await presses(pilot, "e")
            await tells(pilot.app, "The file was not changed.")
            assert (editor / "called").read_text() == f"{called}\n"
            await presses(pilot, "j")


async def test_an_editor_that_fails_or_moves_the_file_retries_nothing(
    store: Store, importer: AnImporter, editor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    importer.drop("ana/cv.json", BROKEN)
    await importer.round()
    vim = editor / "bin" / "vim"
    vim.write_text('#!/bin/sh\nfor path; do :; done\nmv "$path" "$path.moved"\n')
    (editor / "bin" / "failing").write_text("#!/bin/sh\nexit 1\n")
    (editor / "bin" / "failing").chmod(0o755)
    async with running(store, "1 of 1", screen="imports", refresh_s=SOON_S) as pilot:
        for command, told in (
            (editor / "bin" / "failing", "failing failed (exit code 1)."),
            (editor / "nowhere", "No such file or directory."),
            ("vim '", "Cannot run the editor"),
            (vim, "The file was moved or deleted in the meantime, so nothing was saved."),
        ):
            monkeypatch.setenv("VISUAL", f"{command}")
            await presses(pilot, "e")
            await until(lambda told=told: told in "".join(toasts(pilot.app)))  # type: ignore[misc]
    assert asked(store) == {}


async def test_files_of_the_same_id_in_two_accounts_are_marked_one_by_one(store: Store) -> None:
    for digit in "12":
        a_file(store, an_id(digit))
    a_copy(store, "bob")
    async with running(store, "1 of 4", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "space", "1 marked")
        assert sum("● " in line for line in lines(pilot.app)) == 1
        await leads(pilot, "space", "2 marked")
        await leads(pilot, "t", "Queued 2 files for retry")
    asked_for = [(one.claim_id, one.account_id) for one in import_requests.list_requests(store)]
    assert len(set(asked_for)) == 2
    assert {claim_id for claim_id, _ in asked_for} == {an_id("2")}


async def test_failed_files_are_dismissed_after_a_question_and_stay_where_they_are(
    store: Store, importer: AnImporter, tmp_path: Path
) -> None:
    for name, content in (("1", BROKEN), ("2", BROKEN), ("3", json.dumps(a_document()).encode())):
        importer.drop(f"ana/cv-{name}.json", content)
        await importer.round()
    before = sorted((tmp_path / "inbox").rglob("*"))
    async with running(store, "1 of 3", "✗ 2 failed", screen="imports", refresh_s=SOON_S) as pilot:
        await leads(pilot, "space down space D", "Dismiss ana/cv-2.json?", "stay where they are.")
        await leads(pilot, "tab enter", "2 of 2", "✗ 1 failed", "cv-1")
        await shows_no(pilot.app, "ana/cv-2.json  ")
        await leads(pilot, "g enter D", "Dismiss ana/cv-1.json?")
        await leads(pilot, "tab enter", "1 of 1", "✗ 0 failed")
        await leads(pilot, "D", "Only failed files can be dismissed.")
    await importer.round()
    assert sorted((tmp_path / "inbox").rglob("*")) == before
