import json
import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.server.builders import RESUMES, a_resume
from tests.server.serving import Served, a_connection, read_all, serve


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server in a process of its own, for all tests of this module."""
    with serve(tmp_path_factory.mktemp("served")) as served:
        yield served


def a_request(served: Served, body: bytes, *, method: str = "POST", **headers: str) -> bytes:
    """A request as it is sent, with the key and a JSON body."""
    given = {
        "Host": "resumes.test",
        "Authorization": f"Bearer {served.key}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    }
    sent = given | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in sent.items() if value]
    return "\r\n".join([f"{method} {RESUMES} HTTP/1.1", *lines, "", ""]).encode() + body


def split(answer: bytes) -> tuple[bytes, bytes]:
    """The head of an answer and what follows it."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    return head.lower(), rest


# docs/api.md, Errors: every error of every layer has the one shape


@pytest.mark.parametrize(
    "garbage",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"CONNECT resumes.test:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_malformed_http_is_400_in_the_one_shape(served: Served, garbage: bytes) -> None:
    with a_connection(served.url) as connection:
        connection.sendall(garbage)

        head, body = split(read_all(connection))

    assert head.startswith(b"http/1.1 400 bad request\r\n")
    assert b"connection: close" in head
    assert b"content-type: application/json" in head
    assert json.loads(body)["status"] == 400
    assert list(json.loads(body)) == ["error", "status", "requestId"]


def test_garbage_in_a_body_is_400(served: Served) -> None:
    request = a_request(served, b"", Content_Length="", Transfer_Encoding="chunked")
    with a_connection(served.url) as connection:
        connection.sendall(request + b"not a chunk")

        head, body = split(read_all(connection))

    assert head.startswith(b"http/1.1 400 ")
    assert json.loads(body)["status"] == 400


def test_garbage_behind_a_request_is_not_taken_for_its_answer(served: Served) -> None:
    request = a_request(served, json.dumps(a_resume()).encode())
    with a_connection(served.url) as connection:
        connection.sendall(request + b"GARBAGE\r\n\r\n")

        head, body = split(read_all(connection))

    assert head.startswith(b"http/1.1 201 ")
    assert list(json.loads(body)) == ["id"]


def test_there_is_a_date_and_no_server_header(served: Served) -> None:
    answer = httpx.get(served.url)

    assert "Date" in answer.headers
    assert "Server" not in answer.headers


def test_an_offer_of_another_protocol_is_declined_and_the_body_kept(served: Served) -> None:
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAA"}
    request = a_request(served, json.dumps(a_resume()).encode(), **offer)
    with a_connection(served.url) as connection:
        connection.sendall(request[:-20])
        connection.sendall(request[-20:])
        first = read_answer(connection)
        connection.sendall(request)
        second = read_answer(connection)

    assert first.startswith(b"HTTP/1.1 201 ")
    assert second.startswith(b"HTTP/1.1 201 ")


def read_answer(connection: socket.socket) -> bytes:
    """One answer with its body, which ends with an object."""
    received = b""
    while b"\r\n\r\n" not in received or not received.endswith(b"}"):
        chunk = connection.recv(65536)
        assert chunk, received
        received += chunk
    return received


def test_requests_sent_together_are_answered_in_order(served: Served) -> None:
    one = a_request(served, b"{", method="POST")
    other = a_request(served, b"", method="GET", Connection="close")
    with a_connection(served.url) as connection:
        connection.sendall(one + other)

        answers = read_all(connection)

    assert answers.startswith(b"HTTP/1.1 400 ")
    assert b'"}HTTP/1.1 200 OK\r\n' in answers


def test_head_has_no_body(served: Served) -> None:
    request = a_request(served, b"", method="HEAD", Connection="close")
    with a_connection(served.url) as connection:
        connection.sendall(request)

        head, body = split(read_all(connection))

    assert head.startswith(b"http/1.1 405 ")
    assert body == b""


def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(served: Served) -> None:
    body = json.dumps(a_resume()).encode()
    request = a_request(served, body, Expect="100-continue", Connection="close")
    with a_connection(served.url) as connection:
        connection.sendall(request[: -len(body)])
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)

        assert read_all(connection).startswith(b"HTTP/1.1 201 ")


# docs/api.md, Create: the largest body


def test_a_client_that_sends_all_before_it_reads_sees_the_413(served: Served) -> None:
    body = b" " * (15 * 1024 * 1024)
    with a_connection(served.url) as connection:
        connection.sendall(a_request(served, body))

        head, rest = split(read_all(connection))

    assert head.startswith(b"http/1.1 413 ")
    assert b"connection: close" in head
    assert json.loads(rest)["error"] == "Resume too large: the limit is 2097152 bytes"


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Authorization": "Bearer unknown"}, 401), ({"Content_Encoding": "gzip"}, 415)],
)
def test_a_client_that_sends_all_and_asks_for_the_end_sees_its_refusal(
    served: Served, headers: dict[str, str], status: int
) -> None:
    request = a_request(served, b" " * (2 * 1024 * 1024), Connection="close", **headers)
    with a_connection(served.url) as connection:
        connection.sendall(request)

        head, _ = split(read_all(connection))

    assert head.startswith(f"http/1.1 {status} ".encode())
    assert b"connection: close" in head


def test_a_413_comes_before_the_body_is_sent(served: Served) -> None:
    request = a_request(served, b"", Content_Length=str(3 * 1024 * 1024), Expect="100-continue")
    with a_connection(served.url) as connection:
        connection.sendall(request)

        assert read_answer(connection).startswith(b"HTTP/1.1 413 ")


def test_a_chunked_body_is_created_or_413_by_its_size(served: Served) -> None:
    head = a_request(served, b"", Content_Length="", Transfer_Encoding="chunked")
    body = json.dumps(a_resume()).encode()
    large = b" " * (3 * 1024 * 1024)
    with a_connection(served.url) as connection:
        connection.sendall(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        assert read_answer(connection).startswith(b"HTTP/1.1 201 ")
        connection.sendall(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(large), large))

        assert read_all(connection).startswith(b"HTTP/1.1 413 ")
