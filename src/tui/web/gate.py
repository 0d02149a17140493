"""Who may use the terminal UI in a browser: whoever has the token, once, and then the cookie.

Loopback alone keeps nobody out: other users of the machine reach it, and so does any page that
the browser shows, under a name of its own (DNS rebinding) or as a stranger on our port.
"""

import hmac
import secrets
from collections.abc import Callable
from typing import Final

HOST: Final = "127.0.0.1"
_SECRET_BYTES: Final = 32


def _make_secret() -> str:
    return secrets.token_urlsafe(_SECRET_BYTES)


class Gate:
    """The checks of one server, which listens on `port` of loopback."""

    def __init__(self, port: int, *, make_secret: Callable[[], str] = _make_secret) -> None:
        self.token = make_secret()
        """What the first visit has to show."""
        self.cookie_name = f"resumes-tui-{port}"
        """With the port in it, since a browser sends cookies to all ports of a host."""
        self._cookie = make_secret()
        self._is_spent = False
        self._hosts = frozenset({f"{HOST}:{port}", f"localhost:{port}"})

    def knows_host(self, host: str | None) -> bool:
        """Whether a request's Host header is a name of ours."""
        return host in self._hosts

    def knows_origin(self, origin: str | None, host: str | None) -> bool:
        """Whether a request comes from a page of ours at that host. None is no header."""
        return self.knows_host(host) and origin == f"http://{host}"

    def find_cookie(self, token: str) -> str | None:
        """The cookie's value for who brings the token, which is spent then; None for others."""
        if self._is_spent or not _is_same(token, self.token):
            return None
        self._is_spent = True
        return self._cookie

    def admits(self, cookie: str | None) -> bool:
        """Whether this is the value of our cookie. None is no cookie."""
        return cookie is not None and _is_same(cookie, self._cookie)


def _is_same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())
