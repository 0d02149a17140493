"""Addresses of stores: of a file, or of a database on a PostgreSQL server."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from resumes.errors import InvalidArgument

POSTGRES = ("postgresql", "postgres")
FORMS = "use sqlite:///PATH or postgresql://USER@HOST/NAME"

PLACE_OPTIONS: Final = frozenset({"host", "hostaddr", "port", "dbname"})
"""The options that select the database, if the part before them does not."""

_SECRET: Final = re.compile("password|secret", re.IGNORECASE)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BAD_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})|%00")


@dataclass(frozen=True, slots=True)
class SqliteAddress:
    """A file: its absolute path with links resolved, so that all processes share one set of locks and the
    file system is known."""

    path: Path

    @property
    def label(self) -> str:
        """Return the address, to show and to log."""
        return f"sqlite:///{self.path}"


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """A database of a PostgreSQL server, or of a server with the same protocol.

    `url` is in libpq's form: it may contain more than one host, a password and options.
    """

    url: str = field(repr=False)

    @property
    def label(self) -> str:
        """Return the address to show and to log: without user and password, and with only those options
        that select the database."""
        _, place, options = _split(self.url)
        return f"postgresql://{place}{_chosen(options, PLACE_OPTIONS.__contains__)}"


Address = SqliteAddress | PostgresAddress


def parse_address(url: str) -> Address:
    """Parse the URL of a store; a `+driver` suffix is ignored.

    Raises InvalidArgument for any other text; the message contains no password.
    """
    scheme, separator, rest = url.partition("://")
    engine = scheme.partition("+")[0]
    if separator and engine == "sqlite" and rest.startswith("/") and len(rest) > 1:
        if "\0" in rest:
            raise InvalidArgument(
                f"Invalid database {rest[1:]!a}: a path cannot contain a NUL byte"
            )
        # Not Path.resolve, which fails for a loop of links; no file is opened here.
        return SqliteAddress(Path(os.path.realpath(rest[1:])))
    if separator and engine in POSTGRES:
        return _postgres_address(f"postgresql://{rest}")
    raise InvalidArgument(f'Invalid database "{_harmless(url)}": {FORMS}')


def find_without_secrets(url: str) -> str | None:
    """Return an address without secrets, which libpq can get elsewhere, in the form that users type; None
    for an invalid address."""
    try:
        address = parse_address(url)
    except InvalidArgument:
        return None
    if isinstance(address, SqliteAddress):
        return url
    credentials, place, options = _split(address.url)
    user = credentials.partition(":")[0]
    shown = _chosen(options, lambda name: not _SECRET.search(name))
    return f"postgresql://{user}{'@' if user else ''}{place}{shown}"


def _harmless(url: str) -> str:
    """Return what may be shown of an invalid address, which may still contain a password."""
    if "@" not in url and "=" not in url:
        return url[:80]
    scheme, separator, _ = url.partition("://")
    return f"{scheme}://…" if separator and re.fullmatch("[A-Za-z0-9+.-]+", scheme) else "…"


def _split(url: str) -> tuple[str, str, str]:
    """Return credentials, place and options, split as libpq does: credentials precede the first @, unless
    a / comes before it."""
    rest = url.partition("://")[2]
    credentials, at, after = rest.partition("@")
    if not at or "/" in credentials:
        credentials, after = "", rest
    place, _, options = after.partition("?")
    return credentials, place, options


def _chosen(options: str, is_chosen: Callable[[str], bool]) -> str:
    """Return the chosen options, after a question mark; empty if there are none."""
    named = ((option, unquote(option.partition("=")[0])) for option in options.split("&") if option)
    chosen = [option for option, name in named if is_chosen(name)]
    return f"?{'&'.join(chosen)}" if chosen else ""


def _postgres_address(url: str) -> PostgresAddress:
    _, place, query = _split(url)
    # If libpq split it differently, its error message could name half of a password.
    if "@" in place or "@" in query or "#" in place or _BAD_PERCENT.search(url):
        raise InvalidArgument(
            'Invalid database "postgresql://…": in a name or password, write %40 for @, %2F for /, '
            "%3F for ?, %23 for # and %25 for %"
        )
    if _SURROGATE.search(url):  # Python decodes bytes of variables that are not UTF-8 so
        raise InvalidArgument(
            'Invalid database "postgresql://…": it is not UTF-8. Percent-encode such bytes, as in %FF'
        )
    address = PostgresAddress(url)
    if not place.partition("/")[2] and "dbname=" not in query:
        raise InvalidArgument(f'Invalid database "{address.label}": the name is missing; {FORMS}')
    return address
