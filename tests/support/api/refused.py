"""Requests that are refused: what a client sends, by a name that says what is wrong with it."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.support.api.builders import RESUMES, Client, a_body, a_resume, with_section

PATH = b"/api/v1/resumes"
BODY = b'{"header":{},"sections":{}}'
LENGTH = b"Content-Length: 27\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"1b\r\n" + BODY + b"\r\n0\r\n\r\n"
HOST = b"Host: resumes.test\r\n"
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [A-Za-z -]+\r\n")


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
"""By what is wrong with it: a post's status, and those of its parts that are odd."""

ID: Final = "0123456789abcdef01234567"
JSON: Final = b"Content-Type: application/json"
MAX_BYTES: Final = 2 * 1024 * 1024

ADA: Final = b"ADA"
"""In a request: the key of an account on the business plan."""
FRED: Final = b"FRED"
"""In a request: the key of an account on the free plan, which is full."""
RITA: Final = b"RITA"
"""In a request: a read-only key of ADA's account."""

Requests = Iterator[tuple[str, bytes]]


def a_request(
    method: str = "POST",
    path: str = RESUMES,
    *fields: bytes,
    body: bytes | None = None,
    key: bytes | None = ADA,
    length: bool = True,
) -> bytes:
    """A request as it is sent, with an id that its answer repeats."""
    head = [f"{method} {path} HTTP/1.1".encode("latin-1"), b"Host: resumes.test"]
    head += [b"X-Request-Id: mine", b"Connection: close"]
    head += [b"Authorization: Bearer " + key] if key is not None else []
    head += [b"Content-Length: %d" % len(body)] if body is not None and length else []
    return b"\r\n".join([*head, *fields, b"", body or b""])


def a_create(body: bytes, *fields: bytes, key: bytes = ADA) -> bytes:
    """A create as a client sends it."""
    return a_request("POST", RESUMES, JSON, *fields, body=body, key=key)


def keyed(client: Client, sent: bytes) -> bytes:
    """The request with the client's key."""
    return sent.replace(b"Bearer ADA", b"Bearer " + client.key.encode())


def kept(sent: bytes) -> bytes:
    """The request of a client that keeps its connection."""
    return sent.replace(b"Connection: close\r\n", b"")


def as_in_1990(sent: bytes) -> bytes:
    """The request in HTTP/1.0, of a client that asks to keep its connection."""
    kept_then = kept(sent).replace(b"Host: resumes.test\r\n", b"Connection: keep-alive\r\n")
    return kept_then.replace(b"HTTP/1.1", b"HTTP/1.0")


def iter_heads() -> Requests:
    """Bytes that are no request, or could be read as two (docs/api.md, Limits)."""
    key = b"Authorization: Bearer ADA\r\nContent-Type: application/json\r\n"
    line, host = b"POST /api/v1/resumes HTTP/1.1", HOST
    length, body = LENGTH, BODY

    def head(line: bytes = line, host: bytes = host, fields: bytes = length) -> bytes:
        return line + b"\r\n" + host + key + fields + b"\r\n"

    for name, (fields, content) in FIELDS.items():
        yield f"fields: {name}", head(fields=fields) + content
    for name, odd in LINES.items():
        yield f"line: {name}", head(odd) + body
    for odd in (
        b"", host + host, b"Host: a b\r\n", b"Host: a@b\r\n", b"Host: a/b\r\n", b"Host: a:80x\r\n",
        b"Host: [::1\r\n", b"Host: \xe9\r\n",
    ):  # fmt: skip
        yield f"host: {odd!r}", head(host=odd) + body
    for coding in (b"gzip, chunked", b"gzip", b"xchunked", b"identity", b""):
        fields = b"Transfer-Encoding: %b\r\n" % coding
        yield f"coding: {coding!r}", head(fields=fields) + CHUNKS
    for name, fields in {
        "66,000 bytes": b"X-A: " + b"x" * 66_000 + b"\r\n",
        "101 fields": b"X-A: b\r\n" * 101,
        "many fields": b"X-A: b\r\n" * 10_000,
    }.items():
        yield f"large head: {name}", head(fields=length + fields) + body
    for size in (8_200, 100_000):
        line = b"GET /api/v1/resumes?%b HTTP/1.1" % (b"x" * size)
        yield f"long line: {size}", head(line, fields=b"")
    for target in ("*", "ftp://a/", "http://a/%2E", "http://a#x", "http:/a", "http://a,b@c/", "a:80", "/api#x", "api", "/a/%2E", "/a%2Fb", "/a%5c", "/a%0a",
                   "/a%1F", "/a%7f", RESUMES + "/%00"):  # fmt: skip
        yield f"target: {target}", a_request("GET", target)
    for version in ("0.9", "1.2", "2.0", "3.0", "9.9", "1", "x"):
        yield f"version: {version}", head(b"GET / HTTP/" + version.encode(), fields=b"")
    for garbage in (b"GARBAGE\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x00\r\n",
                    b"GET / HTTP/1.1\n\n", b"GET  / HTTP/1.1\r\n\r\n"):  # fmt: skip
        yield f"garbage: {garbage!r}", garbage
    chunked = head(fields=CHUNKED)
    for chunk in (b"not a chunk", b"1;a=" + b"x" * 40_000, b"-1\r\n", b"g\r\n"):
        yield f"chunk: {chunk[:12]!r}", chunked + chunk
    yield ("chunks in HTTP/1.0", head(b"POST /api/v1/resumes HTTP/1.0", fields=CHUNKED) + CHUNKS)
    yield "line feeds alone", (head() + body).replace(b"\r\n", b"\n")
    yield (
        "an id with the refusal",
        head(host=b"", fields=b"X-Request-Id: mine-7\r\n" + length) + body,
    )


def iter_keys() -> Requests:
    """Requests without a key that counts (docs/api.md, Errors)."""
    values = [
        b"", b"Bearer", b"Bearer ", b"Basic YTpi", b"ADA", b"enh_live_x", b"Bearer enh_live_x",
        b"Bearer \xff\xfe", b"\xff", b"Bearer " + b"x" * 60_000, b"Bearer a b", b"Bearer\tADA",
        b"BearerADA", b"Bearer ADA x", b"Bearer ADA,", b"Digest ADA", b"Bearer ada",
    ]  # fmt: skip
    for value in values:
        for method in ("GET", "POST"):
            field = b"Authorization: " + value
            yield f"key: {method} {value[:20]!r}", a_request(method, RESUMES, field, key=None)
    for path in ("/api/v1", "/api/v1/", "/api/v1/nothing", RESUMES, f"{RESUMES}/x"):
        for method in ("GET", "PUT", "OPTIONS", "DELETE"):
            yield f"no key: {method} {path}", a_request(method, path, key=None)
    twice = b"Authorization: Bearer ADA"
    yield "two keys", a_request("GET", RESUMES, twice)
    query = "?api_key=ADA&Authorization=Bearer%20ADA"
    yield "a key in the query", a_request("GET", RESUMES + query, key=None)
    yield (
        "no key before 413 and 415",
        a_request(
            "POST", RESUMES, b"Content-Length: 99999999", b"Content-Type: text/plain", key=None
        ),
    )
    yield "HEAD without a key", a_request("HEAD", key=None)


def iter_paths() -> Requests:
    """Paths and methods that there are not (docs/api.md, Errors)."""
    for path in ("/api/v1", "/api/v1/", "/api/v1/nothing", f"{RESUMES}/", f"{RESUMES}/a/b",
                 f"{RESUMES}/upload", f"{RESUMES}?x=1/", "/api/v1/Resumes"):  # fmt: skip
        for method in ("GET", "POST", "DELETE"):
            if "?" not in path or method == "DELETE":
                yield f"path: {method} {path}", a_request(method, path)
    for path in ("/healthz/", "/doc", "/api", "/api/v10/resumes", "//api/v1", "/docs//",
                 "/docs/README.md", "/docs/../app.py", "/docs/docs.html", "/openapi.yaml",
                 "/metrics/x", "/%72"):  # fmt: skip
        yield f"outside: {path}", a_request("GET", path, key=None)
    for path in (RESUMES, f"{RESUMES}/{ID}"):
        for method in ("OPTIONS", "PUT", "PATCH", "TRACE"):
            if method != "PUT" or path == RESUMES:
                yield f"method: {method} {path}", a_request(method, path)
    yield "method: POST to one", a_request("POST", f"{RESUMES}/{ID}")
    yield "method: DELETE of all", a_request("DELETE", RESUMES)
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/docs/docs.js"):
        for method in ("POST", "PUT", "OPTIONS"):
            yield f"method: {method} {path}", a_request(method, path, key=None)
    for method in ("GET", "DELETE"):
        for resume_id in (ID, "x", "%FF", "%F0%9F%90%88", "x" * 7_900, "a%20b", "..", ID.upper()):
            yield f"id: {method} {resume_id[:30]}", a_request(method, f"{RESUMES}/{resume_id}")


def iter_queries() -> Requests:
    """Lists that ask for what there is not (docs/api.md, List)."""
    for query in ("limit=", "limit", "limit=ten", "limit=1.5", "limit=%2B5", "limit=+5",
                  "limit=5%0A", "limit=%D9%A5", "limit=%FF", "limit=1e1", "limit=5&limit=5",
                  "limit=0x5", "limit=5&LIMIT=x&limit=", "limit=--1", "limit=%00", "limit=5;",
                  "cursor=x", "cursor=" + "0" * 23, "cursor=" + "0" * 25, "cursor=" + "A" * 24,
                  f"cursor={'0' * 24}%0A", "cursor=&cursor=", "cursor=%00", "cursor=%FF",
                  f"cursor={ID}&cursor={ID}", "cursor=null", "page=2", "q=", "q=%20", "q=ada&q=ada",
                  "q=" + "x" * 501, "q=%21%3F", "q=ada&cursor=x", "sort=", "sort=name", "sort=Newest",
                  "Q=ada", "label=", "label=%20", "label=" + "x" * 101, "label=%00",
                  "label=%FF", "label=%E2%80%AE", "label=a&label=a", "latest=1",
                  "latest=True", "latest=", "latest=true&latest=true",
                  "Limit=5", "limit=5&page=2", "page", "=5", "&&page=2&page=2", "%6cimit=5&limit=5",
                  "limit%00=5", "limit=x&page=2", "_=1", "limit[]=5", f"cursor=%20{ID}",
                  "cursor=x&limit=x", f"cursor={'x' * 7_900}"):  # fmt: skip
        yield f"query: {query[:40]}", a_request("GET", f"{RESUMES}?{query}")
    for query in ("", "?limit=ten", "?cursor=x"):
        yield f"plan: list {query}", a_request("GET", RESUMES + query, key=FRED)
    yield "plan: one", a_request("GET", f"{RESUMES}/{ID}", key=FRED)


def iter_read_only() -> Requests:
    """What a read-only key may not do (docs/api.md, Errors)."""
    yield "read-only: create", a_create(a_body(), key=RITA)
    yield (
        "read-only: before 413 and 415",
        a_request("POST", RESUMES, b"Content-Length: 3000000", key=RITA),
    )
    yield "read-only: delete", a_request("DELETE", f"{RESUMES}/{ID}", key=RITA)
    yield "read-only: after 405", a_request("PATCH", RESUMES, key=RITA)
    yield "read-only: after 404", a_request("POST", f"{RESUMES}/", key=RITA)


def iter_labels() -> Requests:
    """Creates with what is no label (docs/api.md, Create)."""
    for label in ("", "+", "x" * 101, "%00", "%FF", "a&label=a"):
        target = f"{RESUMES}?label={label}"
        yield f"label: {label[:20]}", a_request("POST", target, JSON, body=a_body())


def iter_types() -> Requests:
    """Bodies of another type or size (docs/api.md, Create)."""
    for kind in ("", "text/plain", "text/json", "application/jsonp", "application/+json", "json",
                 "application/x-www-form-urlencoded", "multipart/form-data; boundary=json",
                 "application/json,text/x", "application/json x"):  # fmt: skip
        field = f"Content-Type: {kind}".encode()
        yield f"type: {kind}", a_request("POST", RESUMES, field, body=b"{}")
    yield "type: none", a_request("POST", RESUMES, body=a_body())
    yield "type: twice", a_request("POST", RESUMES, JSON, JSON, body=a_body())
    for kind in ("application/json; charset=utf-8", "APPLICATION/JSON;charset=x",
                 "application/vnd.api+json", "application/json ; a=b"):  # fmt: skip
        field = f"Content-Type: {kind}".encode()
        yield f"type that is JSON: {kind}", a_request("POST", RESUMES, field, body=b"{}")
    for encoding in (b"gzip", b"identity, gzip", b"br", b"deflate", b"x", b"identity"):
        yield f"encoding: {encoding!r}", a_create(b"{}", b"Content-Encoding: " + encoding)
    both = b"Content-Encoding: gzip", b"Content-Encoding: identity"
    yield "encoding: gzip, and identity", a_create(b"{}", *both)
    yield "size: declared", a_request("POST", RESUMES, JSON, b"Content-Length: 3000000")
    yield "size: absurd", a_request("POST", RESUMES, JSON, b"Content-Length: " + b"9" * 18)
    yield "size: before the type", a_request("POST", RESUMES, b"Content-Length: 3000000")
    yield "size: a byte more", a_create(b" " * (MAX_BYTES + 1))
    yield "size: exactly, but no JSON", a_create(b" " * MAX_BYTES)
    chunked = a_request("POST", RESUMES, JSON, b"Transfer-Encoding: chunked")
    yield "size: chunks", chunked + b"200001\r\n" + b" " * (MAX_BYTES + 1) + b"\r\n0\r\n\r\n"
    yield "type before the body", a_request("POST", RESUMES, b"Content-Type: a/b", body=b"no json")


def iter_idempotency_keys() -> Requests:
    """Keys of creates that are none, or another's (docs/api.md, Retrying a create)."""
    for value in (b"", b" ", b"two words", b"k" * 256, b"\xc3\xbc", b"a\tb", b"\x7f", b"k\xff"):
        field = b"Idempotency-Key: " + value
        yield f"idempotency key: {value[:12]!r}", a_create(a_body(), field)
    once = b"Idempotency-Key: once"
    yield "idempotency key: twice", a_create(a_body(), once, once)
    yield "idempotency key: two", a_create(a_body(), once, b"Idempotency-Key: other")
    yield "idempotency key: before the body", a_create(b"[]", b"Idempotency-Key: a b")
    yield (
        "idempotency key: behind the size",
        a_request("POST", RESUMES, JSON, b"Idempotency-Key: a b", b"Content-Length: 3000000"),
    )
    yield (
        "idempotency key: behind the type",
        a_request("POST", RESUMES, b"Idempotency-Key: a b", body=b"{}"),
    )
    yield "used key: another body", a_create(a_body("Bo Example"), once, key=FRED)
    yield "used key: another blank", a_create(a_body() + b" ", once, key=FRED)
    yield "used key: a body that is refused", a_create(b"[]", once, key=FRED)
    yield "full: a new key", a_create(a_body(), b"Idempotency-Key: new", key=FRED)
    yield "full: no key", a_create(a_body(), key=FRED)
    yield "full: a body that is refused", a_create(b'{"sections":{}}', key=FRED)


def iter_updates() -> Requests:
    """Updates of what there is not, and bodies that are refused before that is looked for."""
    path = f"{RESUMES}/{ID}"
    for resume_id in (ID, "x", "%FF", "..", ID.upper()):
        update = a_request("PUT", f"{RESUMES}/{resume_id}", JSON, body=a_body())
        yield f"update: {resume_id}", update
    for tags in (b"*", b'"x"'):
        yield (
            f"update: If-Match {tags!r}",
            a_request("PUT", path, JSON, b"If-Match: " + tags, body=a_body()),
        )
    yield "update: no resume", a_request("PUT", path, JSON, body=b"{}")
    yield "update: no JSON", a_request("PUT", path, JSON, body=b"{")
    yield "update: no type", a_request("PUT", path, body=a_body())
    yield "update: size", a_request("PUT", path, JSON, b"Content-Length: 3000000")
    yield "update: on any plan", a_request("PUT", path, JSON, body=a_body(), key=FRED)


def iter_texts() -> Requests:
    """Bodies that are not JSON as it can be kept (docs/format.md)."""
    start = b'{"header":{},"sections":{},"x":'
    for text in (
        b"", b" ", b"{", b"}", b"[", b"{ ]", b"nul", b"'a'", b"{,}", b'{"a":1,}', b'{"a" 1}', b"\xff",
        b"\xef\xbb\xbf{}", b"{}{}", b"{} x", b"[" * 100_000, b'{"header":{},"header":{},"sections":{}}',
        b'{"header":{"name":"a","name":"b"},"sections":{}}', b'{"header":' + b" " * 300_000,
    ):  # fmt: skip
        yield f"text: {text[:40]!r}", a_create(text)
    for value in (
        b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9223372036854775808", b"-9223372036854775809",
        b'"\\ud800"', b'"\\u0000"', b'"\x00"', b'"\x1f"', b'"\\x"', b"01", b"+1", b".5", b"1.", b"0x1",
        b"1" * 5_000, b"[" * 33 + b"]" * 33, b"[1", b'"\xed\xa0\x80"', b"True", b"/**/1",
    ):  # fmt: skip
        yield f"value: {value[:40]!r}", a_create(start + value + b"}")


def iter_resumes() -> Requests:
    """Resumes that are refused (docs/format.md)."""

    def items(*given: Any, kind: str = "experiences") -> dict[str, Any]:
        return with_section(kind, items=list(given))

    def each(name: str, make: Callable[[Any], Any], *values: Any) -> dict[str, Any]:
        return {f"{name} {value!r}": make(value) for value in values}

    refused: dict[str, Any] = {
        "no object": [], "a text": "resume", "null": None, "a number": 5,
        "nothing": {}, "no header": {"sections": {}}, "no sections": {"header": {}},
        **each("header", lambda value: a_resume(header=value), None, "Ada", [], 5, True),
        **each("sections", lambda value: a_resume(sections=value), None, "x", [], 5),
        **each("header.name", lambda value: a_resume(header={"name": value}), 5, True, [], {}),
        **each("header.email", lambda value: a_resume(header={"email": value}), 5, True, [], {}),
        **each("header.phone", lambda value: a_resume(header={"phone": value}), 5, True, [], {}),
        **each("header.location", lambda value: a_resume(header={"location": value}), 5, True, [], {}),
        **each("title", lambda value: a_resume(title=value), 5, False, [], {}),
        **each("style", lambda value: a_resume(style=value), 5, "x", []),
        "layout": a_resume(style={"layout": "spiral"}),
        "layout 5": a_resume(style={"layout": 5}),
        "colour": a_resume(style={"colors": ["#fff", "red"]}),
        "colours": a_resume(style={"colors": "#fff"}),
        **each("column", lambda value: with_section("skills", column=value),
               True, "0", None, -1, 3, 0.5, 2, [], {}),
        "column missing": a_resume(sections={"skills": {"items": []}}),
        **each("section name", lambda value: with_section("skills", name=value), 5, None, []),
        **each("order", lambda value: with_section("skills", order=value), "1", True, []),
        **each("items", lambda value: with_section("skills", items=value), 5, "x", {}, [None], [5]),
        **each("a section", lambda value: a_resume(sections={"skills": value}), None, [], 5, "x"),
        **{
            f"unknown section {name}": with_section(name)
            for name in ("education", "skill", "xyzzy", "Skills", "")
        },
        **each("dateRange", lambda value: items({"dateRange": value}),
               5, "2020", [], {"fromYear": "1842"}, {"isOngoing": "yes"}, {"toMonth": []}),
        "workplace 5": items({"workplace": 5}),
        "bullets 5": items({"bullets": 5}),
        "bullets [5]": items({"bullets": ["x", 5]}),
        "tags [[]]": items({"tags": [[]]}, kind="skills"),
        "a long text": items({"text": "x" * 20_001}, kind="summaries"),
        "many tags": items({"tags": ["x"] * 201}, kind="skills"),
        "many items": items(*[{}] * 501, kind="skills"),
        "a hostile name": with_section("\u202e\x1b[2J"),
        "two faults": a_resume(header={"email": 5}, sections={"skills": {"column": 0, "name": 7}}),
        "sixty faults": items(*[{"title": 5}] * 60, kind="skills"),
        **each("cover letter", lambda value: a_resume(**value),
               {"type": "Cover-Letter"}, {"kind": "coverletters"}, {"isCoverLetter": True},
               {"coverLetter": {}}, {"documentType": " COVER LETTER\n"}, {"cover_letters": []}),
        "a section of cover letters": with_section("coverLetters"),
    }  # fmt: skip
    for name, resume in refused.items():
        yield f"resume: {name}", a_create(json.dumps(resume).encode())


def iter_all() -> Requests:
    """Every request with its name. Behind a head that is refused stands a create that is not run."""
    for name, sent in iter_heads():
        is_in_a_chunk = name.startswith("chunk: ")  # of which a create would be a part
        yield name, sent if is_in_a_chunk else sent + a_create(a_body())
    for part in (iter_keys, iter_paths, iter_queries, iter_labels, iter_types,
                 iter_idempotency_keys,
                 iter_updates, iter_texts, iter_resumes, iter_read_only):  # fmt: skip
        yield from part()
