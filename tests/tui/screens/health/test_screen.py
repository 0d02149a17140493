"""The Health screen."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from resumes.errors import StoreUnavailable
from resumes.settings import Settings
from resumes.store import accounts, importers, keys
from resumes.store.engine import Store
from resumes.store.importers import Finding, State
from tests.resumes.store.builders import a_file, an_importer
from tests.tui.builders import HOSTILE, an_account, stored_many
from tests.tui.clipboards import copied
from tests.tui.driving import LARGE, SMALL, lines, presses, shows, until
from tests.tui.hostility import assert_harmless
from tui.app import ResumesApp
from tui.screens.health.dialog import FindingDialog
from tui.screens.health.screen import HealthScreen
from tui.session import Session

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with which all is well."""
    tmp_path.chmod(0o700)
    return tmp_path


@asynccontextmanager
async def health(
    store: Store, home: Path, *, size: tuple[int, int] = SMALL
) -> AsyncIterator[Pilot[int]]:
    """The screen, its findings on it."""
    session = Session(store, settings=Settings(home=home), program="resumes --home /srv")
    app = ResumesApp(lambda: session, screen="health")
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(lambda: isinstance(app.screen, HealthScreen) and app.screen.list.pages.count)
        yield pilot


def screen_of(pilot: Pilot[int]) -> HealthScreen:
    assert isinstance(pilot.app.screen, HealthScreen)
    return pilot.app.screen


def toasts(pilot: Pilot[int]) -> list[str]:
    return [toast.message for toast in pilot.app._notifications]


async def test_where_all_is_well_it_says_so(store: Store, home: Path) -> None:
    stored_many(store, 3)
    async with health(store, home) as pilot:
        await shows(pilot.app, "Health · ✓ 13 well", "3 in 1 account", "0 live, 0 files waiting")
        await shows(pilot.app, "✓  settings  can be used", "Nothing needs to be done.")


async def test_the_worst_comes_first_and_its_remedy_is_read_below(store: Store, home: Path) -> None:
    (home / "inbox" / "nobody").mkdir(parents=True)
    a_file(store, accounts.get_account(store, "ana"))
    async with health(store, home) as pilot:
        await shows(
            pilot.app,
            "✗ 1 wrong · ! 1 to look at · ✓ 11 well",
            "0 done, 1 failed, 0 held",
            "✗  inbox     the folder",
            "→ resumes --home /srv accounts create nobody, or rename the folder",
        )
        await presses(pilot, "j")
        await shows(pilot.app, "→ See why: resumes --home /srv imports list --outcome failed")
        order = [line[1] for line in lines(pilot.app) if line[1:2] in "✗!✓" and line[2:4] == "  "]
        assert order[:3] == ["✗", "!", "✓"]


async def test_wide_terminals_show_what_to_do_beside_it(store: Store, home: Path) -> None:
    (home / "inbox" / "nobody").mkdir(parents=True)
    async with health(store, home, size=LARGE) as pilot:
        await shows(pilot.app, "WHAT TO DO")
        [row] = [line for line in lines(pilot.app) if line.startswith(" ✗  inbox")]
        assert "resumes --home /srv accounts create" in row


async def test_c_copies_the_command_of_the_remedy(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "inbox" / "nobody").mkdir(parents=True)
    async with health(store, home) as pilot:
        texts = copied(pilot.app, monkeypatch)
        await presses(pilot, "c")

        await until(lambda: texts)
        assert texts == ["resumes --home /srv accounts create nobody"]
        assert toasts(pilot)[-1] == "Sent the command to the terminal's clipboard (OSC 52)."


async def test_where_nothing_can_be_copied_c_says_why(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "inbox" / "not a name").mkdir(parents=True)
    async with health(store, home) as pilot:
        texts = copied(pilot.app, monkeypatch)
        await presses(pilot, "c")
        assert toasts(pilot)[-1] == "What to do here is no command that could be copied."

        await presses(pilot, "j", "c")
        assert toasts(pilot)[-1] == "There is nothing to put right here."
        assert texts == []


async def test_a_command_that_would_act_when_pasted_is_not_copied(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_home = home / "a\x1b[201~b"
    open_home.mkdir(mode=0o755)
    async with health(store, open_home) as pilot:
        texts = copied(pilot.app, monkeypatch)
        await presses(pilot, "c")

        assert toasts(pilot)[-1].startswith("The command holds characters")
        assert texts == []


async def test_enter_shows_the_finding_in_full_and_escape_closes_it(
    store: Store, home: Path
) -> None:
    sentence = "The folder is closed. " * 60
    announced = an_importer(
        state=State.DEGRADED, findings=(Finding("closed", State.DEGRADED, f"{sentence}The end."),)
    )
    importers.announce(store, announced)
    async with health(store, home) as pilot:
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, FindingDialog))
        await shows(pilot.app, "importer: wrong")
        await presses(pilot, "G")
        await shows(pilot.app, "The end")

        await presses(pilot, "escape")

        assert isinstance(pilot.app.screen, HealthScreen)


async def test_what_is_new_arrives_while_the_cursor_stays_on_its_row(
    store: Store, home: Path
) -> None:
    (home / "inbox" / "nobody").mkdir(parents=True)
    async with health(store, home) as pilot:
        screen = screen_of(pilot)
        await presses(pilot, "j", "j", "j")
        before = screen.list.current
        assert before is not None
        (home / "inbox" / "nobody else").mkdir()
        an_account(store, "full", plan="free")
        stored_many(store, 5, account="full")

        screen.refresh_rows()

        await shows(pilot.app, "✗ 2 wrong · ! 1 to look at")
        current = screen.list.current
        assert current is not None
        assert (current.subject, screen.list.cursor) == (before.subject, 5)


async def test_r_looks_again_at_what_takes_long_too(store: Store, home: Path) -> None:
    async with health(store, home) as pilot:
        screen = screen_of(pilot)
        kept = screen._slow.file_tallies
        kept._last = (kept.get(store), float("inf"))
        a_file(store, accounts.get_account(store, "ana"))

        await presses(pilot, "r")

        await shows(pilot.app, "1 file failed", "0 done, 1 failed, 0 held")


async def test_while_the_store_is_away_the_last_findings_stay(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Store) -> None:
        raise StoreUnavailable("The store is locked")

    async with health(store, home) as pilot:
        await shows(pilot.app, "✓  settings  can be used")
        with monkeypatch.context() as patched:
            patched.setattr(accounts, "list_accounts", fail)
            screen_of(pilot).refresh_rows()
            await shows(pilot.app, "! The store is locked.", "Trying again in", "✓  settings")

        await presses(pilot, "r")

        await until(lambda: "The store is locked" not in "\n".join(lines(pilot.app)))
        await shows(pilot.app, "Health · ✓ 13 well")


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
async def test_hostile_names_draw_nothing_but_text(
    store: Store, home: Path, size: tuple[int, int]
) -> None:
    (home / "inbox" / HOSTILE.replace("/", "_")).mkdir(parents=True)
    name = "".join(filter(str.isprintable, HOSTILE))
    keys.create_key(store, "ana", name=name)
    hostile = an_importer(
        root=HOSTILE, state=State.DEGRADED, findings=(Finding("a", State.DEGRADED, HOSTILE),)
    )
    importers.announce(store, hostile)
    async with health(store, home, size=size) as pilot:
        await shows(pilot.app, "✗ 2 wrong")
        for key in ("j", "k", "enter"):
            assert_harmless(pilot)
            await presses(pilot, key)
        await shows(pilot.app, "[@click=app.quit]x[_]")
        assert_harmless(pilot)
        assert pilot.app.is_running
