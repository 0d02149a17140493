"""Bytes that are no request, or could be read as two: one answer, and the connection ends."""

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.server.serving import Served, a_connection, read_all, serve

PATH = b"/api/v1/resumes"
BODY = b'{"header":{},"sections":{}}'
LENGTH = b"Content-Length: 27\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"1b\r\n" + BODY + b"\r\n0\r\n\r\n"
HOST = b"Host: resumes.test\r\n"
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [A-Za-z -]+\r\n")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server in a process of its own, for all tests of this module."""
    with serve(tmp_path_factory.mktemp("served")) as served:
        yield served


def a_post(
    served: Served,
    fields: bytes = LENGTH,
    body: bytes = BODY,
    *,
    line: bytes = b"POST " + PATH + b" HTTP/1.1",
    host: bytes = HOST,
) -> bytes:
    """A create of the smallest resume, with other parts than a client would send."""
    given = b"Authorization: Bearer %b\r\nContent-Type: application/json\r\n" % served.key.encode()
    return line + b"\r\n" + host + given + fields + b"\r\n" + body


def created(served: Served) -> int:
    """How many resumes there are."""
    headers = {"Authorization": f"Bearer {served.key}"}
    count = 0
    cursor: str | None = ""
    while cursor is not None:
        page = httpx.get(f"{served.url}/api/v1/resumes?limit=100&cursor={cursor}", headers=headers)
        count += len(page.json()["resumes"])
        cursor = page.json()["pagination"]["cursor"]
    return count


def send(served: Served, data: bytes) -> bytes:
    """Everything that the server says until it closes the connection."""
    with a_connection(served.url) as connection:
        connection.sendall(data)
        return read_all(connection)


def statuses(answers: bytes) -> list[int]:
    """Those of answers in a row."""
    return [int(status) for status in STATUS.findall(answers)]


def test_the_post_that_is_varied_below_is_served(served: Served) -> None:
    before = created(served)

    answers = send(served, a_post(served) + a_post(served, LENGTH + b"Connection: close\r\n"))

    assert statuses(answers) == [201, 201]
    assert created(served) == before + 2


FIELDS = {
    "a length and chunks": (LENGTH + CHUNKED, CHUNKS),
    "chunks and a length": (CHUNKED + LENGTH, CHUNKS),
    "a length twice": (LENGTH + LENGTH, BODY),
    "two lengths": (LENGTH + b"Content-Length: 5\r\n", BODY),
    "a list of lengths": (b"Content-Length: 27, 27\r\n", BODY),
    "a length with a sign": (b"Content-Length: +27\r\n", BODY),
    "a negative length": (b"Content-Length: -1\r\n", BODY),
    "a hexadecimal length": (b"Content-Length: 0x1b\r\n", BODY),
    "a length with an underscore": (b"Content-Length: 2_7\r\n", BODY),
    "a length with a gap": (b"Content-Length: 2 7\r\n", BODY),
    "an empty length": (b"Content-Length:\r\n", BODY),
    "a length beyond 64 bits": (b"Content-Length: 99999999999999999999999\r\n", BODY),
    "a folded field": (b"X-A: b\r\n c\r\n" + LENGTH, BODY),
    "a bare line feed": (b"X-A: b\n" + LENGTH, BODY),
    "a bare carriage return": (b"X-A: b\rX-B: c\r\n" + LENGTH, BODY),
    "a space before the colon": (b"Content-Length : 27\r\n", BODY),
    "a tab before the colon": (b"Content-Length\t: 27\r\n", BODY),
    "NUL in a value": (LENGTH + b"X-A: a\x00b\r\n", BODY),
    "NUL in a name": (LENGTH + b"X\x00A: a\r\n", BODY),
    "a control byte in a value": (LENGTH + b"X-A: a\x01b\r\n", BODY),
    "a control byte in a name": (LENGTH + b"X\x01A: a\r\n", BODY),
    "an empty name": (LENGTH + b": a\r\n", BODY),
    "a name beyond ASCII": (LENGTH + b"X-\xc3\xa9: a\r\n", BODY),
    "a chunk size of 72 bits": (CHUNKED, CHUNKS.replace(b"1b", b"10000000000000001b")),
    "a chunk size of 68 bits": (CHUNKED, CHUNKS.replace(b"1b", b"1000000000000001b")),
    "a chunk size with 0x": (CHUNKED, CHUNKS.replace(b"1b", b"0x1b")),
    "a chunk size with a sign": (CHUNKED, CHUNKS.replace(b"1b", b"+1b")),
    "a chunk size and a space": (CHUNKED, CHUNKS.replace(b"1b", b"1b ")),
    "a chunk size and a line feed": (CHUNKED, CHUNKS.replace(b"1b\r", b"1b")),
    "a chunk and a line feed": (CHUNKED, CHUNKS.replace(b"}\r", b"}")),
    "a chunk longer than its size": (CHUNKED, CHUNKS.replace(b"1b", b"1a")),
    "a control byte in an extension": (CHUNKED, CHUNKS.replace(b"1b", b"1b;a=\x01")),
    "an extension of 60 KB": (CHUNKED, CHUNKS.replace(b"1b", b"1b;a=" + b"x" * 60_000)),
    "a trailer of 60 KB": (CHUNKED, CHUNKS[:-2] + b"X-A: " + b"x" * 60_000 + b"\r\n\r\n"),
    "chunked, then gzip": (b"Transfer-Encoding: chunked, gzip\r\n", CHUNKS),
    "chunked and nothing": (b"Transfer-Encoding: chunked,\r\n", CHUNKS),
    "chunked twice": (CHUNKED + CHUNKED, CHUNKS),
    "an odd space before chunked": (b"Transfer-Encoding: \x0bchunked\r\n", CHUNKS),
    "identity and a length": (b"Transfer-Encoding: identity\r\n" + LENGTH, BODY),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_and_chunks_that_could_be_read_in_two_ways_are_400(
    served: Served, name: str
) -> None:
    fields, body = FIELDS[name]

    refused_without_a_second(served, a_post(served, fields, body), 400)


LINES = {
    "an absolute target": b"POST http://resumes.test" + PATH + b" HTTP/1.1",
    "an asterisk": b"OPTIONS * HTTP/1.1",
    "an authority": b"CONNECT resumes.test:80 HTTP/1.1",
    "a fragment": b"POST " + PATH + b"#x HTTP/1.1",
    "encoded dots": b"POST /api/v1/x/%2e%2E/resumes HTTP/1.1",
    "an encoded slash": b"POST /api/v1%2fresumes HTTP/1.1",
    "an encoded backslash": b"POST /api/v1%5Cresumes HTTP/1.1",
    "an encoded NUL": b"POST " + PATH + b"%00 HTTP/1.1",
    "NUL": b"POST " + PATH + b"\x00 HTTP/1.1",
    "a control byte": b"POST " + PATH + b"\x01 HTTP/1.1",
    "a tab behind the target": b"POST " + PATH + b"\tHTTP/1.1",
    "a method in small letters": b"post " + PATH + b" HTTP/1.1",
    "HTTP/2": b"POST " + PATH + b" HTTP/2.0",
    "HTTP/0.9": b"POST " + PATH + b" HTTP/0.9",
    "HTTP/1.2": b"POST " + PATH + b" HTTP/1.2",
    "no version": b"POST " + PATH,
    "another protocol": b"POST " + PATH + b" HTTPX/1.1",
    "a folded line": b"POST " + PATH + b" HTTP/1.1\r\n X: y",
}


@pytest.mark.parametrize("name", LINES)
def test_request_lines_that_are_not_served_are_400(served: Served, name: str) -> None:
    refused_without_a_second(served, a_post(served, line=LINES[name]), 400)


@pytest.mark.parametrize(
    "host", [b"", HOST + HOST, b"Host: a b\r\n", b"Host: a@b\r\n", b"Host: a/b\r\n"]
)
def test_a_request_without_one_host_is_400(served: Served, host: bytes) -> None:
    refused_without_a_second(served, a_post(served, host=host), 400)


def test_line_feeds_for_line_ends_are_400(served: Served) -> None:
    refused_without_a_second(served, a_post(served).replace(b"\r\n", b"\n"), 400)


def test_chunks_in_http_1_0_are_400(served: Served) -> None:
    line = b"POST " + PATH + b" HTTP/1.0"

    refused_without_a_second(served, a_post(served, CHUNKED, CHUNKS, line=line), 400)


@pytest.mark.parametrize("coding", [b"gzip, chunked", b"gzip", b"xchunked"])
def test_other_transfer_codings_are_501(served: Served, coding: bytes) -> None:
    fields = b"Transfer-Encoding: %b\r\n" % coding

    refused_without_a_second(served, a_post(served, fields, CHUNKS), 501)


@pytest.mark.parametrize(
    ("fields", "line", "status"),
    [
        (b"X-A: " + b"x" * 66_000 + b"\r\n", b"", 431),
        (b"X-A: " + b"x" * 10_000_000 + b"\r\n", b"", 431),
        (b"X-A: b\r\n" * 101, b"", 431),
        (b"X-A: b\r\n" * 100_000, b"", 431),
        (b"", PATH + b"?" + b"x" * 8_200, 414),
        (b"", PATH + b"?" + b"x" * 1_000_000, 414),
    ],
)
def test_what_is_too_large_before_the_body_is_414_or_431(
    served: Served, fields: bytes, line: bytes, status: int
) -> None:
    line = b"POST " + (line or PATH) + b" HTTP/1.1"

    refused_without_a_second(served, a_post(served, LENGTH + fields, line=line), status)


def refused_without_a_second(served: Served, request: bytes, status: int) -> None:
    """The request has this one answer, in the one shape, and what follows it is not run."""
    before = created(served)

    answers = send(served, request + a_post(served))

    assert statuses(answers) == [status]
    head, _, body = answers.partition(b"\r\n\r\n")
    error = json.loads(body)
    assert error["status"] == status
    assert f"x-request-id: {error['requestId']}".encode() in head
    assert b"connection: close" in head
    assert created(served) == before


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (LENGTH + b"X-A: " + b"x" * 63_000 + b"\r\n", PATH),
        (LENGTH + b"X-A: b\r\n" * 96, PATH),
        (LENGTH, PATH + b"?" + b"x" * 8_100),
    ],
)
def test_a_head_just_below_the_limits_is_served(served: Served, fields: bytes, line: bytes) -> None:
    request = a_post(served, fields, line=b"POST " + line + b" HTTP/1.1")

    answers = send(served, request + a_post(served, LENGTH + b"Connection: close\r\n"))

    assert statuses(answers) == [201, 201]


def test_a_client_may_send_its_body_in_chunks_of_one_byte(served: Served) -> None:
    body = BODY + b" " * 50_000
    chunks = b"".join([b"0001\r\n%c\r\n" % byte for byte in body]) + b"0\r\n\r\n"

    answers = send(served, a_post(served, CHUNKED + b"Connection: close\r\n", chunks))

    assert statuses(answers) == [201]


def test_a_header_behind_a_body_in_chunks_says_nothing(served: Served) -> None:
    key = b"Authorization: Bearer %b\r\n" % served.key.encode()
    trailer = CHUNKS[:-2] + key + b"\r\n"
    get = b"GET " + PATH + b" HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
    without_key = a_post(served, CHUNKED, trailer).replace(key, b"", 1)

    assert statuses(send(served, without_key + get)) == [401, 401]


def test_a_broken_body_behind_a_request_is_not_taken_for_its_answer(served: Served) -> None:
    answers = send(served, a_post(served) + a_post(served, CHUNKED, b"zz\r\n"))

    assert statuses(answers) == [201]


def test_a_refusal_has_the_id_that_the_request_came_with(served: Served) -> None:
    request = a_post(served, b"X-Request-Id: mine-7\r\n" + LENGTH, host=b"")

    _, _, body = send(served, request).partition(b"\r\n\r\n")

    assert json.loads(body)["requestId"] == "mine-7"


def test_every_offer_of_another_protocol_is_declined(served: Served) -> None:
    offer = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    close = LENGTH + b"Connection: close\r\n"

    answers = send(served, a_post(served, LENGTH + offer) * 300 + a_post(served, close))

    assert statuses(answers) == [201] * 301


def test_thousands_of_requests_sent_at_once_are_all_answered(served: Served) -> None:
    get = b"GET / HTTP/1.1\r\n" + HOST
    last = get + b"Connection: close\r\n\r\n"

    assert statuses(send(served, (get + b"\r\n") * 5_000 + last)) == [404] * 5_001


def test_a_client_that_sends_no_more_still_has_its_answers(served: Served) -> None:
    with a_connection(served.url) as connection:
        connection.sendall(a_post(served) * 200)
        connection.shutdown(socket.SHUT_WR)

        assert statuses(read_all(connection)) == [201] * 200


def test_requests_without_end_wait_at_the_client(served: Served) -> None:
    before = peak_kib(served)
    requests = a_post(served) * 1_000
    with a_connection(served.url) as connection:
        connection.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            for _ in range(500):  # of some 250 KB; no answer is read
                connection.sendall(requests)

    assert peak_kib(served) - before < 32 * 1024


@pytest.mark.parametrize("in_chunks", [False, True])
def test_a_header_without_end_costs_no_memory(served: Served, in_chunks: bool) -> None:
    before = peak_kib(served)
    start = a_post(served, CHUNKED, b"1b;a=") if in_chunks else a_post(served, b"X-A: ", b"")[:-2]
    with a_connection(served.url) as connection:
        connection.sendall(start)
        refused = send_without_end(connection, b"x" * 65_536, 200)

    assert refused
    assert peak_kib(served) - before < 8 * 1024


def send_without_end(connection: socket.socket, block: bytes, times: int) -> bool:
    """Whether the server ended the connection before so many blocks were sent, and read."""
    try:
        for _ in range(times):
            connection.sendall(block)
        return read_all(connection) != b""
    except OSError:
        return True


def peak_kib(served: Served) -> int:
    """The most memory that the server's process has had."""
    status = Path(f"/proc/{served.process.pid}/status")
    if not status.exists():
        pytest.skip("the system does not tell the memory of a process in /proc")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
    assert found is not None
    return int(found[1])
