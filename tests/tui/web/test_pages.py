"""What the browser is given."""

import re

from tui.web import pages


def text(of: object) -> str:
    found = getattr(of, "text", None)
    assert isinstance(found, str)
    return found


def test_the_page_connects_to_the_host_it_came_from() -> None:
    assert 'data-session-websocket-url="ws://localhost:8000/ws"' in text(
        pages.page("localhost:8000")
    )


def test_the_page_loads_nothing_from_elsewhere() -> None:
    page = text(pages.page("127.0.0.1:8000"))

    for address in re.findall(r"""(?:src|href)="([^"]+)"|url\("([^"]+)"\)""", page):
        assert "".join(address).startswith(("/", "data:,")), address
    assert "http:" not in page + text(pages.script())
    assert "https:" not in page + text(pages.script())


def test_what_it_loads_besides_is_not_run() -> None:
    policy = pages.headers("127.0.0.1:8000")["Content-Security-Policy"]

    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "connect-src ws://127.0.0.1:8000;" in policy
    assert "frame-ancestors 'none'" in policy


def test_a_refusal_is_one_line() -> None:
    refusal = pages.refusal(pages.REFUSAL)

    assert refusal.status == 403
    assert text(refusal).count("\n") == 1
