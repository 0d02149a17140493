"""The shape of the checkout, so that a newcomer's guess is right."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
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


def modules_of(package: str) -> list[Path]:
    return [path for path in modules() if path.parts[0] == package]


def bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """The names by which a module knows what it imports from tests, and their full names."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                # Without `as` only the first part becomes a name; the rest is said where it is used.
                yield alias.asname or alias.name, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def is_module(name: str) -> bool:
    path = TESTS.parent / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def is_kept_back(part: str) -> bool:
    """Whether it is a test module, a test, or private; `__file__` is not."""
    return part.startswith("test_") or (part.startswith("_") and not part.endswith("__"))


def dotted(node: ast.expr) -> str:
    """The name that is written there, with the modules before it; empty for what is no name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def reaching(tree: ast.Module) -> set[str]:
    """What a module of tests takes from another one that is not meant for others."""
    nodes = list(ast.walk(tree))
    imported = [names for names in bindings(nodes) if names[1].split(".")[0] == "tests"]
    known, reached = dict(imported), {name for _, name in imported}
    for node in nodes:
        if isinstance(node, ast.Attribute):
            of = known.get(dotted(node.value))
            if of is not None and is_module(of):
                reached.add(f"{of}.{node.attr}")
    return {name for name in reached if any(map(is_kept_back, name.split(".")))}


PARTS = sorted({TESTS / path.relative_to(TESTS).parts[0] for path in TESTS.rglob("*.py")})


@pytest.mark.parametrize("part", PARTS, ids=lambda path: path.name)
def test_no_module_of_tests_takes_from_a_test_module_or_what_is_private_elsewhere(
    part: Path,
) -> None:
    found = {
        str(path.relative_to(TESTS)): names
        for path in (sorted(part.rglob("*.py")) if part.is_dir() else [part])
        if (names := reaching(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert found == {}


def test_what_is_not_meant_for_others_is_told() -> None:
    for text in (
        "import tests.terminal.test_hostile",
        "from tests.terminal import test_hostile as hostile",
        "from tests.terminal.test_hostile import click_on",
        "from tests.support.api.bombs import _filled",
        "def f(): from tests.support.api import bombs as b; b._filled()",
        "import tests.support.api.bombs; tests.support.api.bombs._filled()",
    ):
        assert reaching(ast.parse(text)), text


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


def test_every_package_and_what_stands_beside_them_is_on_the_map_and_nothing_else() -> None:
    beside = {str(path) for path in modules() if path.parent == Path("resumes")}
    there = {str(package) for package in packages()} | beside
    assert there <= paths_on_the_map() | {"resumes"}
    assert [path for path in paths_on_the_map() if not (SRC / path).exists()] == []


def test_every_part_of_the_ground_has_its_layer() -> None:
    settings = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    named = {
        name.strip()
        for contract in contracts
        if contract["type"] == "layers"
        for layer in contract["layers"]
        for name in layer.split("|")
    }
    there = {f"resumes.{path.parts[1].removesuffix('.py')}" for path in modules_of("resumes")}
    assert there <= named


def test_every_module_of_the_store_has_its_place_on_the_map() -> None:
    chapter = architecture().partition("## The store\n")[2].partition("\n## ")[0]
    told = set(re.findall(r"`(\w+)`", chapter))
    assert told == {path.stem for path in modules() if path.is_relative_to("resumes/store")}


def test_every_package_comes_from_this_checkout_and_is_typed() -> None:
    # Another distribution with a `server` package would win over an editable install, silently.
    for package in (cli, importer, resumes, server, tui):
        assert Path(str(package.__file__)).parent.parent == SRC
        assert (Path(str(package.__file__)).parent / "py.typed").is_file()


def test_no_two_public_classes_have_one_name() -> None:
    found: dict[str, list[Path]] = {}
    for module in modules():
        for node in ast.parse((SRC / module).read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(module)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_resumes_are_created_in_one_place() -> None:
    creates = re.compile(r"insert\(resumes\b|INTO resumes\b")
    found = [one for one in modules() if creates.search((SRC / one).read_text())]
    assert found == [Path("resumes/store/creation.py")]
