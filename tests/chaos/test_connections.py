"""Connections that break anywhere: what was sent is done once, or not at all."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.support.api import load
from tests.support.api.load import Answer, Lost, Wire
from tests.support.api.scenes import Scene
from tests.support.api.serving import wait_until
from tests.support.proxy import Cut, Fault, Proxy
from tests.support.waiting import sockets

EVERY_BYTES: Final = 4
"""A connection is cut behind each so many bytes of a request,"""

EVERY_SILENT_BYTES: Final = 16
"""and silenced behind so many, as a client needs time to notice that."""

SILENCE_S: Final = 0.1
"""How long a client waits for an answer: many times longer than one takes."""

GONE_WITHIN_S: Final = 15.0
"""A connection whose client has gone without a word is let go by then."""

FIRST: Final = "resume 0000"


@pytest.mark.chaos(
    24,
    fault="connections are closed, reset or stalled at any byte",
    promise="each resume is stored once and completely, or not at all; no connections are leaked",
)
def test_a_connection_may_break_at_any_byte(
    tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """A TCP proxy breaks each connection at a different point; the points are a few bytes apart and
    cover the request and its response."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with scene.served() as server, Proxy(server.url) as proxy:
        request = a_create(scene, FIRST)
        answer_bytes = len_of(load.call(server.url, request))
        before = sockets(server.process.pid)
        told: dict[str, str] = {}
        told_otherwise = most = 0
        for number, fault in enumerate(faults(len(request), answer_bytes, seed), 1):
            title = f"resume {number:04}"
            first = send_through(proxy, fault, a_create(scene, title))
            again = load.call(server.url, a_create(scene, title))
            assert again.status == 201, (fault, again)
            told_otherwise += first is not None and first.json["id"] != again.json["id"]
            told[again.json["id"]] = title
            most = max(most, sockets(server.process.pid))
        began_s = time.monotonic()
        wait_until(lambda: sockets(server.process.pid) <= before, within_s=GONE_WITHIN_S)
        gone_s = time.monotonic() - began_s
        left = sockets(server.process.pid) - before
        listed = scene.walk(server.url)
    with scene.store() as store:
        partial = sum(not scene.is_whole(store, *entry) for entry in listed)
    others = {one: title for one, title in listed if title == FIRST}
    found = checker.check(scene.home / "resumes.db", told | others)
    figures["connections_broken"] = proxy.cut_count
    figures["lost"], figures["duplicated"] = found.lost, found.doubled + told_otherwise
    figures["partially_stored"] = partial
    figures["connections_open_at_peak"] = most - before
    figures["connections_left_open"] = max(0, left)
    figures["last_closed_after_s"] = gone_s
    assert proxy.cut_count > len(told) // 2
    assert told_otherwise == partial == 0
    assert len(told) + 1 == len(listed)


def a_create(scene: Scene, title: str) -> bytes:
    """A create that may be sent again, on a connection of its own."""
    headers = {"Idempotency_Key": title.replace(" ", "-"), "Connection": "close"}
    return load.a_request(scene.key, "POST", body=load.a_body(title), **headers)


def len_of(answer: Answer) -> int:
    """About as many bytes as the answer had on its way."""
    heads = sum(len(name) + len(value) + 4 for name, value in answer.headers.items())
    return heads + len(answer.body) + 26


def faults(request_bytes: int, answer_bytes: int, seed: random.Random) -> Iterator[Fault]:
    """All that may happen to a request and its answer, in any order."""
    found = []
    for cut in Cut:
        every = EVERY_SILENT_BYTES if cut is Cut.SILENCE else EVERY_BYTES
        start = seed.randrange(every)
        found += [Fault(up_bytes=at, cut=cut) for at in range(start, request_bytes + 1, every)]
        found += [Fault(down_bytes=at, cut=cut) for at in range(start, answer_bytes, every)]
    seed.shuffle(found)
    yield from found


def send_through(proxy: Proxy, fault: Fault, request: bytes) -> Answer | None:
    """The answer, if it came on a connection with this fault."""
    proxy.choose = lambda: fault
    with Wire(proxy.url) as wire:
        wire.socket.settimeout(SILENCE_S)
        try:
            return wire.call(request)
        except Lost:
            return None
