"""Mutation testing: whether a test fails when a line of the core says something else.

    python -m tests.mutants --areas cursor,quota

Works in a copy of the checkout, so that no mutant is ever where it is run by somebody. What the
areas are and how they fare is on docs/contributors/mutants.md.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Final

from tests.support.engines import CONTRACT, SQLITE

ROOT: Final = Path(__file__).parents[1]
SITE: Final = Path(sys.prefix) / "mutants"
FOLDER: Final = (
    Path(gettempdir()) / f"resumes-mutants-{hashlib.sha256(bytes(ROOT)).hexdigest()[:8]}"
)
"""Of this checkout alone: another one's run deletes what it finds in its own."""

COPIED: Final = ("src", "tests", "sample_data", "docs", "openapi.json", "README.md")
LINES_SHOWN: Final = 20
KILLED: Final = {1, 3, 24, 36, -24, 152}
"""How a run of tests ends that notices the mutant; the later ones, when it took too long."""

SURVIVED: Final = 0
UNTESTED: Final = 33
"""How a mutant ends that no test runs."""

FAILED: Final = 1
NOT_IMPORTED: Final = (2, 4)
"""How pytest ends when a module of tests, or a conftest.py, cannot be imported, which is noticing as
well: a mutant may fail as soon as it is imported."""

TOO_LONG: Final = 36
"""How one ends that was still being tested when its time was over."""

TIMEOUT_CONSTANT_S: Final = 20
TIMEOUT_MULTIPLIER: Final = 3
"""Tests of a mutant may take so many times what they take without it and so many seconds more:
time on the clock, which others take as well. One that hangs is over after a minute or two."""

FORKED: Final = """

import os

from server import routes


def _replace_threads() -> None:
    routes.ASIDE = type(routes.ASIDE)(max_workers=2)


os.register_at_fork(after_in_child=_replace_threads)
"""
"""Ends the copy's `tests/conftest.py`. A mutant is tried in a fork, which has none of the threads of
the process that the tests were timed in: who waited for one of these would wait for ever, and the
mutant would count as killed."""

ALONE_S: Final = 120
"""How long all tests of an area may take for a mutant that is tried in a process of its own."""


@dataclass(frozen=True, slots=True)
class Area:
    """Modules that are mutated together, and the tests that have to notice."""

    modules: Sequence[str]
    """Below `src`; `*` stands for anything."""

    tests: Sequence[str]
    """Modules or single tests, below `tests`."""

    on_postgresql: Sequence[str] = ()
    """Tests that try once more, with that engine, what no test noticed with SQLite."""

    at_import: Sequence[str] = ()
    """Mutants, by pattern, of what runs when a module is imported: each is tried in a process of
    its own, as the others are in forks of one that has imported everything."""


_CORE: Final = ("findings", "kinds", "plain", "resume", "strict_json", "view")

AREAS: Final[Mapping[str, Area]] = {
    "cursor": Area(
        ("resumes/store/stored_resumes.py", "resumes/store/identifiers.py", "server/routes.py"),
        (
            "store/test_listing.py",
            "store/test_keys.py",
            "store/test_labels.py",
            "store/test_retention.py",
            "store/test_search.py",
            "store/test_updating.py",
            "store/test_versions.py",
            "api/test_creating.py",
            "api/test_idempotency.py",
            "api/test_reading.py",
            "api/test_refusals.py",
            "api/test_updating.py",
        ),
        on_postgresql=(
            "api/test_engines.py",
            "store/test_listing.py",
            "store/postgresql/test_writing.py",
        ),
    ),
    "http": Area(
        ("server/connection.py", "server/deadlines.py", "server/receiver.py"),
        (
            "api/test_connections.py",
            "api/test_deadlines.py",
            "api/test_keep_alive.py",
            "api/test_rate_limits.py::test_so_does_the_refusal_of_a_body_that_breaks_while_it_arrives",
            "api/test_receiver.py",
            "api/test_refusals.py",
            "api/test_service.py",
            "api/test_upload.py::test_an_analyzer_is_ended_when_the_client_leaves",
        ),
    ),
    "quota": Area(
        ("resumes/store/creation.py",),
        (
            "store/test_creating.py",
            "store/test_forgetting.py",
            "store/test_imports.py",
            "store/test_labels.py",
            "store/test_versions.py",
            "api/test_idempotency.py",
            "api/test_upload.py",
            "command/test_importing.py",
            "inbox/test_dry_run.py",
            "inbox/test_forgotten.py",
            "inbox/test_versions.py",
        ),
        on_postgresql=("store/test_creating.py", "store/postgresql/test_writing.py"),
    ),
    "importing": Area(
        tuple(
            f"importer/{name}.py"
            for name in ("filing", "ledger", "pending", "pipeline", "reader", "recovery", "slots")
        ),
        ("inbox",),
    ),
    "analyzer": Area(
        tuple(f"resumes/analyzer/{name}.py" for name in _CORE),
        ("format",),
        at_import=(
            "resumes.analyzer.strict_json.x__up_to_*",
            "resumes.analyzer.kinds.*plain_type*",
        ),
    ),
    "converter": Area(
        ("resumes/analyzer/jsonresume/*.py",),
        ("format",),
        at_import=(
            "resumes.analyzer.jsonresume.mapping.*__init__*",
            "resumes.analyzer.jsonresume.properties.*__init__*",
        ),
    ),
    "rendering": Area(
        ("resumes/rendering/anonymity.py", "resumes/rendering/page.py"), ("rendering",)
    ),
}

PYTEST: Final = (
    "-p", "no:cacheprovider", "--timeout=30",
    "-m", "not hypothesis and not campaign and not slow and not timing",
)  # fmt: skip
"""What is noticed by chance is not always noticed, and takes longest to look for. A test that hangs is
noticed after half a minute: without a mutant each takes less than two seconds."""


class NotTried(Exception):
    """mutmut did not do its work; the message says why."""


def main() -> None:
    """Ends with 1 when a mutant survived, which is for people to judge, and with 2 when mutants
    were not tried."""
    options = _options()
    print("| area | mutants | killed | survived | no test runs it | not tried | score |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    sys.exit(max(_report(name, options) for name in options.areas))


def _report(name: str, options: argparse.Namespace) -> int:
    """The area's row is printed, and below it what survived; what `main` ends with for it."""
    folder = FOLDER / name
    try:
        _run(AREAS[name], folder, options)
        ends = dict(_iter_ends(AREAS[name], folder))
    except NotTried as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    print(row(name, ends))
    survivors = [mutant for mutant, end in ends.items() if end not in (*KILLED, None)]
    print(
        *(f"  {mutant}" for mutant in survivors), sep="\n", end="\n" * bool(survivors), flush=True
    )
    if not ends or (None in ends.values() and not options.only):
        return 2
    return 1 if survivors else 0


def _run(area: Area, folder: Path, options: argparse.Namespace) -> None:
    if not options.only:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    if gone := [module for module in area.modules if not [*(ROOT / "src").glob(module)]]:
        raise NotTried(f"src/{gone[0]} does not exist: change the area in tests/mutants.py")
    # Which test runs what: tests may have been written since.
    (folder / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)
    for name in COPIED:
        _copy(ROOT / name, folder / name)
    with (folder / "tests" / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(FORKED)
    (folder / "setup.cfg").write_text(_settings(area))
    (folder / "pyproject.toml").write_text(_pytest_settings())
    paths = os.pathsep.join([str(SITE), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", "run", "--max-children", str(options.processes),
         *options.only],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=(folder / "log").open("wb"),
        stderr=subprocess.STDOUT,
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        said = (folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
        end = "\n".join(f"  {line}" for line in said[-LINES_SHOWN:])
        raise NotTried(f"mutmut ended with {done.returncode}; {folder / 'log'} ends so:\n{end}")


def _copy(source: Path, target: Path) -> None:
    if source.is_file():
        shutil.copy2(source, target)
        return
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "corpus"))


def _settings(area: Area) -> str:
    """What mutmut reads from setup.cfg."""
    lists = {
        "source_paths": ["src"],
        "only_mutate": [f"src/{module}" for module in area.modules],
        "pytest_add_cli_args": [f"--engine={SQLITE}", *PYTEST],
        "pytest_add_cli_args_test_selection": [f"tests/{test}" for test in area.tests],
        "also_copy": [name for name in COPIED if name not in ("src", "tests")],
    }
    # mutmut adds the seconds first.
    text = f"timeout_multiplier = {TIMEOUT_MULTIPLIER}\ntimeout_constant = {TIMEOUT_CONSTANT_S}\n"
    return f"[mutmut]\n{text}" + "".join(
        "\n    ".join([f"{name} =", *values]) + "\n" for name, values in lists.items()
    )


def _pytest_settings() -> str:
    """Those of the checkout, and nothing else of its pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text()
    found = re.search(r"^\[tool\.pytest\.ini_options\]\n.*?(?=^\[)", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[0]


def _iter_ends(area: Area, folder: Path) -> Iterator[tuple[str, int | None]]:
    """How the tests ended for each mutant; None: it was not tried."""
    again = partial(_try_alone, area.on_postgresql, CONTRACT[-1], folder / "mutants")
    if area.on_postgresql and again("none") != SURVIVED:
        raise NotTried(f"{', '.join(area.on_postgresql)} fail on {CONTRACT[-1]} without a mutant")
    for path in sorted((folder / "mutants").rglob("*.meta")):
        for mutant, end in json.loads(path.read_text())["exit_code_by_key"].items():
            if end is not None and any(fnmatchcase(mutant, one) for one in area.at_import):
                yield mutant, _try_alone(area.tests, SQLITE, folder / "mutants", mutant)
            elif end in (SURVIVED, UNTESTED) and area.on_postgresql:
                found = again(mutant)
                yield mutant, end if found == SURVIVED else found
            else:
                yield mutant, end


def _try_alone(tests: Sequence[str], engine: str, folder: Path, mutant: str) -> int:
    """How the tests end in a process that imports everything when the mutant is there already."""
    try:
        end = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "--rootdir=.", *PYTEST,
             f"--engine={engine}", *(f"tests/{test}" for test in tests)],
            cwd=folder,
            env={
                **os.environ,
                "MUTANT_UNDER_TEST": mutant,
                "PYTHONPATH": os.pathsep.join(["src", ".", str(SITE)]),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=ALONE_S,
        ).returncode  # fmt: skip
    except subprocess.TimeoutExpired:
        return TOO_LONG
    return FAILED if end in NOT_IMPORTED else end


def row(name: str, ends: Mapping[str, int | None]) -> str:
    """The area's row. The score is of the mutants that were tried."""
    counts = Counter("killed" if end in KILLED else end for end in ends.values())
    killed, untested, untried = counts["killed"], counts[UNTESTED], counts[None]
    tried = len(ends) - untried
    survived = tried - killed - untested
    score = f"{killed / tried:.1%}" if tried else "none tried"
    return f"| {name} | {len(ends)} | {killed} | {survived} | {untested} | {untried} | {score} |"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "--areas", metavar="NAME,NAME", type=_names, default=[*AREAS],
        help=f"of {', '.join(AREAS)} [all]",
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="MUTANT", help="these again, in the same copy"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="[%(default)s]")
    options = parser.parse_args()
    if not (SITE / "mutmut").is_dir():
        parser.error(f"mutmut is not in {SITE}: run `make mutants`, which installs it")
    return options


def _names(value: str) -> list[str]:
    names = value.split(",")
    if unknown := [name for name in names if name not in AREAS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(AREAS)}")
    return names


if __name__ == "__main__":
    main()
