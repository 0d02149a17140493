"""What a demo asks of the API that it serves."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cli import story
from resumes.errors import StoreUnavailable


@contextmanager
def an_api(status: int, body: bytes) -> Iterator[str]:
    """The address of a server that gives one answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        thread.join()


def test_the_resumes_are_those_of_the_answer() -> None:
    with an_api(200, b'{"resumes": [{"id": "x"}]}') as url:
        assert story.ask_api(url, "key") == [{"id": "x"}]


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [(403, b'{"error": "no"}', "answered 403: no"), (200, b"<html>", "does not answer")],
)
def test_another_answer_is_told(status: int, body: bytes, message: str) -> None:
    with an_api(status, body) as url, pytest.raises(StoreUnavailable, match=message):
        story.ask_api(url, "key")


def test_nobody_there_is_told() -> None:
    with pytest.raises(StoreUnavailable, match="does not answer"):
        story.ask_api("http://127.0.0.1:1", "key")


def test_a_step_is_numbered(capsys: pytest.CaptureFixture[str]) -> None:
    story.put_step(2, "Do", "this", "and that")

    assert capsys.readouterr().out == "2. Do:\n   this\n   and that\n\n"
