"""Health: what is wrong, the worst first, and what to do about it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from resumes.settings import Settings
from resumes.store import importers
from resumes.store.importers import ImporterFinding, ImporterState
from resumes.store.store import Store
from tests.support.terminal.builders import a_file, an_importer
from tests.support.terminal.driving import (
    NEVER_S,
    SMALL,
    SOON_S,
    copied,
    leads,
    lines,
    presses,
    running,
    shows,
    tells,
    until,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with which all is well."""
    tmp_path.chmod(0o700)
    return tmp_path


def a_file_of_nobody(folder: Path) -> None:
    """A folder of no account, in which a file waits."""
    folder.mkdir(parents=True)
    (folder / "ada.json").touch()


async def test_the_worst_comes_first_and_its_remedy_is_read_below(store: Store, home: Path) -> None:
    a_file_of_nobody(home / "inbox" / "nobody")
    a_file(store)
    async with health(store, home) as pilot:
        await shows(
            pilot.app,
            "✗ 1 error · ! 1 warning · ✓ 12 ok",
            "0 done, 1 failed, 0 held",
            "✗  inbox     the folder",
            "→ resumes --home /srv accounts create nobody, or rename the folder",
        )
        await leads(pilot, "j", "→ See why: resumes --home /srv imports list --outcome failed")
        order = [line[1] for line in lines(pilot.app) if line[1:2] in "✗!✓" and line[2:4] == "  "]
        assert order[:3] == ["✗", "!", "✓"]


async def test_c_copies_the_command_of_the_remedy_or_says_why_not(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("nobody", "not a name"):
        a_file_of_nobody(home / "inbox" / name)
    async with health(store, home) as pilot:
        texts = copied(pilot.app, monkeypatch)
        for keys, told in (
            ("c", "Sent the command to the clipboard (OSC 52)."),
            ("j c", "No command to copy for this finding."),
            ("j c", "Nothing to fix here."),
        ):
            await presses(pilot, *keys.split())
            await tells(pilot.app, told)
        assert texts == ["resumes --home /srv accounts create nobody"]


async def test_a_command_that_would_act_when_pasted_is_copied_in_quotes(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_home = home / "a\x1b[201~b"
    open_home.mkdir(mode=0o755)
    async with health(store, open_home) as pilot:
        texts = copied(pilot.app, monkeypatch)
        await presses(pilot, "c")
        await until(lambda: texts)
        assert texts == [f"chmod o-rwx $'{home}/a\\x1b\\x5b201\\x7eb'"]


async def test_enter_shows_the_finding_in_full_and_escape_closes_it(
    store: Store, home: Path
) -> None:
    sentence = "The folder is closed. " * 60
    announced = an_importer(
        state=ImporterState.DEGRADED,
        findings=(ImporterFinding("closed", ImporterState.DEGRADED, f"{sentence}The end."),),
    )
    importers.register(store, announced)
    async with health(store, home) as pilot:
        await leads(pilot, "enter", "importer: error")
        await leads(pilot, "G", "The end")

        await leads(pilot, "escape", "Health · ")


@asynccontextmanager
async def health(
    store: Store, home: Path, *, size: tuple[int, int] = SMALL, refresh_s: float | None = None
) -> AsyncIterator[Pilot[int]]:
    """The screen, its findings on it."""
    async with running(
        store,
        screen="health",
        size=size,
        settings=Settings(home=home),
        program="resumes --home /srv",
        refresh_s=refresh_s,
    ) as pilot:
        await shows(pilot.app, "Health · ", "Disk")
        yield pilot


async def test_what_is_new_arrives_while_the_cursor_stays_on_its_row(
    store: Store, home: Path
) -> None:
    a_file_of_nobody(home / "inbox" / "nobody")
    async with health(store, home, refresh_s=SOON_S) as pilot:
        await leads(pilot, "j", "✓ settings  valid")
        a_file_of_nobody(home / "inbox" / "nobody else")

        await shows(pilot.app, "✗ 2 errors", "✓ settings  valid")
        await leads(pilot, "k", "✗ inbox  the folder")


async def test_r_looks_again_at_what_takes_long_too(store: Store, home: Path) -> None:
    async with health(store, home, refresh_s=NEVER_S) as pilot:
        await shows(pilot.app, "0 done, 0 failed, 0 held")
        a_file(store)
        await leads(pilot, "r", "1 failed file needs attention", "0 done, 1 failed, 0 held")
