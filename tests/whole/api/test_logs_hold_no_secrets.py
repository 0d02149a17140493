"""Whatever is sent, wherever it stands and whatever goes wrong, no log shows it."""

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from resumes.store.api_keys import new_secret
from tests.support.api.builders import RESUMES
from tests.support.api.serving import a_connection, read_all, wait_until
from tests.support.programs import running
from tests.support.stores import make_account

ADDRESS = "planted.person@planted.example"
PASSWORD = "planted-Passw0rd!"
NAME = "Planted Personne"
WRONG_KEYS = [new_secret(), "enh_live_planted", "planted-token"]


def a_body(**fields: object) -> dict[str, object]:
    header = {"name": NAME, "email": ADDRESS, "phone": PASSWORD}
    items = [{"text": f"{NAME} {ADDRESS} {PASSWORD}"}]
    return {"header": header, "sections": {"summaries": {"column": 0, "items": items}}} | fields


def bodies() -> Iterator[bytes]:
    """Right and wrong ones, with planted values where messages quote."""
    yield json.dumps(a_body()).encode()
    yield json.dumps(a_body(title=[ADDRESS])).encode()
    yield json.dumps(a_body(**{ADDRESS: PASSWORD})).encode()
    yield json.dumps(a_body(sections={ADDRESS: {"column": 0, "items": []}})).encode()
    yield json.dumps(a_body(style={"layout": ADDRESS, "colors": [PASSWORD]})).encode()
    yield json.dumps(a_body(type="coverletter")).encode()
    whole = json.dumps(a_body()).encode()
    for broken in (whole[:-5], whole + b"x", whole[:40] + b"\xff\x00" + whole[40:], b"[" * 99):
        yield broken + ADDRESS.encode()
    yield f'"{ADDRESS}"'.encode()
    yield b'{"header":' + ADDRESS.encode() + PASSWORD.encode()
    yield b'{"' + ADDRESS.encode() + b'":1,"' + ADDRESS.encode() + b'":2}'
    yield whole + b" " * (2 * 1024 * 1024)


def authorizations(key: str) -> Iterator[str]:
    """The right key in schemes that do not count, and keys that do not."""
    yield f"Basic {key}"
    yield f"bearer{key}"
    yield f"Bearer {key} {ADDRESS}"
    yield key
    for wrong in WRONG_KEYS:
        yield f"Bearer {wrong}"


def send_everything(client: httpx.Client, key: str) -> set[int]:
    """The statuses of everything that can be sent with httpx."""
    right = {"Authorization": f"Bearer {key}"}
    as_json = right | {"Content-Type": "application/json"}
    answers = [client.post(RESUMES, content=body, headers=as_json) for body in bodies()]
    answers += [client.get(RESUMES, headers={"Authorization": a}) for a in authorizations(key)]
    for value in (key, ADDRESS, PASSWORD, WRONG_KEYS[0]):
        answers += [
            client.get(path, headers=right | more)
            for path, more in (
                (f"{RESUMES}?api_key={value}&cursor={value}&limit={value}", {}),
                (f"{RESUMES}?cursor={value}", {}),
                (f"{RESUMES}/{value}", {}),
                (f"/{value}", {}),
                (f"/api/v1/{value}", {}),
                (f"/readyz?key={value}", {}),
                ("/metrics", {"X-Request-Id": f"{value}{value}@"}),
                (RESUMES, {"X-Request-Id": f"<{value}>"}),
            )
        ]
        answers += [
            client.delete(f"{RESUMES}/{value}", headers=right),
            client.patch(f"{RESUMES}/{value}", headers=right),
            client.put(f"{RESUMES}/{value}", headers=as_json),
            client.post(RESUMES, json=a_body(), headers=right | {"Content-Type": value}),
            client.request(value.replace("@", "-").upper(), RESUMES, headers=right),
        ]
        for title in (value, f"another {value}"):
            headers = right | {"Idempotency-Key": value}
            answers.append(client.post(RESUMES, json=a_body(title=title), headers=headers))
    return {answer.status_code for answer in answers}


def send_broken_requests(url: str, key: str) -> None:
    """What no HTTP client would send."""
    for head in (
        f"GET {RESUMES} {ADDRESS}\r\n\r\n",
        f"{PASSWORD} / HTTP/1.1\r\n\r\n",
        f"GET /{ADDRESS} HTTP/1.1\r\nAuthorization: Bearer {key}\r\n {PASSWORD}\r\n\r\n",
        f"POST {RESUMES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {ADDRESS}\r\n\r\n{PASSWORD}",
        f"POST {RESUMES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        f"Transfer-Encoding: chunked\r\n\r\n{ADDRESS}\r\n{PASSWORD}",
    ):
        with a_connection(url) as connection:
            connection.sendall(head.encode())
            read_all(connection)
    with a_connection(url) as connection:  # leaves in the middle of its body
        connection.sendall(
            f"POST {RESUMES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: 999\r\n\r\n{ADDRESS}".encode()
        )


def fill_the_disk(pid: int, home: Path, client: httpx.Client, key: str) -> set[int]:
    """The statuses of creates while no file of the server may grow."""
    headers = {"Authorization": f"Bearer {key}"}
    size_bytes = max(path.stat().st_size for path in home.glob("resumes.db*"))
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))
    try:
        return {
            client.post(RESUMES, json=a_body(title="x" * 9_000), headers=headers).status_code
            for _ in range(400)
        }
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_log_shows_what_was_sent(tmp_path: Path, log_format: str) -> None:
    home, log = tmp_path / "home", tmp_path / "log"
    key = make_account(home, "planted-personne", key_name=NAME)
    words = ("serve", "--json", "--port", "0", "--access-log", "--log-format", log_format)
    with log.open("w") as errors, running(home, *words, stderr=errors) as program:
        assert program.stdout is not None
        url = json.loads(program.stdout.readline())["url"]
        with httpx.Client(base_url=url, timeout=30) as client:
            assert {200, 201, 400, 401, 404, 405, 413, 415, 422} <= send_everything(client, key)
            send_broken_requests(url, key)
            assert 503 in fill_the_disk(program.pid, home, client, key)
        wait_until(lambda: "503" in log.read_text())

    said = log.read_text()
    assert said.count("resumes.access") > 100
    assert "Answered 503" in said
    lowered = said.lower()
    for planted in ("planted", "passw0rd", "personne", "enh_live", "cursor", RESUMES, *WRONG_KEYS):
        assert planted.lower() not in lowered, planted
    for wrong in (key, *WRONG_KEYS):
        assert wrong[9:30] not in said
