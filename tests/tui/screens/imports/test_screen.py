"""The imported files: failures first, live, tried again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resumes.errors import StoreUnavailable
from resumes.store import importers, requests, triage
from resumes.store.engine import Store
from resumes.store.ledger import FileOutcome
from tests.resumes.builders import a_document
from tests.resumes.store.builders import an_importer
from tests.tui.builders import HOSTILE, an_account
from tests.tui.clipboards import copied
from tests.tui.driving import LARGE, SMALL, lines, presses, running, shows, until
from tests.tui.hostility import assert_harmless
from tests.tui.screens.imports.builders import ROOT, AnImporter, Gate, a_file, an_id
from tui.screens.confirming import ConfirmDialog
from tui.screens.imports import doing
from tui.screens.imports import screen as imports_screen
from tui.screens.imports.detail import FileScreen
from tui.screens.imports.doing import count_fitting
from tui.screens.imports.reading import read_file
from tui.screens.imports.screen import ImportsScreen

pytestmark = pytest.mark.anyio

FAILED, HELD, DUPLICATE, DONE = (
    FileOutcome.FAILED,
    FileOutcome.HELD,
    FileOutcome.DUPLICATE,
    FileOutcome.DONE,
)
BROKEN = b'{"header": {"name": "Ada Example"}, "sections": [], "title": '


@pytest.fixture(autouse=True)
def _lively(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is seen is read again ten times a second."""
    monkeypatch.setattr(ImportsScreen, "REFRESH_S", 0.1)


@pytest.fixture
def importer(store: Store, tmp_path: Path) -> Iterator[AnImporter]:
    root = tmp_path / "inbox"
    root.mkdir()
    one = AnImporter(store, root)
    yield one
    one.close()


def asked(store: Store) -> dict[str, str]:
    """What is asked for each file, by the first digit of its id."""
    return {one.claim_id[0]: one.action.value for one in requests.list_requests(store)}


def rows(screen: list[str]) -> list[str]:
    """The outcome and the file of each row of the list."""
    found = [line.split() for line in screen if "/cv-" in line]
    return [f"{words[1]} {words[-1]}" for words in found]


def numbers(screen: list[str]) -> list[str]:
    """The numbers of the files named `old-…`, from top to bottom."""
    return [line.partition("old-")[2][:2] for line in screen if "old-" in line]


async def test_what_failed_comes_first_then_held_duplicates_done(store: Store) -> None:
    for number, outcome in enumerate((DONE, FAILED, DUPLICATE, HELD, FAILED), 1):
        a_file(store, an_id(str(number)), outcome, reason="quota_reached")
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "all accounts · failed first · 1 of 5", "the plan is full")
        assert rows(lines(pilot.app)) == [
            "failed ana/cv-5.json",
            "failed ana/cv-2.json",
            "held ana/cv-4.json",
            "duplicate ana/cv-3.json",
            "done ana/cv-1.json",
        ]
        await shows(pilot.app, "✗ 2 failed   ‖ 1 held   = 1 duplicate   ✓ 1 done")


async def test_an_empty_ledger_says_where_to_drop_files(store: Store) -> None:
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "No file was imported from a watched folder yet.", "inbox/ACCOUNT/")
        await shows(pilot.app, "No importer is running: `resumes up` starts one.")
        for key in ("t", "l", "y"):
            await presses(pilot, key)
            await shows(pilot.app, "There is no file here")


async def test_who_watches_is_said_and_what_waits(store: Store) -> None:
    importers.announce(store, an_importer(root=ROOT, waiting=30))
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, f"● watching {ROOT} · heard of", "30 files waiting", "░ 30 waiting")
        importers.announce(store, an_importer(root=ROOT, waiting=15))
        await shows(pilot.app, "██████████░░░░░░░░░░ 15 waiting")


async def test_new_failures_arrive_and_the_cursor_stays(store: Store) -> None:
    for number in range(3, 60):
        a_file(store, f"{number:024x}", name=f"ana/old-{number:02}.json")
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "1 of 57")
        await presses(pilot, *["pagedown"] * 2)
        app = pilot.app
        screen = app.screen
        assert isinstance(screen, ImportsScreen)
        current = screen.list.current
        assert current is not None
        seen = numbers(lines(app))

        for number in range(60, 70):
            a_file(store, f"{number:024x}", name=f"ana/new-{number}.json")

        await shows(app, "of 67")
        assert screen.list.current == current
        assert numbers(lines(app)) == seen
        assert len(seen) > 10


async def test_one_outcome_can_be_shown_alone_and_esc_shows_all(store: Store) -> None:
    a_file(store, an_id("1"))
    a_file(store, an_id("2"), DONE)
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "1 of 2")
        await presses(pilot, "o")
        await shows(pilot.app, "only failed · 1 of 1", "cv-1")
        assert "cv-2" not in "".join(lines(pilot.app))
        await presses(pilot, "o")
        await shows(pilot.app, "No file is held.")
        await presses(pilot, "o", "o")
        await shows(pilot.app, "only done", "cv-2")
        await presses(pilot, "escape")
        await shows(pilot.app, "failed first · 1 of 2")


async def test_the_list_can_be_one_accounts(store: Store) -> None:
    an_account(store, "zoe")
    a_file(store, an_id("1"))
    a_file(store, an_id("2"), account="zoe")
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "1 of 2", "✗ 2 failed")
        await presses(pilot, "a")
        await shows(pilot.app, "(all accounts)", "zoe")
        await presses(pilot, "G", "enter")
        await shows(pilot.app, "zoe · failed first · 1 of 1", "✗ 1 failed")
        assert "ana/cv-1" not in "".join(lines(pilot.app))


async def test_beside_the_list_stands_the_file_at_the_cursor(store: Store) -> None:
    a_file(store, an_id("1"), source=b'{"one": x}', byte_offset=8)
    a_file(store, an_id("2"), source=b'{"two": x}', byte_offset=8)
    async with running(store, screen="imports", size=LARGE) as pilot:
        await shows(pilot.app, '▶ {"two": x}')
        await presses(pilot, "j")
        await shows(pilot.app, '▶ {"one": x}', "_failed/invalid_json, as …-11111111")
        await presses(pilot, "v")
        await until(lambda: "▶" not in "".join(lines(pilot.app)))
        await presses(pilot, "v")
        await shows(pilot.app, '▶ {"one": x}')


async def test_a_failed_file_is_tried_again(store: Store) -> None:
    a_file(store)
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "✗ failed")
        await presses(pilot, "t")
        await shows(pilot.app, "retry asked", "Asked for 1 file, but no importer is running for it")
        assert asked(store) == {"1": "retry"}


async def test_a_held_file_is_let_in(store: Store) -> None:
    importers.announce(store, an_importer(root=ROOT))
    a_file(store, outcome=HELD)
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "‖ held")
        await presses(pilot, "t")
        await shows(pilot.app, "l lets it in")
        assert asked(store) == {}
        await presses(pilot, "l")
        await shows(pilot.app, "release asked", "the importer takes it up within a second")
        assert asked(store) == {"1": "release"}


async def test_all_that_failed_are_tried_again_after_an_explicit_yes(store: Store) -> None:
    an_account(store, "zoe")
    a_file(store, an_id("1"))
    a_file(store, an_id("2"), reason="too_large")
    a_file(store, an_id("3"), HELD)
    a_file(store, an_id("4"), account="zoe")
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "1 of 4")
        await presses(pilot, "R")
        await until(lambda: isinstance(pilot.app.screen, ConfirmDialog))
        await shows(pilot.app, "Files      3", "all accounts", "1 too large")
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, ImportsScreen))
        assert asked(store) == {}

        await presses(pilot, "R")
        await until(lambda: isinstance(pilot.app.screen, ConfirmDialog))
        await presses(pilot, "tab", "enter")
        await shows(pilot.app, "Asked for 3 files")
        assert asked(store) == {"1": "retry", "2": "retry", "4": "retry"}


async def test_all_that_are_held_are_let_in_of_the_account_that_is_shown(store: Store) -> None:
    an_account(store, "zoe")
    a_file(store, an_id("1"), HELD)
    a_file(store, an_id("2"), HELD, account="zoe")
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "1 of 2")
        await presses(pilot, "a")
        await shows(pilot.app, "(all accounts)", "zoe")
        await presses(pilot, "G", "enter")
        await shows(pilot.app, "zoe · failed first · 1 of 1")
        await presses(pilot, "R")
        await shows(pilot.app, "No file of zoe failed: nothing to retry.")

        await presses(pilot, "L")
        await until(lambda: isinstance(pilot.app.screen, ConfirmDialog))
        await presses(pilot, "tab", "enter")

        await shows(pilot.app, "Asked for 1 file")
        assert asked(store) == {"2": "release"}


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """What counting waits at, before it is asked about."""
    gate = Gate(count_fitting)
    monkeypatch.setattr(doing, "count_fitting", gate)
    return gate


async def test_files_counted_for_another_account_are_not_asked_about(
    store: Store, gate: Gate
) -> None:
    an_account(store, "zoe")
    for digit, account in (("1", "ana"), ("2", "zoe")):
        a_file(store, an_id(digit), account=account)
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "1 of 2")
        await presses(pilot, "R")
        await until(lambda: gate.begun == 1)
        await presses(pilot, "a")
        await shows(pilot.app, "(all accounts)", "zoe")
        await presses(pilot, "G", "enter")
        await shows(pilot.app, "zoe · failed first · 1 of 1")

        gate.open()
        await until(lambda: gate.ended == 1)

        await presses(pilot, "R")
        await shows(pilot.app, "Files      1", "Whose      zoe")
        assert len(pilot.app.screen_stack) == 2


@pytest.mark.parametrize(("away", "back"), [("3", "2"), ("a", "escape")])
async def test_a_reader_who_went_elsewhere_is_not_asked(
    store: Store, gate: Gate, away: str, back: str
) -> None:
    a_file(store)
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "1 of 1")
        await presses(pilot, "R")
        await until(lambda: gate.begun == 1)
        await presses(pilot, away)
        await until(lambda: not isinstance(pilot.app.screen, ImportsScreen))
        elsewhere = pilot.app.screen

        gate.open()
        await until(lambda: gate.ended == 1)
        await presses(pilot, "j")
        assert pilot.app.screen is elsewhere

        await presses(pilot, back)
        await until(lambda: isinstance(pilot.app.screen, ImportsScreen))
        await presses(pilot, "R")
        await until(lambda: isinstance(pilot.app.screen, ConfirmDialog))
        assert len(pilot.app.screen_stack) == 2


async def test_a_file_that_takes_long_to_read_appears_beside_the_list(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for digit in "12":
        a_file(store, an_id(digit))
    reading = Gate(read_file)
    monkeypatch.setattr(imports_screen, "read_file", reading)
    refreshes = []
    refresh = ImportsScreen.refresh_beside

    def refresh_beside(screen: ImportsScreen) -> None:
        refresh(screen)
        refreshes.append(reading.begun)

    monkeypatch.setattr(ImportsScreen, "refresh_beside", refresh_beside)
    async with running(store, screen="imports", size=LARGE) as pilot:
        await until(lambda: reading.begun == 1)
        so_far = len(refreshes)
        await until(lambda: len(refreshes) > so_far + 3)
        assert reading.begun == 1
        await presses(pilot, "j")
        await until(lambda: reading.begun == 2)

        reading.open()

        await shows(pilot.app, "as …-11111111")


async def test_a_broken_file_is_mended_and_tried_again(store: Store, importer: AnImporter) -> None:
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "No file was imported")
        importer.drop("ana/ada.json", BROKEN)
        await importer.round()
        await shows(pilot.app, "✗ failed", "not readable as JSON", "ana/ada.json")

        importer.mend(a_document())
        await presses(pilot, "t")
        await shows(pilot.app, "retry asked")
        await importer.round()

        await shows(pilot.app, "✓ done", "Done: ana/ada.json", "✗ 0 failed", "✓ 1 done")


async def test_the_reason_is_copied(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    a_file(store, message="Invalid JSON at byte 1: cut short")
    async with running(store, screen="imports") as pilot:
        await shows(pilot.app, "1 of 1")
        texts = copied(pilot.app, monkeypatch)
        await presses(pilot, "y")
        await shows(pilot.app, "Sent the reason to the terminal's clipboard (OSC 52).")
        assert texts == ["invalid_json: Invalid JSON at byte 1: cut short"]


async def test_while_the_store_is_away_what_was_read_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_file(store)
    async with running(store, screen="imports", size=LARGE) as pilot:
        await shows(pilot.app, "1 of 1", "not readable as JSON")
        with monkeypatch.context() as patch:

            def fail(*_: object, **__: object) -> None:
                raise StoreUnavailable("The store is away")

            patch.setattr(triage, "list_by_outcome", fail)
            await shows(pilot.app, "! The store is away", "Trying again in", "✗ failed")
        await until(lambda: "away" not in "".join(lines(pilot.app)))
        await shows(pilot.app, "✗ failed")


async def test_read_only_has_no_keys_that_ask(store: Store) -> None:
    a_file(store)
    async with running(store, screen="imports", read_only=True) as pilot:
        await shows(pilot.app, "1 of 1")
        assert "Try again" not in lines(pilot.app)[-1]
        for key in ("t", "R", "l", "L"):
            await presses(pilot, key)
            await shows(pilot.app, "Read-only: start without --read-only")
    assert asked(store) == {}


@pytest.mark.parametrize("size", [SMALL, (120, 40), LARGE], ids=str)
async def test_a_hostile_file_draws_nothing_but_text(store: Store, size: tuple[int, int]) -> None:
    a_file(
        store,
        name=f"ana/{HOSTILE}",
        message=HOSTILE,
        path=HOSTILE,
        source=HOSTILE.encode() * 50 + b"\xff\x00\x9b2J",
        byte_offset=20,
        root=HOSTILE,
    )
    async with running(store, screen="imports", size=size) as pilot:
        await shows(pilot.app, "ana/a[/b]c")
        assert_harmless(pilot)
        await presses(pilot, "t")
        await shows(pilot.app, "retry asked", "Asked for 1 file")
        assert_harmless(pilot)
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, FileScreen))
        await shows(pilot.app, "[@click=app.quit]x[/]", "▶")
        assert_harmless(pilot)
        await presses(pilot, "tab", "G", "l")
        await shows(pilot.app, "only held ones can be released")
        assert_harmless(pilot)
        assert pilot.app.is_running
