"""Any bytes, as what a client sends on one connection: received as h11 receives them.

What both receive is the same, and the server must never receive what h11 does not. It refuses more
(RFC 9112, 11.2): the tables below list each kind of request that h11 receives and the server does
not. In three things it is more lenient, as RFC 9112, 2.2, 3 and 7.1, allows: it skips line ends
before a request line, several spaces within it count as one, and a chunk size may begin with any
number of zeros.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

import h11

from server.receiver import MAX_FIELDS, Receiver
from server.request import HttpError, Request
from tests.fuzz.declared import bounded

STATUSES: Final = {400, 414, 431, 501}
"""What a client may be told of bytes alone."""

PARTS_BYTES: Final = (1, 7)
"""Sizes of parts in which the same bytes are received the same."""


class Received(NamedTuple):
    """A request, as far as it was received."""

    method: str
    path: str
    query: bytes
    headers: Sequence[tuple[bytes, bytes]]
    expects_continue: bool
    keep_alive: bool
    body: bytes
    is_whole: bool


class Outcome(NamedTuple):
    """What the server receives of some bytes, up to the last request of the connection."""

    requests: Sequence[Received]
    refusal: tuple[int, str] | None
    """The status and the message, if nothing more is received."""


def check_http(data: bytes) -> None:
    """It is received as h11 receives it, or refused for a reason, however it is cut into parts."""
    with bounded(len(data)):
        ours = _receive([data])
    for size in PARTS_BYTES:
        assert _receive(data[at : at + size] for at in range(0, len(data), size)) == ours
    rest = data
    for number, each in enumerate(ours.requests, 1):
        head, body, size_bytes = _read_by_h11(rest)
        assert head is not None, f"h11 receives no request {number}"
        _check_head(each, head.request)
        if body.is_refused and MANY_ZEROS.search(rest):
            return
        _check_body(each, body, is_refused=ours.refusal is not None)
        if not (each.is_whole and each.keep_alive):
            return
        rest = rest[size_bytes:]
    head, body, _ = _read_by_h11(rest)
    if ours.refusal is None:
        # The parser waits for the rest of what begins a connection of HTTP/2.
        is_preface = head is not None and head.request.method == b"PRI"
        assert head is None or is_preface, "h11 receives another request"
    elif head is not None:
        reasons = [why for why, is_so in HEADS.items() if is_so(head)]
        assert reasons, f"refused, but h11 receives it: {ours.refusal}, {head}"


def _receive(parts: Iterator[bytes] | Sequence[bytes]) -> Outcome:
    receiver = Receiver()
    requests: list[tuple[Request, list[bytes]]] = []
    refusal = None
    is_whole = True
    for part in parts:
        if refusal is not None or (is_whole and requests and not requests[-1][0].keep_alive):
            break
        for event in receiver.feed(part):
            if is_whole and requests and not requests[-1][0].keep_alive:
                break  # nothing behind the last request is run
            assert refusal is None, "an event behind an error"
            if isinstance(event, Request):
                assert is_whole
                is_whole = False
                requests.append((event, []))
            elif isinstance(event, bytes):
                assert event
                assert not is_whole
                requests[-1][1].append(event)
            elif event is None:
                is_whole = True
            else:
                assert isinstance(event, HttpError), f"an error of ours: {event!r}"
                assert event.status in STATUSES
                refusal = event.status, event.message
    return Outcome(
        [
            Received(
                request.method,
                request.path,
                request.query,
                _comparable(request.headers),
                request.expects_continue,
                request.keep_alive,
                b"".join(body),
                is_whole or number < len(requests),
            )
            for number, (request, body) in enumerate(requests, 1)
        ],
        refusal,
    )


def _comparable(headers: Sequence[tuple[bytes, bytes]]) -> Sequence[tuple[bytes, bytes]]:
    """The header fields, without an offer that the server declines, and as h11 spells the coding."""
    return [
        (name, value.lower() if name == b"transfer-encoding" else value)
        for name, value in headers
        if name != b"upgrade"
    ]


# h11


class Head(NamedTuple):
    """A head as h11 receives it, and the bytes that it is made of."""

    request: h11.Request
    raw: bytes


class Body(NamedTuple):
    """A body as h11 receives it, and the bytes that it is made of."""

    content: bytes
    raw: bytes
    is_whole: bool
    is_refused: bool


def _read_by_h11(data: bytes) -> tuple[Head | None, Body, int]:
    """The first request, and how many bytes it has."""
    repaired = data.lstrip(b"\r\n")
    repaired = re.sub(rb"\A([^ \r\n]+) +([^ \r\n]+) +(?=HTTP/)", rb"\1 \2 ", repaired)
    spent_bytes = len(data) - len(repaired)
    connection = h11.Connection(h11.SERVER)
    head: Head | None = None
    content, is_whole, is_refused = b"", False, False
    head_bytes = 0
    if repaired:
        connection.receive_data(repaired)
    while repaired and not is_whole:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError:
            is_refused = True
            break
        if isinstance(event, h11.Request):
            head_bytes = len(repaired) - len(connection.trailing_data[0])
            head = Head(event, repaired[:head_bytes])
        elif isinstance(event, h11.Data):
            content += event.data
        elif isinstance(event, h11.EndOfMessage):
            is_whole = True
        else:
            break
    size_bytes = len(repaired) - len(connection.trailing_data[0])
    body = Body(content, repaired[head_bytes:size_bytes], is_whole, is_refused)
    return head, body, spent_bytes + size_bytes


def _values(request: h11.Request, name: bytes) -> list[bytes]:
    return [value for field, value in request.headers if field == name]


def _tokens(request: h11.Request, name: bytes) -> list[bytes]:
    values = b",".join(_values(request, name)).lower().split(b",")
    return [value.strip(b" \t") for value in values]


# What both receive


def _check_head(ours: Received, theirs: h11.Request) -> None:
    target = re.sub(rb"\A[a-zA-Z]+://[^/?]*", b"", theirs.target)
    path, _, query = target.partition(b"?")
    assert ours.method == theirs.method.decode()
    assert ours.path == unquote(path.decode() or "/")
    assert ours.query == query
    assert ours.headers == _comparable([*theirs.headers])
    is_modern = theirs.http_version == b"1.1"
    assert ours.expects_continue == (
        is_modern and b"100-continue" in map(bytes.lower, _values(theirs, b"expect"))
    )
    may_go_on = is_modern and b"close" not in _tokens(theirs, b"connection")
    assert ours.keep_alive == may_go_on or _is_chunked(ours)  # of which a trailer may say so


def _is_chunked(request: Received) -> bool:
    return (b"transfer-encoding", b"chunked") in request.headers


def _check_body(ours: Received, theirs: Body, *, is_refused: bool) -> None:
    if ours.is_whole:
        assert theirs.is_whole
        assert ours.body == theirs.content
    elif not is_refused:
        assert not theirs.is_whole
        assert ours.body == theirs.content
    elif theirs.is_whole:
        sizes, trailers = _framing(theirs.raw)
        assert not all(map(SIZE.fullmatch, sizes)) or any(map(ODD_TRAILER.search, trailers))


MANY_ZEROS: Final = re.compile(rb"\r\n0[0-9A-Fa-f]{20}")
"""A chunk size that has more digits than h11 reads."""

SIZE: Final = re.compile(rb"0*[0-9A-Fa-f]{1,16}")
"""A chunk size that both receive: without white space behind it, and within 64 bits. Extensions are
read strictly."""

ODD_TRAILER: Final = re.compile(
    rb"(?i)\A(?:[ \t]|content-length|transfer-encoding)|[\x00-\x08\x0a-\x1f\x7f]"
)
"""A trailer that is folded, says how long the body is, or has a control character."""


def _framing(raw: bytes) -> tuple[list[bytes], list[bytes]]:
    """The lines with the sizes of chunks, and the trailers, of a chunked body that h11 receives."""
    sizes: list[bytes] = []
    while True:
        line, _, raw = raw.partition(b"\r\n")
        sizes.append(line)
        size = int(re.split(rb"[; \t]", line)[0], 16)
        if not size:
            return sizes, raw.split(b"\r\n")
        raw = raw[size + 2 :]


# What h11 alone receives

METHODS: Final = {b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"PATCH"}
PATH: Final = re.compile(rb"(?:(?i:https?)://(?P<host>[^/?#@]+))?(?P<path>/[^?#]*)?(?:\?[^#]*)?")
STRUCTURE: Final = re.compile(rb"%(?i:2e|2f|5c|7f|[01][0-9a-f])")
HOST: Final = re.compile(rb"(?:[\w.~%!$&'()*+,;=-]*|\[[0-9A-Fa-f:.]+\])(?::\d*)?", re.ASCII)


def _is_odd_target(head: Head) -> bool:
    found = PATH.fullmatch(head.request.target)
    if found is None or STRUCTURE.search(found["path"] or b""):
        return True
    host = found["host"]
    return HOST.fullmatch(host) is None or host[:1] == b":" if host else not found["path"]


def _has_odd_host(head: Head) -> bool:
    hosts = _values(head.request, b"host")
    return len(hosts) > 1 or not all(map(HOST.fullmatch, hosts))


def _has_odd_length(head: Head) -> bool:
    lengths = re.findall(rb"(?im)^content-length:[ \t]*([^\r\n]*?)[ \t]*\r$", head.raw)
    return len(lengths) > 1 or any(
        not length.isdigit() or int(length) >= 2**64 for length in lengths
    )


def _has_odd_coding(head: Head) -> bool:
    if not _values(head.request, b"transfer-encoding"):
        return False
    has_length = bool(_values(head.request, b"content-length"))
    return has_length or head.request.http_version != b"1.1"


HEADS: Final[Mapping[str, Callable[[Head], bool]]] = {
    "a line ends with CR or LF alone": lambda head: bool(
        re.search(rb"(?<!\r)\n|\r(?!\n)", head.raw)
    ),
    "a field is folded": lambda head: bool(re.search(rb"\n[ \t]", head.raw)),
    "a control character": lambda head: bool(
        re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", head.raw)
    ),
    "a method of another protocol": lambda head: head.request.method not in METHODS,
    "a version but 1.1 and 1.0": lambda head: head.request.http_version not in (b"1.1", b"1.0"),
    "a target that is no path": _is_odd_target,
    "several hosts, or one that is none": _has_odd_host,
    "several lengths, or one beyond 64 bits": _has_odd_length,
    "chunks beside a length, or in HTTP/1.0": _has_odd_coding,
    "a tab beside a coding": lambda head: bool(
        re.search(rb"(?i)\ntransfer-encoding:[^\r\n]*\t", head.raw)
    ),
    "too many fields": lambda head: len(head.raw.split(b"\r\n")) > MAX_FIELDS,
}
"""Why a head is refused that h11 receives."""
