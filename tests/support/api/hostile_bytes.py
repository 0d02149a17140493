"""Requests that are none, or could be read as two, and what a server makes of them."""

import re
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.api.serving import Served, a_connection, read_all

PATH = b"/api/v1/resumes"
BODY = b'{"header":{},"sections":{}}'
LENGTH = b"Content-Length: 27\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"1b\r\n" + BODY + b"\r\n0\r\n\r\n"
HOST = b"Host: resumes.test\r\n"
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [A-Za-z -]+\r\n")


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
    return len(programs.walk(served.url, served.key, limit=100))


def send(served: Served, data: bytes) -> bytes:
    """Everything that the server says until it closes the connection."""
    with a_connection(served.url) as connection:
        connection.sendall(data)
        return read_all(connection)


def statuses(answers: bytes) -> list[int]:
    """Those of answers in a row."""
    return [int(status) for status in STATUS.findall(answers)]


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
    "a length in a trailer": (CHUNKED, CHUNKS[:-2] + LENGTH + b"\r\n"),
    "chunks in a trailer": (CHUNKED, CHUNKS[:-2] + CHUNKED + b"\r\n"),
    "chunked, then gzip": (b"Transfer-Encoding: chunked, gzip\r\n", CHUNKS),
    "chunked and nothing": (b"Transfer-Encoding: chunked,\r\n", CHUNKS),
    "chunked twice": (CHUNKED + CHUNKED, CHUNKS),
    "an odd space before chunked": (b"Transfer-Encoding: \x0bchunked\r\n", CHUNKS),
    "identity and a length": (b"Transfer-Encoding: identity\r\n" + LENGTH, BODY),
}

LINES = {
    "a target of another scheme": b"POST ftp://resumes.test" + PATH + b" HTTP/1.1",
    "a target with a user": b"POST http://ada@resumes.test" + PATH + b" HTTP/1.1",
    "a target without a host": b"POST http://" + PATH + b" HTTP/1.1",
    "a target with a port alone": b"POST http://:80" + PATH + b" HTTP/1.1",
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

REFUSED: dict[str, tuple[int, dict[str, bytes]]] = {
    **{name: (400, {"fields": fields, "body": body}) for name, (fields, body) in FIELDS.items()},
    **{name: (400, {"line": line}) for name, line in LINES.items()},
    "no host": (400, {"host": b""}),
    "two hosts": (400, {"host": HOST + HOST}),
    "a host with a space": (400, {"host": b"Host: a b\r\n"}),
    "a host with a user": (400, {"host": b"Host: a@b\r\n"}),
    "a host with a path": (400, {"host": b"Host: a/b\r\n"}),
    "two lengths, one behind": (400, {"fields": LENGTH + b"content-length: 1\r\n"}),
    "chunks in HTTP/1.0": (
        400,
        {"fields": CHUNKED, "body": CHUNKS, "line": b"POST " + PATH + b" HTTP/1.0"},
    ),
}
"""By what is wrong with it: a post's status, and those of its parts that are odd (`a_post`)."""


def peak_kib(served: Served) -> int:
    """The most memory that the server's process has had."""
    status = Path(f"/proc/{served.process.pid}/status")
    if not status.exists():
        pytest.skip("the system does not tell the memory of a process in /proc")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
    assert found is not None
    return int(found[1])
