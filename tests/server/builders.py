"""Resumes, stores and clients for the tests of the API."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
from starlette.types import Message, Scope

from server.app import App
from tests.clocks import SteppingClock as SteppingClock

RESUMES = "/api/v1/resumes"


def a_resume(name: str = "Ada Example", **top_level: Any) -> dict[str, Any]:
    """A small valid resume; keyword arguments replace its top-level fields."""
    resume = {
        "header": {"name": name, "email": "ada@example.com"},
        "sections": {"summaries": {"column": 0, "items": [{"text": "Builds things that last."}]}},
    }
    return resume | top_level


def with_section(section_type: str = "summaries", **section: Any) -> dict[str, Any]:
    """A resume with this one section, in the left column unless said otherwise."""
    return a_resume(sections={section_type: {"column": 0, "items": []} | section})


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """The body of an error without the request's id, which is also in its header."""
    body: dict[str, Any] = answer.json()
    assert body.pop("requestId") == answer.headers["X-Request-Id"]
    return body


class Client:
    """Speaks to an application in this process, as the holder of one key.

    Everything runs in one event loop, so what a request leaves behind goes on in the next.
    """

    def __init__(self, app: App, key: str) -> None:
        self.key = key
        self.app = app
        self._runner = asyncio.Runner()
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://resumes.test"
        )

    def request(self, method: str, path: str = RESUMES, **arguments: Any) -> httpx.Response:
        """The answer. `headers` replace the key's; an empty list sends none."""
        arguments.setdefault("headers", {"Authorization": f"Bearer {self.key}"})
        return self._runner.run(self._http.request(method, path, **arguments))

    def create(self, resume: Any) -> httpx.Response:
        """The answer to POST; bytes are sent as they are."""
        body = resume if isinstance(resume, bytes) else json.dumps(resume).encode()
        return self.post(body)

    def post(self, body: bytes, **headers: str) -> httpx.Response:
        """The answer to POST with these headers beside the key's."""
        given = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        sent = given | {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("POST", content=body, headers={k: v for k, v in sent.items() if v})

    def page(self, query: str = "") -> httpx.Response:
        """The answer to GET with this query string."""
        return self.request("GET", f"{RESUMES}?{query}" if query else RESUMES)

    def get(self, resume_id: str) -> httpx.Response:
        """The answer to GET by id."""
        return self.request("GET", f"{RESUMES}/{resume_id}")

    def delete(self, resume_id: str) -> httpx.Response:
        """The answer to DELETE by id."""
        return self.request("DELETE", f"{RESUMES}/{resume_id}")

    def call(self, scope: Scope, *received: Message) -> list[Message]:
        """What the application sends when it is called without httpx between."""
        messages = iter(received)
        sent: list[Message] = []

        async def receive() -> Message:
            return next(messages)

        async def send(message: Message) -> None:
            sent.append(message)

        self._runner.run(self.app(scope, receive, send))
        return sent

    def wait(self, condition: Callable[[], Any]) -> None:
        """The condition holds; the event loop went on meanwhile."""

        async def poll() -> None:
            async with asyncio.timeout(60):
                while not condition():
                    await asyncio.sleep(0.001)

        self._runner.run(poll())

    def close(self) -> None:
        self._runner.run(self._http.aclose())
        self._runner.run(self.app.close())
        self._runner.close()
