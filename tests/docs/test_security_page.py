"""What the page of security promises is there, and what it cites as proof is a test."""

import ast
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from server.openapi import document_bytes
from tests.support.programs import call, run, running, succeed

pytestmark = pytest.mark.docs

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
OPEN_PATHS: Final = {"/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"}
REQUESTING: Final = ("aiohttp", "http.client", "httpx", "requests", "urllib.request", "urllib3")
"""What could request something over a network."""


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "security.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_cites_is_there(page: str, repository: Path) -> None:
    cited = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page)
    assert len(cited) > 30
    for path, name in cited:
        functions = functions_of((repository / path).read_text(encoding="utf-8"))
        assert functions, path
        assert not name or name in functions, f"{path}::{name}"


def functions_of(source: str) -> set[str]:
    """The tests that a module has."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return {name for name in found if name.startswith("test_")}


@pytest.mark.slow
def test_nobody_else_can_read_a_file_of_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_RATE_LIMIT", "true")
    home = tmp_path / "home"
    before = os.umask(0)
    try:
        # given a home in which everything was done once that leaves a file
        succeed(home, "demo", "--once")
        with running(home, "up", "--json", "--port", "0") as up:
            assert up.stdout is not None
            url = json.loads(up.stdout.readline())["url"]
            key = (home / "first-key").read_text(encoding="ascii").strip()
            assert call(f"{url}/api/v1/resumes", key)[0] == 200
            while_running = list(open_files(home))
        succeed(home, "db", "backup", str(home))
        assert run(home, "accounts", "export", "demo", str(home / "demo.ndjson")).returncode == 0
        # when somebody else looks
        files = [*while_running, *open_files(home)]
    finally:
        os.umask(before)
    # then the way in is closed, and behind it is nothing open but what was dropped
    assert [stat.S_IMODE(one.stat().st_mode) for one in (home, home / "run")] == [0o700] * 2
    assert stat.S_IMODE((home / "run" / "rate-limits.1").stat().st_mode) == 0o600
    assert {path.relative_to(home).parts[0] for path in files} <= {"inbox"}
    assert (home / "inbox" / "_failed").is_dir()


def open_files(home: Path) -> Iterator[Path]:
    """The files of the home whose own rights let somebody else read or write them."""
    for path in home.rglob("*"):
        if path.is_file() and path.stat().st_mode & OTHERS:
            yield path


def test_the_api_has_no_operation_for_admins() -> None:
    paths = json.loads(document_bytes())["paths"]
    operations = {
        (method, path) for path, item in paths.items() for method in item if method != "parameters"
    }

    one, many = "/api/v1/resumes/{id}", "/api/v1/resumes"
    ours = {("get", many), ("post", many), ("get", f"{one}/pdf"), ("get", f"{one}/docx")}
    ours |= {(method, one) for method in ("get", "put", "delete")} | {("post", f"{many}/upload")}
    assert {(method, path) for method, path in operations if path not in OPEN_PATHS} == ours
    assert {method for method, path in operations if path in OPEN_PATHS} == {"get"}


def test_no_source_can_request_an_address_from_a_resume(repository: Path) -> None:
    for path in (repository / "src").rglob("*.py"):
        for name in imported(path.read_text(encoding="utf-8")):
            assert not f"{name}.".startswith(tuple(f"{one}." for one in REQUESTING)), path


def test_no_source_changes_the_umask(repository: Path) -> None:
    sources = (repository / "src").rglob("*.py")
    assert [path for path in sources if "umask(" in path.read_text(encoding="utf-8")] == []


def imported(source: str) -> Iterator[str]:
    """The modules that a source imports, with what it takes out of them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# The locked packages

LISTS: Final = {
    "runtime": ("build",),
    "dev": ("build",),
    "cluster": ("cluster",),
    "fuzz": ("fuzz",),
    "mutants": ("mutants",),
    "audit": ("audit",),
}
"""Each lock, and the lists beside it that it is made from."""


def locked(text: str) -> list[Requirement]:
    """What a lock has, each package with its version and where it applies."""
    return [Requirement(line) for line in re.findall(r"^[\w.-].*?(?= \\?$)", text, re.MULTILINE)]


def is_met(requirement: Requirement, lock: list[Requirement]) -> bool:
    """Whether the lock has the package, in a version that is asked for."""
    name = canonicalize_name(requirement.name)
    found = [one for one in lock if canonicalize_name(one.name) == name]
    fits = [requirement.specifier.contains(next(iter(one.specifier)).version) for one in found]
    # Of several lines with a marker each is for some Pythons.
    return any(fits) if requirement.marker else bool(fits) and all(fits)


def test_the_locks_have_what_is_asked_for_with_hashes_and_name_no_index(repository: Path) -> None:
    folder = repository / "requirements"
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    needed = project["project"]["dependencies"]
    more = {"runtime": needed, "dev": [*needed, *project["dependency-groups"]["dev"]]}
    assert {path.stem for path in folder.glob("*.txt")} == set(LISTS)
    for name, lists in LISTS.items():
        text = (folder / f"{name}.txt").read_text(encoding="utf-8")
        assert not re.search(r"://|--index", text)
        assert all("--hash=sha256:" in part for part in re.split(r"\n(?=\S)", text.strip()))
        wanted = [*more.get(name, ())]
        for one in lists:
            lines = (folder / f"{one}.in").read_text(encoding="utf-8").splitlines()
            wanted += [line for line in lines if line and not line.startswith("#")]
        assert wanted
        assert [one for one in wanted if not is_met(Requirement(one), locked(text))] == []
