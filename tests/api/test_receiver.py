"""Bytes that become requests or one error, without a connection; tests/fuzz/http.py compares with h11."""

from collections.abc import Sequence

import pytest

from server.receiver import HEAD_BYTES, SLICE_BYTES, Event, Receiver
from server.request import HttpError, Request
from tests.support.api.refused import BODY, CHUNKED, CHUNKS, HOST, LENGTH, PATH, REFUSED

LINE = b"POST " + PATH + b" HTTP/1.1\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
WHOLE = SLICE_BYTES


def feed(receiver: Receiver, sent: bytes, size: int = WHOLE) -> list[Event]:
    """What the bytes complete, fed in parts of a size; parts of a body are joined."""
    events: list[Event] = []
    for at in range(0, len(sent), size):
        for event in receiver.feed(sent[at : at + size]):
            if isinstance(event, bytes) and events and isinstance(events[-1], bytes):
                events[-1] += event
            else:
                events.append(event)
        if events and isinstance(events[-1], HttpError):
            break
    return events


def only_request(events: Sequence[Event]) -> Request:
    """The request, which has ended."""
    assert events[-1] is None
    (request,) = (event for event in events if isinstance(event, Request))
    return request


def only_error(events: Sequence[Event]) -> tuple[int, str]:
    """The error, behind which there is nothing."""
    assert [isinstance(event, Exception) for event in events].index(True) == len(events) - 1
    assert isinstance(events[-1], HttpError)
    return events[-1].status, events[-1].message


@pytest.mark.parametrize("size", [WHOLE, 7, 1])
@pytest.mark.parametrize("name", REFUSED)
def test_what_could_be_read_as_two_is_refused_whole_and_in_parts(name: str, size: int) -> None:
    status, odd = REFUSED[name]
    line, host = odd.get("line", LINE[:-2]), odd.get("host", HOST)
    fields, body = odd.get("fields", LENGTH), odd.get("body", BODY)
    sent = line + b"\r\n" + host + fields + b"\r\n" + body

    events = feed(Receiver(), sent + GET, size)

    assert only_error(events)[0] == status
    assert None not in events


@pytest.mark.parametrize("size", [WHOLE, 7, 1])
@pytest.mark.parametrize("offer", [b"", b"Connection: Upgrade\r\nUpgrade: h2c\r\n"])
def test_requests_in_a_row_are_received_one_by_one_however_they_are_cut_and_offers_declined(
    offer: bytes, size: int
) -> None:
    sent = LINE + HOST + offer + b"X-A:\t XbX \r\n" + LENGTH + b"\r\n" + BODY
    sent += LINE + HOST + CHUNKED + b"\r\n" + CHUNKS[:-2] + b"X-Late: a\r\n\r\n" + GET
    receiver = Receiver()

    first, body, end, second, chunked, second_end, third, third_end = feed(receiver, sent, size)

    assert (body, end, chunked, second_end, third_end) == (BODY, None, BODY, None, None)
    assert isinstance(first, Request)
    assert (first.method, first.path, first.query) == ("POST", PATH.decode(), b"")
    length = (b"content-length", b"27")
    kept = [(b"connection", b"Upgrade")] if offer else []
    assert first.headers == [(b"host", b"resumes.test"), *kept, (b"x-a", b"XbX"), length]
    assert isinstance(second, Request)
    assert second.headers == [(b"host", b"resumes.test"), (b"transfer-encoding", b"chunked")]
    assert isinstance(third, Request)
    assert (third.method, third.path, third.headers) == ("GET", "/", first.headers[:1])
    assert all(each.keep_alive for each in (first, second, third))
    assert receiver.partial_request().headers == []


def test_it_tells_what_is_being_received_and_whether_that_is_new() -> None:
    receiver = Receiver()

    def state() -> tuple[bool, bool, bool, int]:
        return receiver.is_in_head, receiver.is_in_body, receiver.has_begun, receiver.body_bytes

    assert state() == (False, False, False, 0)
    for part, expected in (
        (b"\r\n", (False, False, False, 0)),
        (LINE, (True, False, True, 0)),
        (HOST, (True, False, False, 0)),
        (LENGTH + b"\r\n", (False, True, True, 0)),
        (BODY[:9], (False, True, False, 9)),
        (BODY[9:-1], (False, True, False, 26)),
        (BODY[-1:], (False, False, False, 27)),
        (GET + GET[:9], (True, False, True, 0)),
        (GET[9:] + LINE + HOST + CHUNKED + b"\r\n4\r\nab", (False, True, True, 2)),
        (b"cd\r\n", (False, True, False, 4)),
        (b"0\r\n", (False, True, False, 4)),
        (b"X: y\r\n", (False, True, False, 4)),
        (b"\r\n", (False, False, False, 4)),
    ):
        receiver.feed(part)
        assert state() == expected, part


def test_of_an_incomplete_head_there_is_what_is_known() -> None:
    receiver = Receiver()
    receiver.feed(LINE + HOST + LENGTH + b"\r\n" + BODY)
    assert (receiver.partial_request().method, receiver.partial_request().headers) == ("", [])
    receiver.feed(b"HEAD")
    assert receiver.partial_request().method == ""  # nor is it that of the request before
    receiver.feed(b" / HTTP/1.1\r\nX-Request-Id: mine\r\n" + HOST[:-2])
    partial = receiver.partial_request()
    assert (partial.method, partial.headers) == ("HEAD", [(b"x-request-id", b"mine")])
    assert only_error(receiver.feed(b"\n\n"))[0] == 400
    assert receiver.partial_request().method == "HEAD"


@pytest.mark.parametrize(
    ("fields", "version", "keep_alive", "expects_continue"),
    [
        (b"", b"1.1", True, False),
        (b"Connection: keep-alive\r\n", b"1.1", True, False),
        (b"Connection: x, Close\r\n", b"1.1", False, False),
        (b"Expect:  100-Continue \r\n", b"1.1", True, True),
        (b"Expect: 200-ok\r\n", b"1.1", True, False),
        (b"Expect: 100-continue\r\n", b"1.0", False, False),
        (b"Connection: keep-alive\r\n", b"1.0", False, False),
    ],
)
def test_a_head_says_whether_its_connection_goes_on_and_its_body_waits(
    fields: bytes, version: bytes, keep_alive: bool, expects_continue: bool
) -> None:
    receiver = Receiver()
    receiver.feed(GET.replace(HOST, HOST + b"Expect: 100-continue\r\n"))  # of another request
    request = only_request(
        feed(receiver, GET.replace(b"1.1", version).replace(HOST, HOST + fields))
    )
    assert (request.keep_alive, request.expects_continue) == (keep_alive, expects_continue)


def test_only_an_error_of_ours_keeps_the_frames_that_it_came_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusals = [feed(Receiver(), odd)[-1] for odd in (b"x", GET[:-2] + b"Host: b\r\n\r\n")]
    assert [getattr(each, "__traceback__", each) for each in refusals] == [None, None]

    def fail(*_: object) -> None:
        raise AttributeError("a slip")

    monkeypatch.setattr("server.receiver.check_head", fail)
    (slip,) = Receiver().feed(GET)
    assert isinstance(slip, AttributeError)
    assert slip.__traceback__ is not None


def test_a_tunnel_is_refused() -> None:
    sent = GET.replace(b"GET", b"CONNECT")
    assert only_error(feed(Receiver(), sent + GET)) == (400, "CONNECT is not supported.")


@pytest.mark.parametrize("size", [16 * 1024, 1_000])
@pytest.mark.parametrize(
    ("head_bytes", "fields", "target_bytes", "status"),
    [
        (64 * 1024, 5, 20, 0),
        (64 * 1024 + 1, 5, 20, 431),
        (3_000, 100, 20, 0),
        (3_000, 101, 20, 431),
        (10_000, 5, 8 * 1024 - 16, 0),
        (10_000, 5, 8 * 1024 - 15, 414),
    ],
)
def test_a_head_has_limits(
    head_bytes: int, fields: int, target_bytes: int, status: int, size: int
) -> None:
    line = b"GET %b HTTP/1.1\r\n" % b"/?".ljust(target_bytes, b"x")
    lines = [b"host: a\r\n", *[b"x: y\r\n"] * (fields - 2)]
    # With the blank line there are two bytes more, which are not counted.
    spent = len(line) + 1 + sum(map(len, lines)) + len(b"pad: \r\n")
    lines.append(b"pad: " + b"x" * (head_bytes - spent) + b"\r\n")
    assert len(lines) == fields

    events = feed(Receiver(), line + b"".join(lines) + b"\r\n", size)

    if status:
        assert only_error(events)[0] == status
    else:
        assert only_request(events).method == "GET"


@pytest.mark.parametrize(
    ("begun", "status"), [(GET[:-2] + b"X: ", 431), (b"GET /", 414), (b"GET / ", 431)]
)
def test_a_head_without_an_end_is_refused_before_it_takes_memory(begun: bytes, status: int) -> None:
    filler = b" " if begun.endswith(b"/ ") else b"x"
    receiver, fed = Receiver(), 0
    receiver.feed(begun)
    while not (events := receiver.feed(filler * 1_000)):
        fed += 1_000
        assert fed <= HEAD_BYTES
    assert only_error(events)[0] == status


def test_chunks_may_have_16_kib_and_eight_bytes_for_each_byte_more_than_their_content() -> None:
    head = LINE + HOST + CHUNKED + b"\r\n"

    def find_limit(content: bytes) -> int:
        """How many bytes of an extension may come behind the content."""
        receiver, fed = Receiver(), 0
        receiver.feed(head)
        receiver.feed(content + b"1;x=")
        while not receiver.feed(b"a" * 100):
            fed += 100
        return fed

    none = find_limit(b"")
    assert 16 * 1024 - 200 <= none <= 16 * 1024
    assert find_limit(b"400\r\n" + b"x" * 1024 + b"\r\n") - none in range(8_000, 8_300)
    many = b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n"
    assert only_request(feed(Receiver(), head + many, 1_000)).method == "POST"
    assert only_error(feed(Receiver(), head + b"1;" + b"x" * 40_000, 1_000)) == (
        400,
        "Invalid chunks: too much between them",
    )


def test_the_host_of_a_target_is_no_part_of_its_path() -> None:
    for target, path, query in (
        (b"/a%20b?c=%20", "/a b", b"c=%20"),
        (b"http://elsewhere.test:1", "/", b""),
        (b"HTTPS://[::1]:8443/a?http://b", "/a", b"http://b"),
        (b"/%C3%A9", "/\u00e9", b""),
    ):
        request = only_request(feed(Receiver(), GET.replace(b"/ ", target + b" ")))
        assert (request.path, request.query) == (path, query)
