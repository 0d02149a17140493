"""The OpenAPI document: the one in the repository, the one that is served, and what is answered, to schemathesis too."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from resumes.store import accounts, api_keys, plans
from resumes.store.plans import PlanChange
from server.openapi import build_document
from tests.support.api.builders import RESUMES, a_resume
from tests.support.api.conforming import check_answer
from tests.support.api.serving import a_connection, read_all, serve
from tests.support.stores import make_account, open_home

DOCUMENT = build_document()
ONE = f"{RESUMES}/{{id}}"
PDF = f"{ONE}/pdf"
UNKNOWN = f"{RESUMES}/{'0' * 24}"
JSON = {"Content-Type": "application/json"}
BODY = json.dumps(a_resume()).encode()


class Talk:
    """A served process, the key that may do everything, and that of a full account on `free`."""

    def __init__(self, url: str, key: str, free_key: str) -> None:
        self.url = url
        self.key = {"Authorization": f"Bearer {key}"}
        self.free_key = {"Authorization": f"Bearer {free_key}"}

    def ask(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        arguments.setdefault("headers", self.key)
        return httpx.request(method, f"{self.url}{path}", timeout=30, **arguments)


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    home = tmp_path_factory.mktemp("home")
    free_key = make_account(home, "fred", plan="free")
    with serve(home, rate_limit=False) as served:
        talk = Talk(served.url, served.key, free_key)
        for _ in range(5):
            headers = talk.free_key | JSON
            assert talk.ask("POST", RESUMES, content=BODY, headers=headers).status_code == 201
        yield talk


def test_the_document_in_the_repository_is_the_one_that_is_served(
    talk: Talk, repository: Path
) -> None:
    written = (repository / "openapi.json").read_bytes()
    assert httpx.get(f"{talk.url}/openapi.json").content == written, "run `make openapi`"


def test_what_is_answered_to_a_life_of_a_resume_is_as_described(talk: Talk) -> None:
    headers = talk.key | JSON | {"Idempotency-Key": "once"}
    for replayed in (None, "true"):
        created = talk.ask("POST", RESUMES, content=BODY, headers=headers)
        assert created.headers.get("Idempotent-Replayed") == replayed
        check_answer(DOCUMENT, RESUMES, "post", created)
    path = f"{RESUMES}/{created.json()['id']}"
    check_answer(DOCUMENT, RESUMES, "get", talk.ask("GET", RESUMES))
    check_answer(DOCUMENT, ONE, "get", talk.ask("GET", path))
    check_answer(DOCUMENT, ONE, "delete", talk.ask("DELETE", path))


def test_warnings_are_as_described(talk: Talk) -> None:
    body = json.dumps(a_resume(hobby="chess")).encode()
    created = talk.ask("POST", RESUMES, content=body, headers=talk.key | JSON)
    assert created.json()["warnings"]
    check_answer(DOCUMENT, RESUMES, "post", created)


def test_a_pdf_and_what_stands_in_its_way_are_as_described(talk: Talk) -> None:
    created = talk.ask("POST", RESUMES, content=BODY, headers=talk.key | JSON)
    path = f"{RESUMES}/{created.json()['id']}/pdf"
    drawn = talk.ask("GET", f"{path}?layout=single&paper=letter&anonymous=true")
    known = talk.key | {"If-None-Match": drawn.headers["ETag"]}
    same = talk.ask("GET", f"{path}?layout=single&paper=letter&anonymous=true", headers=known)
    other = talk.ask("GET", path, headers=known)
    assert (drawn.status_code, same.status_code, other.status_code) == (200, 304, 200)
    words = "word " * 4_000
    long = a_resume(sections={"summaries": {"column": 0, "items": [{"text": words}] * 20}})
    created = talk.ask("POST", RESUMES, content=json.dumps(long).encode(), headers=talk.key | JSON)
    too_long = talk.ask("GET", f"{RESUMES}/{created.json()['id']}/pdf")
    assert too_long.status_code == 422
    for answer in (drawn, same, other, too_long):
        check_answer(DOCUMENT, PDF, "get", answer)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"])
def test_what_needs_no_key_is_as_described(talk: Talk, path: str) -> None:
    answer = talk.ask("GET", path, headers={})
    assert answer.status_code == 200
    check_answer(DOCUMENT, path, "get", answer)


@pytest.mark.parametrize(
    ("status", "method", "path", "arguments"),
    [
        (400, "GET", f"{RESUMES}?limit=many", {}),
        (401, "GET", RESUMES, {"headers": {"Authorization": "Bearer no"}}),
        (401, "POST", RESUMES, {"headers": {}}),
        (404, "GET", UNKNOWN, {}),
        (404, "DELETE", UNKNOWN, {}),
        (405, "GET", RESUMES, {"method": "PUT"}),
        (405, "GET", UNKNOWN, {"method": "OPTIONS"}),
        (400, "GET", f"{UNKNOWN}/pdf?layout=round", {}),
        (404, "GET", f"{UNKNOWN}/pdf", {}),
        (405, "GET", f"{UNKNOWN}/pdf", {"method": "DELETE"}),
        (405, "GET", "/docs", {"method": "POST"}),
        (405, "GET", "/healthz", {"method": "DELETE"}),
        (414, "GET", f"{RESUMES}?cursor={'0' * 20_000}", {}),
        (431, "GET", RESUMES, {"headers": {"X-Long": "x" * 70_000}}),
    ],
)
def test_an_error_is_as_described(
    talk: Talk, status: int, method: str, path: str, arguments: dict[str, Any]
) -> None:
    # 405 is described with the operations that the path has.
    answer = talk.ask(arguments.pop("method", method), path, **arguments)
    assert answer.status_code == status
    path = path.partition("?")[0].replace(UNKNOWN, ONE)
    check_answer(DOCUMENT, path, method.lower(), answer)


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (400, b"{", {}),
        (400, b'{"header": {"name": 5}, "sections": {}}', {}),
        (400, BODY, {"Idempotency-Key": "x" * 256}),
        (413, b" " * (2 * 1024 * 1024 + 1), {}),
        (415, BODY, {"Content-Type": "text/plain"}),
        (415, BODY, {"Content-Encoding": "gzip"}),
        (422, BODY + b" ", {"Idempotency-Key": "other-body"}),
    ],
)
def test_a_create_that_is_refused_is_as_described(
    talk: Talk, status: int, body: bytes, headers: dict[str, str]
) -> None:
    given = talk.key | JSON
    talk.ask("POST", RESUMES, content=BODY, headers=given | {"Idempotency-Key": "other-body"})
    answer = talk.ask("POST", RESUMES, content=body, headers=given | headers)
    assert answer.status_code == status
    check_answer(DOCUMENT, RESUMES, "post", answer)


def test_what_a_plan_refuses_is_as_described(talk: Talk) -> None:
    headers = talk.free_key | JSON
    full = talk.ask("POST", RESUMES, content=BODY, headers=headers)
    for path, answer in [
        (RESUMES, talk.ask("GET", RESUMES, headers=headers)),
        (ONE, talk.ask("GET", UNKNOWN, headers=headers)),
        (PDF, talk.ask("GET", f"{UNKNOWN}/pdf?layout=round", headers=headers)),
    ]:
        assert answer.status_code == 403
        check_answer(DOCUMENT, path, "get", answer)
    assert full.status_code == 403
    check_answer(DOCUMENT, RESUMES, "post", full)


def test_what_is_no_http_is_refused_as_described(talk: Talk) -> None:
    for status, head in [
        (400, b"GET /api/v1/resumes HTTP/1.1\r\n\r\n"),
        (501, b"POST /api/v1/resumes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n"),
    ]:
        with a_connection(talk.url) as connection:
            connection.sendall(head)
            connection.shutdown(socket.SHUT_WR)
            answer = as_response(read_all(connection))
        assert answer.status_code == status
        check_answer(DOCUMENT, RESUMES, "post", answer)


def as_response(received: bytes) -> httpx.Response:
    """What came over a connection as an answer."""
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    fields = [tuple(line.split(b": ", 1)) for line in lines]
    return httpx.Response(
        int(first.split()[1]),
        headers=[(name, value) for name, value in fields if name.lower() != b"content-encoding"],
        content=body,
    )


@pytest.mark.slow
def test_rate_limits_are_as_described(tmp_path: Path) -> None:
    with serve(tmp_path, rate_limit=True, rate_per_minute=3) as served:
        talk = Talk(served.url, served.key, "")
        answers = [talk.ask("GET", RESUMES) for _ in range(8)]
        created = talk.ask("POST", RESUMES, content=BODY, headers=talk.key | JSON)
    assert {answer.status_code for answer in answers} == {200, 429}
    for answer in answers:
        assert "X-RateLimit-Remaining" in answer.headers
        check_answer(DOCUMENT, RESUMES, "get", answer)
    assert created.status_code == 429
    assert created.headers["Retry-After"]
    check_answer(DOCUMENT, RESUMES, "post", created)


# Schemathesis asks, of a really served process


HOOKS = Path(__file__).parents[2] / "support" / "api" / "schemathesis_hooks.py"
SEED = 20260131
CHECKS_THAT_ARE_OFF: dict[str, str] = {}
"""Checks of schemathesis that are not run, each with its reason."""

CONFIG = """
hooks = {hooks}
seed = {seed}

[generation]
# U+0000 is JSON, and refused in any text and key; a schema would have to say so of each.
allow-x00 = false
database = "none"

[auth.wfc]
path = {users}
peers = ["ada", "bob"]

[checks.positive_data_acceptance]
# Beside success only what an id that is none gets.
expected-statuses = [200, 201, 304, 404]

[checks.negative_data_rejection]
# A text that is too long for its field may be too long for a body as well.
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx"]
"""

SHORT = """
[[operations]]
# Goes through the fields of all section types one by one, which takes most of the time;
# tests/api/test_openapi.py compares their schema with the service without a connection.
include-name = "POST /api/v1/resumes"
phases.coverage.enabled = false
"""


@dataclass(frozen=True)
class Asked:
    """A served process and where schemathesis finds what it needs to ask it."""

    url: str
    folder: Path

    def run(self, *, max_examples: int, limit_s: float, more: str = "") -> str:
        """What schemathesis has to say, with `more` configuration. It must find nothing wrong."""
        with (self.folder / "schemathesis.toml").open("a") as configuration:
            configuration.write(more)
        off = [
            argument for check in CHECKS_THAT_ARE_OFF for argument in ("--exclude-checks", check)
        ]
        program = "import schemathesis.cli as cli; cli.schemathesis()"
        command = [
            sys.executable,
            "-c",
            program,
            "--config-file",
            "schemathesis.toml",
            "--no-color",
        ]
        command += ["run", f"{self.url}/openapi.json", "-n", str(max_examples), "--checks", "all"]
        run = subprocess.run(
            [*command, *off, "--continue-on-failure"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    """A served process with two accounts that may do everything, for good."""
    home, folder = tmp_path / "home", tmp_path / "schemathesis"
    home.mkdir()
    folder.mkdir()
    with open_home(home) as store:
        plans.set_plan_limits(store, PlanChange("business", max_resumes=None))
        accounts.create_account(store, "bob", plan="business")
        bob = api_keys.create_key(store, "bob").secret
    with serve(home, rate_limit=False) as served:
        write_configuration(folder, {"ada": served.key, "bob": bob})
        yield Asked(served.url, folder)


def write_configuration(folder: Path, key_of: dict[str, str]) -> None:
    users = [
        {
            "name": name,
            "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {key}"}],
        }
        for name, key in key_of.items()
    ]
    (folder / "users.json").write_text(json.dumps({"auth": users}))
    texts = {"hooks": json.dumps(str(HOOKS)), "users": json.dumps(str(folder / "users.json"))}
    (folder / "schemathesis.toml").write_text(CONFIG.format(seed=SEED, **texts))


def cases_of(report: str) -> int:
    """How many requests were made up."""
    found = re.search(r"([0-9,]+) generated", report)
    assert found is not None, report
    return int(found[1].replace(",", ""))


@pytest.mark.slow
def test_the_service_does_what_its_document_says(asked: Asked) -> None:
    report = asked.run(max_examples=20, limit_s=300, more=SHORT)
    assert cases_of(report) > 300


@pytest.mark.campaign(minutes=5)
def test_twenty_thousand_requests_find_nothing_that_the_document_does_not_say(
    asked: Asked,
) -> None:
    report = asked.run(max_examples=1_500, limit_s=3_000)
    assert cases_of(report) >= 20_000
