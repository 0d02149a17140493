"""The pictures of the terminal UI's screens and of the command line, from the samples: `make pictures`.

    .venv/bin/python docs/pictures/draw.py [FOLDER]

Writes a SVG file for each screen, next to this one unless a FOLDER is given. The clock stands
still, ids are drawn by lot from a known number on, and the home is always the same folder, so
the same checkout draws the same pictures.
"""

import asyncio
import contextlib
import os
import random
import re
import secrets
import shutil
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from html import unescape
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, NamedTuple
from unittest.mock import patch

import command_line
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import Input

from cli.commands.demo import drop, find_samples
from importer import service
from resumes.clock import timestamp
from resumes.health import checks
from resumes.health.findings import Finding
from resumes.settings import load_settings
from resumes.store import Store, accounts, api_keys, importers, open_store, plans, search_index
from resumes.store.importers import ImporterReport, ImporterState
from resumes.store.plans import PlanChange
from tui.app import ResumesApp
from tui.keys import MODES, Mode
from tui.session import UiSession, prepare

SIZE: Final = (120, 34)
HOME: Final = Path("/tmp/resumes-pictures")
BEGAN_AT_US: Final = 1_769_850_000_000_000
"""2026-01-31T09:00:00Z."""

STEP_US: Final = 97_000_000
SETTLE_S: Final = 0.02
LIMIT_S: Final = 30.0
STILL_S: Final = 0.3
"""A screen that has not changed for this long is drawn."""

UNFINISHED: Final = re.compile("(?i)checking…|loading")

FURTHER_KEYS: Final = {"resumes": "jjjj", "accounts": "G"}
"""What is pressed on a screen, so that the cursor is where there is something to see."""

FILTER: Final = 'place:porto "project management" syst'
"""What is typed to find resumes, of which the last word is not complete."""

NOT_SHOWN: Final = ("hindi-social-worker-stockholm-hi.json", "unusual-but-legal-values-en.json")
"""Samples with characters that the fonts of many browsers lack at a fixed width."""

TEXT: Final = re.compile(r'textLength="([\d.]+)"([^>]*)>([^<\n]+)<')
FONT_FACE: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
KEY: Final = re.compile(r"enh_live_\w{20}")


class Disk(NamedTuple):
    """As `shutil.disk_usage` answers."""

    total: int
    used: int
    free: int


DISK: Final = Disk(100 << 30, 60 << 30, 40 << 30)
FONTS: Final = Finding("fonts", "fonts for the newest resumes are installed")


class StandingClock:
    """A clock that only advances on request."""

    def __init__(self) -> None:
        self.now_us = BEGAN_AT_US

    def __call__(self) -> int:
        return self.now_us

    def step(self) -> None:
        self.now_us += STEP_US


# The home


@contextlib.contextmanager
def a_home() -> Iterator[Path]:
    """A folder that is there for as long as the pictures are drawn."""
    try:
        HOME.mkdir(mode=0o700)
    except FileExistsError:
        raise SystemExit(f"{HOME} is there already: remove it, unless somebody draws now") from None
    try:
        yield HOME
    finally:
        shutil.rmtree(HOME)


@contextlib.contextmanager
def everywhere_the_same() -> Iterator[None]:
    """During the block lots and the room on the disk come out the same in every run."""
    lots = random.Random(1)
    with (
        patch.object(secrets, "token_hex", lambda nbytes=32: lots.randbytes(nbytes).hex()),
        patch.object(secrets, "choice", lots.choice),
        patch.object(shutil, "disk_usage", lambda place: DISK),
        patch.object(checks, "iter_font_findings", lambda names, home: [FONTS]),
    ):
        yield


def fill(store: Store, inbox: Path, clock: StandingClock, samples: Sequence[Traversable]) -> None:
    """An account with a key, for which the samples were imported, and a running importer."""
    create(store, clock, "demo", "business")
    import_samples(store, inbox, "demo", samples, clock)
    report_importer(store, inbox)


def fill_up(
    store: Store,
    inbox: Path,
    clock: StandingClock,
    good: Sequence[Traversable],
    bad: Sequence[Traversable],
) -> None:
    """Bad samples were dropped, too, and there are two more accounts, of which one is full."""
    import_samples(store, inbox, "demo", bad, clock)
    plans.set_plan_limits(store, PlanChange("trial", 6))
    create(store, clock, "ward", "trial")
    import_samples(store, inbox, "ward", good[:8], clock)
    accounts.create_account(store, "archive", plan="free")
    report_importer(store, inbox)


def report_importer(store: Store, inbox: Path) -> None:
    """An importer runs: it has just reported."""
    began_at = timestamp(BEGAN_AT_US)
    state = ImporterState.OK
    report = ImporterReport(
        id="0" * 24, host="office", pid=4242, root=str(inbox), state=state, started_at=began_at
    )
    importers.register(store, report)


def create(store: Store, clock: StandingClock, name: str, plan: str) -> None:
    """An account with a key is there."""
    accounts.create_account(store, name, plan=plan)
    clock.step()
    new = api_keys.create_key(store, name, name="analyzer")
    api_keys.mark_shown(store, new.id)


def import_samples(
    store: Store, inbox: Path, account: str, samples: Sequence[Traversable], clock: StandingClock
) -> None:
    """The samples were dropped one by one."""
    folder = inbox / account
    folder.mkdir(parents=True, exist_ok=True)
    for sample in samples:
        clock.step()
        drop(sample, folder)
        os.utime(folder / sample.name, ns=(clock.now_us * 1_000,) * 2)
        options = service.Options(once=True, settle_s=SETTLE_S)
        service.watch(
            store,
            inbox,
            options,
            stop=threading.Event(),
            on_file=lambda report: None,
            on_notice=lambda notice: None,
        )


# The pictures


async def draw_filter(session: UiSession, folder: Path) -> None:
    """A picture of resumes that were found is in the folder."""
    async with running(session) as pilot:
        await until_still(pilot)
        pilot.app.screen.query_one(Input).cursor_blink = False
        await pilot.press("/", *FILTER)
        await until_still(pilot)
        drawn = pilot.app.export_screenshot(title="resumes tui: Resumes that match a filter")
        write(folder / "filter.svg", drawn)


async def draw_screens(session: UiSession, modes: Sequence[Mode], folder: Path) -> None:
    """A picture of each of the screens is in the folder."""
    async with running(session) as pilot:
        await until_still(pilot)
        for mode in modes:
            await pilot.press(mode.key, *FURTHER_KEYS.get(mode.name, ()))
            await until_still(pilot)
            drawn = pilot.app.export_screenshot(title=f"resumes tui: {mode.title}")
            write(folder / f"{mode.name}.svg", drawn)


@contextlib.asynccontextmanager
async def running(session: UiSession) -> AsyncIterator[Pilot[int]]:
    """The terminal UI, on its first screen."""
    app = ResumesApp(lambda: session)
    async with app.run_test(size=SIZE) as pilot:
        deadline = time.monotonic() + LIMIT_S
        while app.current_mode != MODES[0].name:
            if time.monotonic() > deadline:
                raise SystemExit("The first screen never came")
            await asyncio.sleep(STILL_S / 4)
        yield pilot


async def until_still(pilot: Pilot[int]) -> None:
    """The screen has loaded everything, and has not changed for a while."""
    deadline = time.monotonic() + LIMIT_S
    before, since = "", time.monotonic()
    while time.monotonic() - since < STILL_S:
        if time.monotonic() > deadline:
            raise SystemExit("The screen never stood still")
        await asyncio.sleep(STILL_S / 4)
        now = pilot.app.export_screenshot()
        if now != before or UNFINISHED.search(now):
            before, since = now, time.monotonic()


def write(path: Path, drawn: str) -> None:
    """The picture is there, and loads nothing. Ends the program if a key is on it."""
    drawn = TEXT.sub(widened, FONT_FACE.sub("", drawn))
    if KEY.search(drawn) or "url(http" in drawn:
        raise SystemExit(f"The picture {path.name} shows a key, or loads something")
    path.write_text(drawn, encoding="utf-8")


def widened(found: re.Match[str]) -> str:
    """The text as wide as a terminal shows it: Rich counts wide characters as narrow ones."""
    text = unescape(found[3])
    width = float(found[1]) / len(text) * cell_len(text)
    return f'textLength="{width:g}"{found[2]}>{found[3]}<'


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    draw(folder)


def draw(folder: Path) -> None:
    """The folder has a picture of every screen, and of the command line."""
    clock = StandingClock()
    with (
        everywhere_the_same(),
        a_home() as home,
        open_store(f"sqlite:///{home}/resumes.db", clock=clock) as store,
    ):
        settings = load_settings(home=home)
        good, bad = find_samples()
        good = [sample for sample in good if sample.name not in NOT_SHOWN]
        # The first screen is of an installation that is well, the others of what may go wrong.
        first, *others = MODES
        fill(store, settings.inbox, clock, good)
        session = prepare(store, settings=settings)
        session.accounts["resumes"] = "demo"
        asyncio.run(draw_screens(session, [first], folder))
        demo = accounts.get_account(store, "demo")
        search_index.catch_up(store, demo.id, timeout_s=LIMIT_S)
        asyncio.run(draw_filter(prepare(store, account="demo", settings=settings), folder))
        fill_up(store, settings.inbox, clock, good, bad)
        asyncio.run(draw_screens(prepare(store, settings=settings), others, folder))
        write(folder / "command-line.svg", command_line.picture(home))


if __name__ == "__main__":
    main()
