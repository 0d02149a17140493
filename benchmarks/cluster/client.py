"""A client of the API: a thread's connections, and what it was answered."""

import http.client
import json
import time
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.cluster.history import Answer, History

TIMEOUT_S: Final = 60.0
"""For one answer; the service gives up long before."""


class Client:
    """For one thread; it has a connection to each API process."""

    def __init__(self, history: History, urls: list[str], key: str) -> None:
        self._history = history
        self._addresses = [urlsplit(url).netloc for url in urls]
        self._connections: dict[int, http.client.HTTPConnection] = {}
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def ask(
        self,
        process: int,
        method: str,
        path: str,
        body: bytes | None = None,
        key: str | None = None,
    ) -> tuple[int | None, Any]:
        """Status and JSON; None when there was no answer."""
        asked_s = time.monotonic()
        headers = self._headers | ({"Idempotency-Key": key} if key else {})
        status: int | None = None
        value: Any = None
        try:
            connection = self._connection(process)
            connection.request(method, path, body, headers)
            with connection.getresponse() as response:
                value = json.loads(response.read())
                status = response.status
        except (OSError, http.client.HTTPException, ValueError):
            self._connections.pop(process).close()
        error = value.get("error") if isinstance(value, dict) else None
        self._history.add(Answer(process, method, asked_s, time.monotonic(), status, error))
        return status, value

    def close(self) -> None:
        """Its connections are closed."""
        for connection in self._connections.values():
            connection.close()

    def _connection(self, process: int) -> http.client.HTTPConnection:
        if process not in self._connections:
            self._connections[process] = http.client.HTTPConnection(
                self._addresses[process], timeout=TIMEOUT_S
            )
        return self._connections[process]
