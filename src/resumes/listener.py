"""Open listening sockets, and explain unavailable addresses."""

import errno
import socket
from typing import Final

from resumes.errors import ErrorCode, StoreError

BACKLOG: Final = 2048
"""The maximum number of connections that wait to be accepted."""


class CannotListen(StoreError):
    """The address is unavailable. A later start may succeed, as with an unavailable store."""

    code = ErrorCode.STORE_UNAVAILABLE


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the host and port. Raises CannotListen."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise CannotListen(f'Cannot resolve the host "{host}": {error}') from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    # Do not wait until the connections of a previous process have timed out.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        why = f"Cannot listen on {host}, port {port}: {error.strerror}"
        if error.errno == errno.EADDRINUSE:
            why = f"Port {port} on {host} is in use; choose another with --port"
        elif isinstance(error, PermissionError):
            why = f"Port {port} on {host} needs more privileges; choose one above 1023 with --port"
        raise CannotListen(why) from None
    return listener
