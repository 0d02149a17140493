"""The locked versions are what pyproject.toml and the lists beside them ask for."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REQUIREMENTS: Final = Path(__file__).parents[2] / "requirements"
LISTS: Final = {
    "runtime": ("build",),
    "dev": ("build",),
    "cluster": ("cluster",),
    "fuzz": ("fuzz",),
    "mutants": ("mutants",),
    "audit": ("audit",),
}
"""Each lock, and the lists beside it that it is made from."""


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((REQUIREMENTS.parent / "pyproject.toml").read_text(encoding="utf-8"))


def locked(text: str) -> list[Requirement]:
    """What a lock has, each package with its version and where it applies."""
    lines = re.findall(r"^[\w.-].*?(?= \\?$)", text, re.MULTILINE)
    return [Requirement(line) for line in lines]


def unsatisfied(wanted: list[str], lock: list[Requirement]) -> Iterator[str]:
    """What the lock does not have, or has in another version than is wanted."""
    for text in wanted:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        found = [one for one in lock if canonicalize_name(one.name) == name]
        versions = [next(iter(one.specifier)).version for one in found]
        if requirement.marker is None:
            is_met = bool(versions) and all(map(requirement.specifier.contains, versions))
        else:  # one of several lines, each for some Pythons
            is_met = any(map(requirement.specifier.contains, versions))
        if not is_met:
            yield f"{text}: locked is {', '.join(versions) or 'none'}"


def read(name: str) -> list[Requirement]:
    return locked((REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8"))


def test_what_the_project_and_the_lists_ask_for_is_locked_in_versions_that_they_take(
    project: dict[str, Any],
) -> None:
    needed = project["project"]["dependencies"]
    wanted = {lock: list[str]() for lock in LISTS}
    wanted["runtime"] += needed
    wanted["dev"] += [*needed, *project["dependency-groups"]["dev"]]
    for lock, lists in LISTS.items():
        for name in lists:
            lines = (REQUIREMENTS / f"{name}.in").read_text(encoding="utf-8").splitlines()
            wanted[lock] += [line for line in lines if line and not line.startswith("#")]
        assert wanted[lock]
        assert list(unsatisfied(wanted[lock], read(lock))) == []


def test_both_locks_of_one_environment_have_the_same_versions() -> None:
    assert {str(one) for one in read("runtime")} <= {str(one) for one in read("dev")}


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("click>=8,<9", []),
        ("click>=9,<10", ["click>=9,<10: locked is 8.5.1"]),
        ("Typing.Extensions", []),
        ("left-pad", ["left-pad: locked is none"]),
        ('atheris>=3.1 ; python_version >= "3.12"', []),
        ('atheris>=4 ; python_version >= "3.12"', None),
    ],
)
def test_what_a_lock_lacks_is_told(wanted: str, told: list[str] | None) -> None:
    lock = locked(
        "atheris==3.0.0 ; python_full_version < '3.12' \\\n    --hash=sha256:0\n"
        "atheris==3.1.0 ; python_full_version >= '3.12' \\\n    --hash=sha256:0\n"
        "click==8.5.1 \\\n    --hash=sha256:0\n"
        "typing-extensions==4.16.0 \\\n    --hash=sha256:0 \\\n    --hash=sha256:1\n"
    )
    found = list(unsatisfied([wanted], lock))
    assert bool(found) if told is None else found == told


def test_no_lock_names_an_index() -> None:
    assert {path.stem for path in REQUIREMENTS.glob("*.txt")} == set(LISTS)
    for lock in LISTS:
        text = (REQUIREMENTS / f"{lock}.txt").read_text(encoding="utf-8")
        assert "://" not in text
        assert "--index" not in text
