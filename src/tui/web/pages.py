"""What the browser is given beside the library's script: the page, and its headers.

Nothing is loaded from elsewhere, and the browser is told not to.
"""

import html
from importlib import resources
from typing import Final

from aiohttp import web
from textual_serve.download_manager import Download

from resumes.analyzer import attachment

REFUSAL: Final = (
    "Open the address that `resumes tui --web` printed, which works once; "
    "start it again for a new one.\n"
)
NO_DOWNLOAD: Final = "A file is sent once; ask for it again in the terminal UI.\n"
WRONG_ORIGIN: Final = "Only the terminal UI's own page may connect.\n"

_ENTRY: Final = '<!DOCTYPE html><meta http-equiv="refresh" content="0;url=/"><title>Resumes</title>'


def page(host: str) -> web.Response:
    """The page that shows the terminal UI. `host` is the name it was asked for by, with port."""
    text = _read("page.html").replace("{websocket}", html.escape(f"ws://{host}/ws"))
    return web.Response(text=text, content_type="text/html")


def script() -> web.Response:
    """The page's own script."""
    return web.Response(text=_read("page.js"), content_type="text/javascript")


def _read(name: str) -> str:
    return (resources.files("tui.web") / name).read_text(encoding="utf-8")


def entry() -> web.Response:
    """A page that leads to the other one.

    A redirect would not do: a browser that was sent here by another site would count itself as
    still coming from there, and keep the new cookie back.
    """
    return web.Response(text=_ENTRY, content_type="text/html")


def refusal(line: str) -> web.Response:
    """Return 403, with one line that says what to do.

    The connection is closed behind it: whoever is refused cannot leave answers unread.
    """
    response = web.Response(status=403, text=line)
    response.force_close()
    return response


def download_headers(download: Download) -> dict[str, str]:
    """The headers of a file, whose name may be in any script (RFC 6266)."""
    return {
        "Content-Type": download.mime_type,
        "Content-Disposition": attachment(download.file_name),
    }


def headers(host: str) -> dict[str, str]:
    """The headers of every answer."""
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        # The terminal makes its style sheet as it goes.
        "style-src": "'self' 'unsafe-inline'",
        "font-src": "'self'",
        "img-src": "data:",
        "connect-src": f"ws://{host}",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
