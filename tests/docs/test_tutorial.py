"""The five minutes of the tutorial, and the program at their end when things go wrong."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest

from resumes.store import accounts, api_keys
from resumes.store.store import reopen_store
from tests.support.pages import blocks, steps
from tests.support.programs import call, running, serving, succeed, wait_until, walk
from tests.support.reading import make_world, play
from tests.support.stores import open_home

pytestmark = pytest.mark.docs

REPOSITORY: Final = Path(__file__).parents[2]
PAGE: Final = "docs/tutorial.md"
PROGRAM: Final = REPOSITORY / "docs" / "examples" / "integration.py"
FILE: Final = REPOSITORY / "sample_data" / "nurse-double-column-en.json"
PER_MINUTE: Final = 12
"""Few, so that the program is there before the next request is allowed."""


@pytest.mark.slow
def test_every_command_of_the_tutorial_works_and_prints_what_it_says(tmp_path: Path) -> None:
    world = make_world(tmp_path, REPOSITORY)
    # The environment that `make install` makes is the one that the tests run in.
    typed = [step for step in steps(REPOSITORY, PAGE) if step.command != "make install"]

    play(world, typed, fails=["resumes validate analyzed"], says_all=True)


def test_the_program_that_the_tutorial_shows_is_the_one_that_lies_there() -> None:
    ((_, lines),) = blocks((REPOSITORY / PAGE).read_text(encoding="utf-8"), "python")

    assert "\n".join(lines) in PROGRAM.read_text(encoding="utf-8")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    with open_home(home) as store:
        accounts.create_account(store, "ana", plan="business")
    return home


@pytest.fixture
def key(home: Path) -> str:
    with open_home(home) as store:
        return api_keys.create_key(store, "ana").secret


@pytest.fixture
def url(home: Path) -> Iterator[str]:
    with serving(home) as url:
        yield url


Ended = tuple[int, list[str], str]


def begin(*files: Path, **variables: str) -> "subprocess.Popen[str]":
    """The program, running with this environment alone."""
    words, pipe = [sys.executable, str(PROGRAM), *map(str, files)], subprocess.PIPE
    return subprocess.Popen(words, env=variables, stdout=pipe, stderr=pipe, text=True)


def integrate(url: str, key: str, *files: Path) -> "subprocess.Popen[str]":
    """The program, running with this service."""
    return begin(*files, API=f"{url}/api/v1/resumes", KEY=key)


def finish(program: "subprocess.Popen[str]") -> Ended:
    """Its exit code, and what it printed on either stream."""
    out, err = program.communicate(timeout=60)
    return program.returncode, out.splitlines(), err


def count(url: str, operation: str, status: int) -> float:
    """How many requests of this kind were answered so."""
    with urlopen(f"{url}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    name = f'resumes_requests_total{{operation="{operation}",status="{status}"}}'
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0


def test_a_file_that_is_sent_twice_is_one_resume(url: str, key: str) -> None:
    first, second = (finish(integrate(url, key, FILE)) for _ in range(2))

    assert first == second
    assert first[0] == 0
    assert len(walk(url, key, limit=100)) == 1


@pytest.mark.slow
def test_all_pages_are_listed(url: str, key: str, home: Path) -> None:
    many = home / "many.ndjson"
    lines = [f'{{"header": {{"name": "Person {n}"}}, "sections": {{}}}}' for n in range(250)]
    many.write_text("\n".join(lines), encoding="utf-8")
    succeed(home, "import", str(many))

    code, printed, _ = finish(integrate(url, key))

    assert code == 0
    assert [line.partition("  ")[2] for line in printed] == [
        f"Person {n} Resume" for n in range(250)
    ]


@pytest.mark.slow
def test_who_asked_too_often_waits_and_has_an_answer(
    home: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESUMES_RATE_PER_MINUTE", str(PER_MINUTE))
    with serving(home, "--rate-limit") as url:
        while call(f"{url}/api/v1/resumes", key)[0] != 429:
            pass
        before = count(url, "create", 429) + count(url, "list", 429)

        code, printed, told = finish(integrate(url, key, FILE))

        assert (code, told) == (0, "")
        assert len(printed) == 2
        assert count(url, "create", 429) + count(url, "list", 429) > before


@pytest.mark.slow
def test_a_create_is_sent_again_until_the_store_takes_it(home: Path, url: str, key: str) -> None:
    succeed(home, "db", "copy", f"sqlite:///{home}/resumes.db", f"sqlite:///{home}/copy.db")
    program = integrate(url, key, FILE)
    wait_until(lambda: count(url, "create", 503) > 0)
    assert program.poll() is None

    # As `resumes db reopen` does, which may take longer to start than the example tries for.
    with open_home(home) as store:
        reopen_store(store)

    code, printed, told = finish(program)
    assert (code, told) == (0, "")
    assert len(printed) == 2
    assert len(walk(url, key, limit=100)) == 1


@pytest.mark.slow
def test_a_service_that_is_not_there_yet_is_waited_for(home: Path, key: str) -> None:
    with serving(home) as url:
        port = url.rpartition(":")[2]
    program = integrate(url, key, FILE)

    with running(home, "serve", "--json", "--port", port) as again:
        assert again.stdout is not None
        assert again.stdout.readline()
        code, printed, _ = finish(program)

    assert code == 0
    assert len(printed) == 2


@pytest.mark.slow
def test_what_is_refused_is_told_and_not_sent_again(url: str, key: str) -> None:
    bad = REPOSITORY / "sample_data" / "bad" / "year-as-text.json"

    code, _, told = finish(integrate(url, key, bad))

    assert code == 1
    assert told.startswith('400: Invalid section "experiences": items[1]')
    assert count(url, "create", 400) == 1


@pytest.mark.slow
def test_what_is_missing_or_no_resume_service_is_told_in_a_line(tmp_path: Path) -> None:
    told = "Set API to the address of the service, and KEY to an API key.\n"
    for variables in ({}, {"API": "http://127.0.0.1:9"}, {"KEY": "any"}):
        assert finish(begin(**variables)) == (2, [], told)
    absent = integrate("http://127.0.0.1:9", "any", Path("nowhere.json"))
    assert finish(absent) == (2, [], "Cannot read nowhere.json: No such file or directory\n")
    with serving(tmp_path) as url:
        code, _, told = finish(begin(API=f"{url}/docs", KEY="any"))
    assert (code, told.count("\n")) == (1, 1)
    assert told.endswith("is not a resume service: its response is not JSON\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("install", 'is .venv/bin/resumes. In this terminal: export PATH="$PWD/.venv/bin:$PATH"\n'),
        ("demo ARGS=--once", " resumes, as the API lists them:\n"),
    ],
)
def test_make_needs_nothing_more_where_it_was_installed(target: str, told: str) -> None:
    words = ["make", "--directory", str(REPOSITORY), "--no-print-directory"]
    made = ["--assume-old=.venv/runtime", *target.split()]

    done = subprocess.run([*words, *made], capture_output=True, text=True, check=True, timeout=120)

    assert told in done.stdout
