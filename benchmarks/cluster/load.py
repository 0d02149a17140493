"""Clients of the service: some that send, some that read along, and one that drops files.

Whoever sends gives each resume an Idempotency-Key, and sends it again, now to the other process, until
an answer says what has become of it. That is what clients have to do, and all they have to do.
"""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.cluster.client import Client
from benchmarks.cluster.history import Creation, History, Walk

PATH: Final = "/api/v1/resumes"
SENDERS: Final = 3
"""For each API process."""

PAUSE_S: Final = 0.02
"""Between two creates of a sender: the load is to show gaps, not to fill the machine."""

DROP_S: Final = 0.2
AGAIN_S: Final = 0.1
FOLLOW_S: Final = 2.0
"""How long a reader goes on behind the last page before it begins a new walk."""

LAST_S: Final = 60.0
"""How long what has no answer is sent again after the load has ended."""

REPEAT_EVERY: Final = 10
"""Of so many acknowledged creates one is sent again, to another process."""

AGAIN: Final = (408, 409, 425, 429)
"""Beside 5xx, the statuses that ask for another try."""


def a_resume(marker: str) -> bytes:
    """A small one, of a person of this name."""
    items = [{"text": f"Knows {marker}. " + "Looks after wards and people. " * 20}]
    document = {
        "header": {"name": marker, "title": "Nurse"},
        "sections": {"summaries": {"column": 0, "name": "Summary", "items": items}},
    }
    return json.dumps(document).encode()


class Load:
    """What all clients of an account do during a block."""

    def __init__(self, history: History, urls: list[str], key: str, inbox: Path) -> None:
        self._history = history
        self._urls = urls
        self._key = key
        self._inbox = inbox
        self._ending = threading.Event()
        self._gone_s = float("inf")
        """When nobody tries any more, on the monotonic clock."""

        processes = range(len(urls))
        self._threads = [
            *(self._thread(self._send, p, f"{p}-{n}") for p in processes for n in range(SENDERS)),
            *(self._thread(self._read, p) for p in processes),
            self._thread(self._drop),
        ]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Nothing new is sent; what was sent is answered or given up, at once after an error."""
        self._gone_s = time.monotonic() + (LAST_S if kind is None else 0.0)
        self._ending.set()
        if kind is None:
            for thread in self._threads:
                thread.join()

    def _thread(self, work: Any, *arguments: Any) -> threading.Thread:
        return threading.Thread(target=work, args=arguments, daemon=True)

    @contextlib.contextmanager
    def _client(self) -> Iterator[Client]:
        client = Client(self._history, self._urls, self._key)
        try:
            yield client
        finally:
            client.close()

    def _send(self, process: int, name: str) -> None:
        number = 0
        with self._client() as client:
            while not self._ending.is_set():
                number += 1
                creation = self._history.begin(f"{self._history.account}-{name}-{number}")
                answered = self._create(client, process, creation)
                if answered is not None and number % REPEAT_EVERY == 0:
                    self._create(client, self._other(answered), creation)
                time.sleep(PAUSE_S)

    def _create(self, client: Client, process: int, creation: Creation) -> int | None:
        """Who answered that it is stored."""
        body = a_resume(creation.marker)
        while time.monotonic() < self._gone_s:
            status, value = client.ask(process, "POST", PATH, body, creation.marker)
            if status == 201:
                self._history.acknowledge(creation, value["id"])
                return process
            if status is not None and status < 500 and status not in AGAIN:
                creation.refusals.append(status)
                return None
            time.sleep(AGAIN_S)
            process = self._other(process)
        return None

    def _other(self, process: int) -> int:
        return (process + 1) % len(self._urls)

    def _read(self, process: int) -> None:
        with self._client() as client:
            while not self._ending.is_set():
                self._walk(client, self._history.begin_walk(process))

    def _walk(self, client: Client, walk: Walk) -> None:
        """From the first page to the last, and on behind it for a while."""
        follow_until_s = float("inf")
        while time.monotonic() < min(follow_until_s, self._gone_s):
            cursor = walk.ids[-1] if walk.ids else ""
            status, page = client.ask(walk.process, "GET", f"{PATH}?limit=100&cursor={cursor}")
            if status != 200:
                time.sleep(AGAIN_S)
                continue
            walk.ids += [entry["id"] for entry in page["resumes"]]
            if page["pagination"]["cursor"] is None:
                if not walk.is_finished:
                    walk.is_finished = True
                    follow_until_s = time.monotonic() + FOLLOW_S
                time.sleep(AGAIN_S)

    def _drop(self) -> None:
        account = self._history.account
        number = 0
        while not self._ending.is_set():
            number += 1
            marker = f"{account}-file-{number}"
            written = self._inbox / f".{marker}.json"
            written.write_bytes(a_resume(marker))
            written.rename(self._inbox / account / f"{marker}.json")
            self._history.dropped.append(marker)
            time.sleep(DROP_S)
