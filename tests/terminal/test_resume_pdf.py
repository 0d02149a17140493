"""A resume opened as a PDF: drawn, kept as a private file, shown by another program, and gone."""

import re
import shutil
import stat
import sys
from pathlib import Path

import pytest
from textual.app import App

from resumes.settings import Settings
from resumes.store.store import Store
from tests.support.pdfs import add_cjk_font, find_cjk_fonts
from tests.support.terminal.builders import a_document, a_section, stored
from tests.support.terminal.console import PROGRAM, console
from tests.support.terminal.driving import (
    at_rest,
    copied,
    leads,
    presses,
    running,
    shows,
    tells,
    toasts,
    types,
    until,
)

pytestmark = pytest.mark.anyio

DRAWING = "Generating the PDF…"
LONG = a_section("summaries", *({"text": "word " * 3_000} for _ in range(15)))
"""More than is drawn."""


@pytest.fixture(autouse=True)
def _no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")


class FakeViewer:
    """A display, and an `xdg-open` that notes what it is given."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._seen = folder / "seen"
        folder.mkdir()
        self.ends_with(0)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        monkeypatch.setenv("DISPLAY", ":9")

    def ends_with(self, code: int) -> None:
        script = self._folder / "xdg-open"
        script.write_text(f'#!/bin/sh\necho noise\necho "$1" >> {self._seen}\nexit {code}\n')
        script.chmod(0o700)

    async def is_given(self, files: int = 1) -> list[Path]:
        """So many files that it was given."""
        await until(lambda: len(self._read()) == files)
        return self._read()

    def _read(self) -> list[Path]:
        if not self._seen.exists():
            return []
        return [Path(line) for line in self._seen.read_text().splitlines()]


@pytest.fixture
def viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeViewer:
    return FakeViewer(tmp_path / "bin", monkeypatch)


async def told(app: App[int]) -> str:
    """What is said once it is no longer being drawn."""
    await until(lambda: set(toasts(app)) - {DRAWING})
    (message,) = toasts(app)
    return message


@pytest.mark.slow
@pytest.mark.parametrize("opens", [False, True], ids=["list", "page"])
@pytest.mark.parametrize("read_only", [False, True])
async def test_o_shows_the_resume_in_the_systems_viewer(
    store: Store, viewer: FakeViewer, opens: bool, read_only: bool
) -> None:
    (resume_id,) = stored(store, a_document(name="Zoë Ångström"))
    async with running(store, "Zoë Ångström", read_only=read_only) as pilot:
        if opens:
            await leads(pilot, "enter", "ana › Zoë Ångström Resume")
        await shows(pilot.app, "o PDF")

        await presses(pilot, "o")

        assert await told(pilot.app) == "Opened ZoëÅngströmResume.pdf."
        [path] = await viewer.is_given()
        assert path.name == "ZoëÅngströmResume.pdf"
        assert path.parent.name == resume_id
        assert path.read_bytes().startswith(b"%PDF-")
        modes = [stat.S_IMODE(one.stat().st_mode) for one in (path, *path.parents[:2])]
        assert modes == [0o600, 0o700, 0o700]
    assert not path.parents[1].exists()


async def test_two_people_of_one_name_have_a_file_each_also_if_the_folder_was_cleared_away(
    store: Store, viewer: FakeViewer
) -> None:
    stored(store, a_document(name="Ada", title="First"), a_document(name="Ada", title="Second"))
    async with running(store, "Second") as pilot:
        await presses(pilot, "o")
        await tells(pilot.app, "Opened AdaResume.pdf.")
        [first] = await viewer.is_given()
        await presses(pilot, "j", "o")
        first, second = await viewer.is_given(2)
        assert first.name == second.name == "AdaResume.pdf"
        assert first.read_bytes() != second.read_bytes()

        await tells(pilot.app, "Opened AdaResume.pdf.")
        shutil.rmtree(first.parents[1])
        await presses(pilot, "k", "o")
        *_, again = await viewer.is_given(3)
        assert again.read_bytes().startswith(b"%PDF-")
        await at_rest(pilot)  # the viewer has ended, too
    assert not again.parents[1].exists()


async def test_without_a_display_the_path_is_said_and_can_be_copied(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, a_document(name="Ada"))
    async with running(store, "Ada Resume") as pilot:
        texts = copied(pilot.app, monkeypatch)

        await presses(pilot, "o")

        said = re.fullmatch(
            r"No graphical display\. Press y to copy the PDF's path: (.+/AdaResume\.pdf)",
            await told(pilot.app),
        )
        assert said is not None
        assert Path(said[1]).read_bytes().startswith(b"%PDF-")
        await leads(pilot, "y", "─ Copy ─", "PDF")
        await presses(pilot, "G", "k", "enter")
        await until(lambda: texts == [said[1]])
    assert not Path(said[1]).exists()


async def test_a_viewer_that_fails_or_is_not_there_is_told_with_the_path(
    store: Store, viewer: FakeViewer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer.ends_with(3)
    stored(store, a_document(name="Ada"))
    own = Settings(pdf=False)  # which is about the API
    async with running(store, "Ada Resume", settings=own) as pilot:
        await types(pilot, ":pdf", "Open as PDF  (o)")
        await presses(pilot, "enter")
        [path] = await viewer.is_given()
        await tells(
            pilot.app,
            f"xdg-open could not open the PDF (exit code 3). Press y to copy the PDF's path: {path}",
        )
        monkeypatch.setenv("PATH", str(tmp_path))
        await presses(pilot, "o")
        await tells(pilot.app, f"xdg-open is not installed. Press y to copy the PDF's path: {path}")


async def test_a_resume_that_is_too_long_or_cannot_be_drawn_says_why(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, a_document(sections=LONG), a_document(name="Bo"))
    async with running(store, "Ada Lovelace", "Bo Resume") as pilot:
        await presses(pilot, "o")
        said = await told(pilot.app)
        assert re.fullmatch(
            r"Too long for a PDF: the resume has [0-9,]+ characters; the limit is 200,000\.", said
        )
        monkeypatch.setattr("resumes.rendering.renderer._PROGRAM", "/nonexistent")
        await presses(pilot, "j", "o")
        await tells(pilot.app, "Could not generate the PDF: The PDF renderer process ended.")


@pytest.mark.skipif(not find_cjk_fonts(), reason="no CJK font is installed")
async def test_a_text_that_no_font_has_is_named_and_fonts_of_the_home_are_used(
    store: Store, viewer: FakeViewer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resumes.rendering.fonts.SYSTEM_FONTS", ())
    stored(store, a_document(name="山田"))
    for has_font in (False, True):
        if has_font:
            add_cjk_font(tmp_path)
        async with running(store, "山田 Resume", settings=Settings(home=tmp_path)) as pilot:
            await presses(pilot, "o")
            said = await told(pilot.app)
        if has_font:
            assert said == "Opened 山田Resume.pdf."
        else:
            assert said.startswith('Opened 山田Resume.pdf. No installed font has "山')
            end = f"Install fonts-noto-cjk, or put a font into {tmp_path / 'fonts'}."
            assert said.endswith(end)


# In a program of its own.


def test_nothing_is_left_when_it_ends(
    store: Store, viewer: FakeViewer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    stored(store, a_document(name="Ada"))
    with console([sys.executable, "-c", PROGRAM, store.url]) as screen:
        screen.shows("Ada Resume")
        screen.types(b"o")
        screen.shows("Opened AdaResume.pdf.")
        assert [one.name for one in temporary.rglob("*.pdf")] == ["AdaResume.pdf"]
        screen.types(b"q")
        assert screen.ends() == 0
    assert list(temporary.iterdir()) == []
