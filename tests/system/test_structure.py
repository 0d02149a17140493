"""The shape of the checkout, so that a newcomer's guess is right."""

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
