"""A store of its own for every test of the terminal UI, and asyncio to run it in."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from resumes.store.store import Store
from tests.support.stores import open_home
from tests.support.terminal.builders import AnImporter, an_account
from tui.widgets.bars import Glance


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual waits for an idle 20 ms twice after each key; our tests poll what they assert.

    What is counted down is counted faster, and looked at more often. Screens are drawn less often
    and nothing slides: no person watches, and that saves a quarter of what these tests cost.
    """
    monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", 0.004)
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", 0.05)
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setattr("tui.widgets.bars.TICK_S", 0.1)
    monkeypatch.setattr("tui.screens.resumes.TICK_S", 0.1)
    monkeypatch.setattr("tui.app.DUE_CHECK_S", 0.05)


@pytest.fixture(scope="session", autouse=True)
def _drawn_when_looked_at() -> Iterator[None]:
    """Without a terminal, Textual draws each change all the same, and throws it away; a test draws what
    it looks at. Only a whole screen, for a picture, is drawn as always."""
    draw = Compositor.render_update

    def draw_whole(compositor: Compositor, full: bool = False, **options: Any) -> Any:
        if full:
            return draw(compositor, full, **options)
        visible_screen_stack.set(options["screen_stack"])
        compositor._dirty_regions.clear()
        return None

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Compositor, "render_update", draw_whole)
        yield


@pytest.fixture(scope="session", autouse=True)
def _styles_parsed_once() -> Iterator[None]:
    """Textual parses the style sheets for each app; those of our apps are the same."""
    parse: Any = Stylesheet._parse_rules
    kept: dict[tuple[object, ...], list[RuleSet]] = {}

    def parse_once(sheet: Any, *source: object, **options: object) -> list[RuleSet]:
        key = (*source, *options.items(), *sheet._variables.items())
        if key not in kept:
            kept[key] = parse(sheet, *source, **options)
        return kept[key]

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Stylesheet, "_parse_rules", parse_once)
        yield


@pytest.fixture
def header() -> None:
    """For tests of the first line: it is read, as it is outside of tests."""


@pytest.fixture(autouse=True)
def _header_unread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read for the first line, where a test does not ask for `header`: what a test
    holds back or counts is then what it asked for."""
    if "header" not in request.fixturenames:
        monkeypatch.setattr("tui.screens.health.read_glance", lambda *_, **__: Glance())


@pytest.fixture(autouse=True)
def _lasting_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message is there until the next one, however long a test takes to look at it."""
    for user in "tui.text", "tui.widgets.bars":
        monkeypatch.setattr(f"{user}.SHOWN_S", 3_600.0)


@pytest.fixture
def empty_store(tmp_path: Path) -> Iterator[Store]:
    """A store without accounts."""
    with open_home(tmp_path) as store:
        yield store


@pytest.fixture
def store(empty_store: Store) -> Store:
    """A store with the account ana, on the business plan and without resumes."""
    an_account(empty_store, "ana")
    return empty_store


@pytest.fixture
def importer(store: Store, tmp_path: Path) -> Iterator[AnImporter]:
    """An importer of the store, which does what it is told to."""
    root = tmp_path / "inbox"
    root.mkdir()
    one = AnImporter(store, root)
    yield one
    one.close()


@pytest.fixture
def editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A `vim` that notes what it is called with, and appends what the file `typed` holds."""
    program = tmp_path / "bin" / "vim"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/called\n'
        f'for path; do :; done\n[ -e {tmp_path}/typed ] && cat {tmp_path}/typed > "$path"\n'
        "exit 0\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("VISUAL", f"{program} -u 'NO NE'")
    # There is no terminal to hand over.
    monkeypatch.setattr(App, "suspend", lambda _: contextlib.nullcontext())
    return tmp_path
