"""The address that the API listens on.

It is bound here and not by uvicorn, which would log a port in use, and exit.
"""

import errno
import socket

from resumes.errors import ErrorCode, StoreError
from resumes.settings import Settings

BACKLOG = 2048
"""Connections that may wait to be accepted."""


class CannotListen(StoreError):
    """The address cannot be had. As with a store that cannot be, a later start may work."""

    code = ErrorCode.STORE_UNAVAILABLE


def listen(settings: Settings) -> socket.socket:
    """A listening socket on the host and port of the settings. Raises CannotListen."""
    host, port = settings.host, settings.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise CannotListen(f'Cannot resolve the host "{host}": {error}') from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    # A restart need not wait for the connections of the process before it to fade out.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotListen(_refusal(error, host, port)) from None
    return listener


def _refusal(error: OSError, host: str, port: int) -> str:
    match error:
        case OSError(errno=errno.EADDRINUSE):
            return f"Port {port} on {host} is in use; choose another with --port"
        case PermissionError():
            return f"Port {port} on {host} needs more rights; choose one above 1023 with --port"
        case _:
            return f"Cannot listen on {host}, port {port}: {error.strerror}"


def base_url(listener: socket.socket, *, has_tls: bool) -> str:
    """The address that a client on this machine uses."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if has_tls else 'http'}://{shown}:{port}"
