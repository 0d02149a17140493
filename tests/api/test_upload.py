"""Files that the user's analyzer turns into resumes over HTTP (docs/api.md, Upload)."""

import socket
import struct
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from resumes.store import accounts, api_keys
from server import service, upload_route
from tests.support.analyzers import an_analyzer, told
from tests.support.api.builders import RESUMES, Client, a_body, a_resume, error_of
from tests.support.api.serving import Place, a_connection, fill_disk, read_all, serve_here
from tests.support.waiting import is_running, wait_until

UPLOAD = f"{RESUMES}/upload"
PDF = b"%PDF-1.7 of Ada"
WORD = b"PK\x03\x04 of Ada"
OLD_WORD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 of Ada"
INVALID_TYPE = "Invalid file type. Only PDF, DOC, and DOCX are allowed"

BEHAVIOR = """
content = open(FILE, "rb").read()
tell("runs", os.path.splitext(FILE)[1])
tell("pid", os.getpid())
if b"slow" in content:
    time.sleep(600)
if b"wait" in content:
    while not os.path.exists(os.path.join(os.path.dirname(sys.argv[0]), "go")):
        time.sleep(0.01)
if b"locked" in content:
    sys.exit("The PDF has a password")
if b"noise" in content:
    print("no JSON")
elif b"letter" in content:
    print('{"type": "coverLetter"}')
elif b"other" in content:
    print(RESUME.replace("Ada", "Eve"))
elif b"odd" in content:
    resume = json.loads(RESUME)
    resume["header"]["email"] = "ada@example.org"
    resume["style"] = {"font": "Odd"}
    print(json.dumps(resume))
else:
    print(RESUME)
"""


@pytest.fixture
def place(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A server with an analyzer; in the end no file of an upload is left."""
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    command = tuple(an_analyzer(tmp_path, BEHAVIOR))
    with serve_here(tmp_path, url, analyzer=command, analyzer_timeout_s=30.0) as place:
        yield place
    wait_until(lambda: not [*temporary.iterdir()])


def upload(
    client: Client,
    content: bytes = PDF,
    name: str = "ada.pdf",
    query: str = "",
    key: str = "",
    **headers: str,
) -> httpx.Response:
    """Return the answer to the upload of a file."""
    given = {"Authorization": f"Bearer {key or client.key}"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    files = {"file": (name, content, "application/octet-stream")}
    return client.request("POST", f"{UPLOAD}{query}", files=files, headers=given)


def refusal(answer: httpx.Response) -> tuple[int, str]:
    error = error_of(answer)
    return error["status"], error["error"]


@pytest.mark.engines
def test_each_type_of_file_becomes_a_resume(client: Client, tmp_path: Path) -> None:
    for content, name in (
        (PDF, "a.pdf"), (WORD, "b.DOCX"), (OLD_WORD, "ada's cv.doc"), (b"\n" * 1020 + PDF, "c.pdf"),
    ):  # fmt: skip
        answer = upload(client, content, name)
        assert answer.status_code == 200
        assert answer.json().keys() == {"id"}
        assert client.get(answer.json()["id"]).json() == a_resume()
    assert told(tmp_path, "runs") == [".pdf", ".docx", ".doc", ".pdf"]


@pytest.mark.engines
def test_an_upload_is_a_create(client: Client, place: Place) -> None:
    accounts.set_options(place.store, client.account, {"on_newer": "replace"})
    odd = upload(client, b"%PDF odd", query="?label=class-2026&other=1").json()
    assert odd["warnings"][0]["path"] == "style.font"
    assert client.ids("label=class-2026") == [odd["id"]]
    again = upload(client, b"%PDF odd, newer").json()
    assert again["replaced"] == [odd["id"]]
    assert client.ids("label=class-2026") == [again["id"]]
    assert refusal(upload(client, query="?label="))[0] == 400
    metrics = client.request("GET", "/metrics").text
    assert 'requests_total{operation="upload",status="200"} 2' in metrics


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (PDF, "ada.txt"), (PDF, "ada"), (PDF, "ada.pdf.exe"), (PDF, "ada.docx"), (WORD, "ada.pdf"),
        (WORD, "ada.doc"), (b"", "ada.pdf"), (b"hello", "ada.pdf"), (b"x" * 1021 + PDF, "ada.pdf"),
    ],
)  # fmt: skip
def test_only_what_is_a_document_by_name_and_content_is_analyzed(
    client: Client, tmp_path: Path, content: bytes, name: str
) -> None:
    assert refusal(upload(client, content, name)) == (400, INVALID_TYPE)
    assert not told(tmp_path, "runs")


def a_form(*parts: tuple[str, bytes]) -> bytes:
    made = (b"--B\r\n%b\r\n\r\n%b\r\n" % (head.encode(), content) for head, content in parts)
    return b"".join([*made, b"--B--\r\n"])


def send_form(client: Client, body: Any) -> httpx.Response:
    kind = {"Content-Type": "multipart/form-data; boundary=B"}
    headers = {"Authorization": f"Bearer {client.key}"} | kind
    return client.request("POST", UPLOAD, content=body, headers=headers)


FILE = 'Content-Disposition: form-data; name="file"; filename="a.pdf"'
FIELD = 'Content-Disposition: form-data; name="note"'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "Invalid multipart body: "),
        (a_form(), "No file uploaded"),
        (a_form((FIELD, b"x")), "No file uploaded"),
        (a_form((FILE.replace("a.pdf", ""), b"")), "No file uploaded"),
        (a_form((FILE.replace('"file"', '"files"'), PDF)), "No file uploaded"),
        (a_form(('Content-Disposition: form-data; name="file"', PDF)), "No file uploaded"),
        (a_form((FILE, PDF), (FILE, PDF)), "More than one file uploaded: send one"),
        (a_form((FILE, PDF))[:-5], "Invalid multipart body: "),
        (a_form((FILE, PDF)).replace(b"\r\n", b"\n"), "Invalid multipart body: "),
        (a_form(("no header", PDF)), "Invalid multipart body: "),
        (
            a_form((FILE, PDF)).replace(b"a.pdf", b"\xff.pdf"),
            "Invalid multipart body: Segment header failed to decode",
        ),
        (a_form(*[(FIELD, b"x")] * 17), "Invalid multipart body: "),
        (b"x" * 1000, "Invalid multipart body: "),
    ],
)
def test_a_form_without_one_file_is_refused(
    client: Client, tmp_path: Path, body: bytes, message: str
) -> None:
    status, said = refusal(send_form(client, body))
    assert (status, said[: len(message)]) == (400, message)
    assert "Error" not in said
    assert not told(tmp_path, "runs")
    beside = a_form((FIELD, b"x"), (FILE, PDF), (FIELD, b"y"))
    assert send_form(client, beside).status_code == 200


@pytest.mark.parametrize("kind", ["", "application/json", "multipart/mixed; boundary=B", "\xff"])
def test_another_body_is_no_upload(client: Client, kind: str) -> None:
    headers = {
        b"Authorization": f"Bearer {client.key}".encode(),
        b"Content-Type": kind.encode("l1"),
    }
    answer = client.request("POST", UPLOAD, content=a_form((FILE, PDF)), headers=headers)
    assert refusal(answer) == (400, "No file uploaded")


def test_ten_megabytes_are_accepted_and_no_more(client: Client) -> None:
    most = PDF.ljust(10 * 1024 * 1024, b"x")
    assert upload(client, most).status_code == 200
    for content in (most + b"x", most * 2):
        assert refusal(upload(client, content))[0] == 413

    def pieces() -> Iterator[bytes]:
        head, tail = a_form((FILE, b"<>")).split(b"<>")
        yield head
        for _ in range(200):
            yield PDF.ljust(64 * 1024)
        yield tail

    assert send_form(client, pieces()).status_code == 413
    fields = a_form((FIELD, b"x" * 100_000), (FILE, most))
    assert send_form(client, fields).status_code == 413
    assert upload(client).status_code == 200


def test_an_upload_is_not_held_in_memory(
    client: Client, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.connections.BODY_MEMORY_BYTES", 3 * 1024 * 1024)
    with serve_here(
        place.settings.home,
        place.settings.database_url,
        analyzer=place.settings.analyzer,
        max_body_bytes=1024 * 1024,
    ) as small:
        other = Client(small.url, client.key)
        for _ in range(3):
            answer = upload(other, PDF.ljust(9_000_000))
            assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"%PDF locked", "The analyzer failed with exit code 1: The PDF has a password"),
        (b"%PDF noise", "The analyzer's output cannot be stored: Invalid JSON"),
        (b"%PDF letter", "The analyzer's output cannot be stored: "),
    ],
)
def test_what_the_analyzer_refuses_is_422_with_its_words(
    client: Client, content: bytes, message: str
) -> None:
    status, said = refusal(upload(client, content))
    assert (status, said[: len(message)]) == (422, message)
    assert client.ids() == []


def test_an_analyzer_that_does_not_finish_is_504(
    client: Client, place: Place, tmp_path: Path
) -> None:
    with serve_here(
        tmp_path, place.settings.database_url, analyzer=place.settings.analyzer,
        analyzer_timeout_s=1.0,
    ) as hasty:  # fmt: skip
        other = Client(hasty.url, client.key)
        message = "The analyzer did not finish within 1 s and was stopped"
        assert refusal(upload(other, b"%PDF slow")) == (504, message)
    # On a busy machine it may not even have begun.
    assert not any(is_running(int(pid)) for pid in told(tmp_path, "pid"))


def test_an_analyzer_that_cannot_be_started_is_503(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "analyze").unlink()
    status, said = refusal(upload(client))
    assert (status, str(tmp_path) in said) == (503, False)
    assert "was not found" in caplog.text


@pytest.mark.engines
def test_a_repeated_upload_is_answered_without_the_analyzer(
    client: Client, free_client: Client, tmp_path: Path
) -> None:
    first = upload(free_client, Idempotency_Key="one")
    for _ in range(4):
        upload(free_client, b"%PDF other")

    again = upload(free_client, name="renamed.pdf", Idempotency_Key="one")

    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(told(tmp_path, "runs")) == 5
    mismatch = "Idempotency-Key was already used with a different body"
    assert refusal(upload(free_client, WORD, "a.docx", Idempotency_Key="one")) == (422, mismatch)
    full = (403, "Maximum resume limit reached. Your plan allows 5 resumes")
    assert refusal(upload(free_client, Idempotency_Key="two")) == full
    assert len(told(tmp_path, "runs")) == 5


@pytest.mark.engines
def test_a_repeated_upload_says_again_what_it_replaced_and_warns_of(
    client: Client, place: Place
) -> None:
    accounts.set_options(place.store, client.account, {"on_newer": "replace"})
    old = upload(client, b"%PDF odd").json()
    first = upload(client, b"%PDF odd, newer", Idempotency_Key="one").json()
    assert (first["replaced"], first["warnings"]) == ([old["id"]], old["warnings"])
    assert upload(client, b"%PDF odd, newer", Idempotency_Key="one").json() == first
    client.put(first["id"], a_body())
    again = upload(client, b"%PDF odd, newer", Idempotency_Key="one").json()
    assert again == {"id": first["id"], "replaced": [old["id"]]}


@pytest.mark.engines
def test_the_quota_holds_for_what_was_analyzed_meanwhile(
    free_client: Client, tmp_path: Path
) -> None:
    for _ in range(4):
        free_client.create(a_resume())
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(upload, free_client, b"%PDF wait")
        wait_until(lambda: told(tmp_path, "pid"))
        assert free_client.create(a_resume()).status_code == 201
        (tmp_path / "go").touch()
        assert refusal(answer.result())[0] == 403


@pytest.mark.engines
def test_nothing_is_stored_for_a_key_that_is_revoked_meanwhile(
    client: Client, place: Place, tmp_path: Path
) -> None:
    key = api_keys.create_key(place.store, client.account)
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(upload, client, b"%PDF wait", key=key.secret)
        wait_until(lambda: told(tmp_path, "pid"))
        api_keys.revoke_key(place.store, key.id)
        (tmp_path / "go").touch()
        assert refusal(answer.result()) == (401, "Invalid API key")
    assert client.ids() == []


def test_one_upload_of_a_key_and_as_many_as_there_is_room_for(
    client: Client, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = api_keys.create_key(place.store, client.account).secret
    with ThreadPoolExecutor() as threads:
        first = threads.submit(upload, client, b"%PDF wait")
        wait_until(lambda: told(tmp_path, "pid"))
        busy = upload(client)
        with monkeypatch.context() as patch:
            patch.setattr(upload_route, "MAX_UPLOADS", 1)
            assert refusal(upload(client, key=other)) == (503, upload_route.BUSY)
        second = threads.submit(upload, client, b"%PDF wait", key=other)
        begun = "resumes_requests_in_flight 3"  # with the one that asks
        wait_until(lambda: begun in client.request("GET", "/metrics").text)
        assert client.create(a_resume()).status_code == 201
        assert len(told(tmp_path, "pid")) == 1
        (tmp_path / "go").touch()
        assert first.result().status_code == second.result().status_code == 200
    assert (refusal(busy), busy.headers["Retry-After"]) == ((503, upload_route.SAME_KEY), "1")
    assert upload(client).status_code == 200


@pytest.mark.parametrize("leaving", ["reset", "close", "end sending"])
def test_an_analyzer_is_ended_when_the_client_leaves(
    client: Client, place: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture, leaving: str
) -> None:
    body = a_form((FILE, b"%PDF slow"))
    head = (
        f"POST {UPLOAD} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.key}\r\n"
        f"Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with a_connection(place.url) as connection:
        connection.sendall(head.encode() + body)
        wait_until(lambda: told(tmp_path, "pid"))
        if leaving == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif leaving == "end sending":
            connection.shutdown(socket.SHUT_WR)
            answer = read_all(connection)
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"nothing was stored" in answer
    wait_until(lambda: not is_running(int(told(tmp_path, "pid")[0])))
    wait_until(lambda: upload(client).status_code == 200)
    assert "timeout" not in caplog.text
    with a_connection(place.url) as connection:  # leaves within the body
        connection.sendall(head.encode() + body[:-9])
    wait_until(lambda: upload(client).status_code == 200)
    assert len(client.ids()) == 2


def test_a_service_that_stops_ends_an_analyzer_that_takes_too_long(
    client: Client, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "SHUTDOWN_S", 0.5)
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(upload, client, b"%PDF slow")
        wait_until(lambda: told(tmp_path, "pid"))
        place.stop()
        assert refusal(answer.result()) == (503, upload_route.STOPPED)
    wait_until(lambda: not is_running(int(told(tmp_path, "pid")[0])))


@pytest.mark.engines
def test_who_may_upload_is_who_may_create(
    client: Client, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for method in ("GET", "PUT", "DELETE"):
        answer = client.request(method, UPLOAD)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    reader = api_keys.create_key(place.store, client.account, is_read_only=True).secret
    assert refusal(upload(client, key=reader)) == (403, "This API key is read-only")
    assert upload(client, key="enh_live_nobody").status_code == 401
    if place.store.path is not None:
        fill_disk(monkeypatch, tmp_path)
        wait_until(lambda: upload(client).status_code == 503)


def test_without_an_analyzer_there_is_no_upload(
    client: Client, tmp_path: Path, place: Place
) -> None:
    with serve_here(tmp_path, place.settings.database_url) as plain:
        other = Client(plain.url, client.key)
        for method in ("GET", "POST", "PUT", "DELETE"):
            assert refusal(other.request(method, UPLOAD)) == (404, "Not Found")
