"""Resumes, and clients that speak to a server."""

import json
import ssl
from typing import Any

import httpx

from tests.support.clocks import SteppingClock as SteppingClock
from tests.support.resumes import a_document

RESUMES = "/api/v1/resumes"

a_body = a_document
"""A small valid resume as it is sent."""


def a_resume(name: str = "Ada Example", **top_level: Any) -> dict[str, Any]:
    """A small valid resume; keyword arguments replace its top-level fields."""
    resume: dict[str, Any] = json.loads(a_body(name, **top_level))
    return resume


def with_section(section_type: str = "summaries", **section: Any) -> dict[str, Any]:
    """A resume with this one section, in the left column unless said otherwise."""
    return a_resume(sections={section_type: {"column": 0, "items": []} | section})


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """The body of an error without the request's id, which is also in its header."""
    body: dict[str, Any] = answer.json()
    assert body.pop("requestId") == answer.headers["X-Request-Id"]
    return body


_NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""No test asks a server that others vouch for, and reading who could takes 20 ms a client."""


class Client:
    """Speaks to a server as the holder of one key."""

    def __init__(self, url: str, key: str, *, account: str = "") -> None:
        self.url = url
        self.key = key
        self.account = account
        self._http = httpx.Client(base_url=url, timeout=60, verify=_NO_AUTHORITIES)

    def request(self, method: str, path: str = RESUMES, **arguments: Any) -> httpx.Response:
        """The answer. `headers` replace the key's; an empty list sends none."""
        arguments.setdefault("headers", {"Authorization": f"Bearer {self.key}"})
        return self._http.request(method, path, **arguments)

    def create(self, resume: Any) -> httpx.Response:
        """The answer to POST; bytes are sent as they are."""
        body = resume if isinstance(resume, bytes) else json.dumps(resume).encode()
        return self.post(body)

    def post(self, body: bytes, **headers: str) -> httpx.Response:
        """The answer to POST with these headers beside the key's; an empty one is left out."""
        return self._send("POST", RESUMES, body, headers)

    def _send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
        given = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        sent = given | {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request(
            method, path, content=body, headers={k: v for k, v in sent.items() if v}
        )

    def page(self, query: str = "") -> httpx.Response:
        """The answer to GET with this query string."""
        return self.request("GET", f"{RESUMES}?{query}" if query else RESUMES)

    def ids(self, query: str = "limit=100") -> list[str]:
        """The ids of a page."""
        return [resume["id"] for resume in self.page(query).json()["resumes"]]

    def get(self, resume_id: str) -> httpx.Response:
        """The answer to GET by id."""
        return self.request("GET", f"{RESUMES}/{resume_id}")

    def put(self, resume_id: str, body: bytes, **headers: str) -> httpx.Response:
        """The answer to PUT by id, with headers as `post` sends them."""
        return self._send("PUT", f"{RESUMES}/{resume_id}", body, headers)

    def delete(self, resume_id: str, **headers: str) -> httpx.Response:
        """The answer to DELETE by id, with headers as `post` sends them."""
        return self._send("DELETE", f"{RESUMES}/{resume_id}", b"", headers)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()
