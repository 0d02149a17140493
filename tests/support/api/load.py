"""Clients over real sockets that know what became of each of their requests, and many at once."""

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

RESUMES = "/api/v1/resumes"
TIMEOUT_S = 60
"""Longer than a server may take to answer, so that one which does not is told from a slow one."""


class Lost(Exception):
    """The connection ended before the answer did. `had_begun`: a part of the answer had come."""

    def __init__(self, why: str, *, had_begun: bool = False) -> None:
        super().__init__(why)
        self.had_begun = had_begun


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, headers by their names in small letters, and a body of JSON."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """What the body says."""
        return json.loads(self.body)


class Wire:
    """One connection, which is kept, and on which requests may be pipelined."""

    def __init__(self, url: str) -> None:
        """Raises OSError when nobody listens."""
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers = 0
        self._received = b""

    def send(self, data: bytes) -> None:
        """The bytes are on their way. Raises Lost."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Lost(f"while sending: {error}") from error

    def read_answer(self) -> Answer:
        """The next answer, whole. Raises Lost when the connection ends before."""
        head = self._read_to(b"\r\n\r\n").decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = self._read(int(headers["content-length"]))
        self.answers += 1
        return Answer(int(head[0].split()[1]), headers, body)

    def call(self, data: bytes) -> Answer:
        """The answer to a request. Raises Lost."""
        self.send(data)
        return self.read_answer()

    def has_ended(self) -> bool:
        """Whether the server has closed the connection in order, with nothing more to read.

        Waits for either. Raises OSError for a reset.
        """
        if not self._received:
            self._received = self.socket.recv(1 << 16)
        return not self._received

    @property
    def is_over(self) -> bool:
        """Whether the server is known to have closed it; what is sent then was never accepted."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def close(self) -> None:
        """The connection is closed."""
        self.socket.close()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_to(self, end: bytes) -> bytes:
        while end not in self._received:
            self._receive()
        taken, _, self._received = self._received.partition(end)
        return taken

    def _read(self, size_bytes: int) -> bytes:
        while len(self._received) < size_bytes:
            self._receive()
        taken, self._received = self._received[:size_bytes], self._received[size_bytes:]
        return taken

    def _receive(self) -> None:
        try:
            chunk = self.socket.recv(1 << 16)
        except OSError as error:
            raise Lost(f"while waiting: {error}", had_begun=bool(self._received)) from error
        if not chunk:
            raise Lost("ended without an answer", had_begun=bool(self._received))
        self._received += chunk


def a_request(
    key: str, method: str = "GET", path: str = RESUMES, body: bytes = b"", **headers: str
) -> bytes:
    """The bytes of a request; an underscore in a header's name is a hyphen."""
    lines = [f"{method} {path} HTTP/1.1", "Host: resumes.test", f"Authorization: Bearer {key}"]
    if method in ("POST", "PUT"):
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def a_body(title: str) -> bytes:
    """A small resume that is known by its title."""
    header = {"name": title, "email": "ada.planted@example.com"}
    items = [{"text": f"The text of {title}."}]
    sections = {"summaries": {"column": 0, "items": items}}
    return json.dumps({"title": title, "header": header, "sections": sections}).encode()


def call(url: str, data: bytes) -> Answer:
    """The answer to a request on a connection of its own."""
    with Wire(url) as wire:
        return wire.call(data)


@dataclass(slots=True)
class Attempt:
    """A request and what became of it.

    `answer` is None while the outcome is unknown; `lost` says why it stays so. `was_known` means
    that the server had answered on the connection before, so that it had accepted it.
    """

    title: str
    data: bytes
    began_s: float
    was_known: bool
    answer: Answer | None = None
    ended_s: float = 0.0
    lost: Lost | None = None

    @property
    def id(self) -> str:
        """Of the resume that was acknowledged; empty if none was."""
        if self.answer is None or self.answer.status != 201:
            return ""
        return str(self.answer.json["id"])


@dataclass
class Client:
    """One after the other, requests are sent on a connection that is kept as long as it lasts."""

    url: str
    make: Callable[[int], tuple[str, bytes]]
    """The title and the bytes of the request of a number."""
    wire: Wire | None = None
    """The connection that it begins with, if it has one."""
    pause_s: float = 0
    """Between an answer and the next request."""
    attempts: list[Attempt] = field(default_factory=list)
    stops: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Requests are sent until `stops`; what cannot be reached is tried again."""
        while not self.stops.is_set():
            if self.wire is not None and self.wire.is_over:
                self.wire.close()
                self.wire = None
            try:
                self.wire = self.wire or Wire(self.url)
            except OSError:
                self.stops.wait(0.005)
                continue
            self.wire = self._try_once(self.wire)
            if self.pause_s:
                self.stops.wait(self.pause_s)
        if self.wire is not None:
            self.wire.close()

    def _try_once(self, wire: Wire) -> Wire | None:
        """The connection, if it goes on."""
        title, data = self.make(len(self.attempts))
        attempt = Attempt(title, data, time.monotonic(), was_known=wire.answers > 0)
        self.attempts.append(attempt)
        try:
            attempt.answer = wire.call(data)
        except Lost as error:
            attempt.lost = error
        attempt.ended_s = time.monotonic()
        if attempt.answer is None or attempt.answer.headers.get("connection") == "close":
            wire.close()
            return None
        return wire


def lister(url: str, key: str) -> Client:
    """Somebody who lists, all the time."""
    data = a_request(key, path=f"{RESUMES}?limit=1")
    return Client(url, lambda number: ("", data), pause_s=0.001)


def writer(url: str, key: str, name: str, *, is_safe: bool = False, pause_s: float = 0) -> Client:
    """Somebody who creates resumes with titles of their own; `is_safe`: with an Idempotency-Key each."""

    def make(number: int) -> tuple[str, bytes]:
        title = f"resume {name}-{number}"
        headers = {"Idempotency_Key": title.replace(" ", "-")} if is_safe else {}
        return title, a_request(key, "POST", body=a_body(title), **headers)

    return Client(url, make, pause_s=pause_s)


@contextmanager
def running(clients: Sequence[Client]) -> Iterator[None]:
    """The clients send, each in a thread, for the length of the block; then all have ended."""
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for client in clients:
            client.stops.set()
        for thread in threads:
            thread.join(TIMEOUT_S * 2)
            assert not thread.is_alive(), "a client waits for an answer that does not come"


def attempts_of(clients: Sequence[Client]) -> list[Attempt]:
    """All that the clients sent."""
    return [attempt for client in clients for attempt in client.attempts]


def acknowledged(clients: Sequence[Client]) -> int:
    """How many resumes the clients were told of."""
    return sum(bool(attempt.id) for attempt in attempts_of(clients))
