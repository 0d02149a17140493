"""The five minutes of the tutorial, and the program at their end when things go wrong."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import httpx
import pypdf
import pytest

from resumes.store.store import reopen_store
from tests.support.api.builders import RESUMES, Client, error_of
from tests.support.api.serving import Place, serve_here
from tests.support.pages import blocks, steps
from tests.support.programs import call, serving, succeed, wait_until, walk
from tests.support.reading import make_world, play
from tests.support.stores import make_account, open_home

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
    return tmp_path / "home"


@pytest.fixture
def key(home: Path) -> str:
    return make_account(home)


@pytest.fixture
def url(home: Path, key: str) -> Iterator[str]:
    with serving(home) as url:
        yield url


Ended = tuple[int, list[str], str]


def integrate(url: str, key: str, *files: Path) -> "subprocess.Popen[str]":
    """The program, running with this service, and with this environment alone."""
    words, pipe = [sys.executable, str(PROGRAM), *map(str, files)], subprocess.PIPE
    variables = {"API": f"{url}/api/v1/resumes", "KEY": key}
    return subprocess.Popen(words, env=variables, stdout=pipe, stderr=pipe, text=True)


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
def test_what_is_refused_is_told_and_not_sent_again(url: str, key: str) -> None:
    bad = REPOSITORY / "sample_data" / "bad" / "year-as-text.json"

    code, _, told = finish(integrate(url, key, bad))

    assert code == 1
    assert told.startswith('400: Invalid section "experiences": items[1]')
    assert count(url, "create", 400) == 1


# The analyzer of the docs


SAMPLE = REPOSITORY / "sample_data" / "java-developer-porto-compact-en.json"
EXAMPLE = (sys.executable, str(REPOSITORY / "docs" / "examples" / "analyzer.py"), "{file}")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server with the example as its analyzer."""
    with serve_here(tmp_path_factory.mktemp("home"), analyzer=EXAMPLE) as place:
        yield place


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    yield (client := place.client())
    client.close()


def upload(client: Client, content: bytes, name: str = "ada.pdf") -> httpx.Response:
    return client.request("POST", f"{RESUMES}/upload", files={"file": (name, content)})


def test_the_example_reads_the_pdf_of_a_sample(client: Client) -> None:
    sent = json.loads(SAMPLE.read_text())
    resume_id = client.create(sent).json()["id"]
    pdf = client.request("GET", f"{RESUMES}/{resume_id}/pdf?layout=single").content

    answer = upload(client, pdf)

    assert (answer.status_code, answer.json().keys()) == (200, {"id"})
    found = client.get(answer.json()["id"]).json()
    for name in ("name", "email", "phone"):
        assert found["header"][name] == sent["header"][name]
    [summary] = [
        item["text"]
        for item in found["sections"]["summaries"]["items"]
        if "quiet weekends" in item["text"]
    ]
    assert "Banco Moinho Novo" not in summary
    parts = {item["title"]: item["description"] for item in found["sections"]["customs"]["items"]}
    assert "Banco Moinho Novo" in parts["Experience"]
    assert parts.keys() >= {"Experience", "Education", "Skills"}


def test_the_example_says_what_it_cannot_read(client: Client) -> None:
    empty, locked = BytesIO(), BytesIO()
    with pypdf.PdfWriter() as writer:
        writer.add_blank_page(100, 100)
        writer.write(empty)
        writer.encrypt("secret", algorithm="RC4-128")
        writer.write(locked)
    for content, name, words in (
        (empty.getvalue(), "a.pdf", "The PDF has no text; it may be a scan"),
        (locked.getvalue(), "a.pdf", "The PDF has a password. Remove it, and send the file again"),
        (b"%PDF-1.7 damaged", "a.pdf", "The file is not a PDF, or is damaged"),
        (b"PK\3\4 Word", "a.docx", "This analyzer reads only PDFs. Send the resume as a PDF"),
    ):
        refused = error_of(upload(client, content, name))
        assert refused["status"] == 422
        assert refused["error"] == f"The analyzer failed with exit code 1: {words}"
