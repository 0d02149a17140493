"""The shape of the checkout, so that a newcomer's guess is right."""

import re
from pathlib import Path

import pytest

import cli
import importer
import resumes
import server
import tui

SRC = Path(__file__).parents[2] / "src"
TESTS = Path(__file__).parents[1]


def modules() -> list[Path]:
    return [
        path.relative_to(SRC)
        for path in sorted(SRC.rglob("*.py"))
        if path.name not in ("__init__.py", "__main__.py") and "migrations" not in path.parts
    ]


@pytest.mark.parametrize("module", modules(), ids=str)
def test_every_module_has_its_test_module(module: Path) -> None:
    assert (TESTS / module.parent / f"test_{module.name}").is_file()


def packages() -> list[Path]:
    found = [path.parent.relative_to(SRC) for path in sorted(SRC.rglob("__init__.py"))]
    # The screens of the terminal UI have a package each.
    return [path for path in found if path.parent != Path("tui/screens")]


def architecture() -> str:
    return (TESTS.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")


def paths_on_the_map() -> set[str]:
    """What stands in `src/…` on the map; `{a,b}` are two."""
    paths = set()
    for before, names, after in re.findall(r"`src/([^`{]*)(?:{([^}]*)}([^`]*))?`", architecture()):
        paths |= {f"{before}{name}{after}" for name in names.split(",")}
    return paths


@pytest.mark.parametrize("package", packages(), ids=str)
def test_every_package_is_on_the_map(package: Path) -> None:
    assert str(package) in paths_on_the_map() | {"resumes"}


def test_all_that_is_on_the_map_is_there() -> None:
    assert [path for path in paths_on_the_map() if not (SRC / path).exists()] == []


def test_what_stands_beside_the_packages_is_on_the_map() -> None:
    beside = {str(path) for path in modules() if path.parent == Path("resumes")}
    assert beside <= paths_on_the_map()


def test_every_module_of_the_store_has_its_place_on_the_map() -> None:
    chapter = architecture().partition("## The store\n")[2].partition("\n## ")[0]
    told = set(re.findall(r"`(\w+)`", chapter))
    assert told == {path.stem for path in modules() if path.is_relative_to("resumes/store")}


@pytest.mark.parametrize("package", [cli, importer, resumes, server, tui])
def test_every_package_comes_from_this_checkout(package: object) -> None:
    # Another distribution with a `server` package would win over an editable install, silently.
    file = getattr(package, "__file__", None)
    assert isinstance(file, str)
    assert Path(file).is_relative_to(SRC)


@pytest.mark.parametrize("package", ["cli", "importer", "resumes", "server", "tui"])
def test_every_package_says_that_it_is_typed(package: str) -> None:
    assert (SRC / package / "py.typed").is_file()


def test_no_lock_names_an_index() -> None:
    for lock in (TESTS.parent / "requirements").glob("*.txt"):
        assert "://" not in lock.read_text()
        assert "--index" not in lock.read_text()
