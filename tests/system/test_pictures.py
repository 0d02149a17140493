"""The pictures of the terminal UI, and of the command line."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tui.modes import MODES

pytestmark = pytest.mark.docs

NAMES = [mode.name for mode in MODES]
COMMAND_LINE = "command-line"


@pytest.fixture
def drawing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that draws them, on a home of the test."""
    spec = importlib.util.spec_from_file_location("draw", repository / "docs/pictures/draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "draw", module)
    monkeypatch.syspath_prepend(repository / "docs/pictures")
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_every_screen_has_its_picture_in_the_docs(name: str, repository: Path) -> None:
    picture = (repository / "docs/pictures" / f"{name}.svg").read_text(encoding="utf-8")
    page = (repository / "docs/terminal.md").read_text(encoding="utf-8")

    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert f"pictures/{name}.svg" in page
    assert f"| `{name}` |" in page


@pytest.mark.parametrize("name", [*NAMES, COMMAND_LINE])
def test_no_picture_loads_anything(name: str, repository: Path) -> None:
    picture = (repository / "docs/pictures" / f"{name}.svg").read_text(encoding="utf-8")

    assert "url(http" not in picture
    assert "href" not in picture


def test_they_are_drawn_from_the_samples(
    drawing: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "HOME", tmp_path / "home")

    drawing.draw(tmp_path)

    drawn = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.svg")}
    assert set(drawn) == {*NAMES, COMMAND_LINE}
    assert "demo" in drawn["accounts"]
    assert "2026-01-31" in drawn["resumes"]
    assert "2026-01-31" in drawn[COMMAND_LINE]
    assert "2&#160;done" in drawn[COMMAND_LINE]


@pytest.mark.campaign
def test_the_pictures_are_those_of_this_checkout(
    drawing: ModuleType, tmp_path: Path, repository: Path
) -> None:
    drawing.draw(tmp_path)

    for path in tmp_path.glob("*.svg"):
        committed = repository / "docs/pictures" / path.name
        assert path.read_bytes() == committed.read_bytes(), "run `make pictures`"
