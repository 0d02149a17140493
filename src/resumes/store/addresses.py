"""Addresses of stores in files and in PostgreSQL databases."""

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
"""The options that select the database if the part before the options does not."""

_SECRET: Final = re.compile("password|secret", re.IGNORECASE)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BAD_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})|%00")


@dataclass(frozen=True, slots=True)
class SqliteAddress:
    """A file, given by its absolute path with links resolved, so that all processes use the same
    locks and the file system is known."""

    path: Path

    @property
    def label(self) -> str:
        """Return the address for messages and logs."""
        return f"sqlite:///{self.path}"


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """A database on a PostgreSQL server, or on a server with the same protocol.

    `url` has libpq's form: it may contain several hosts, a password and options.
    """

    url: str = field(repr=False)

    @property
    def label(self) -> str:
        """Return the address for messages and logs: without user, password and most options."""
        _, place, options = _split(self.url)
        return f"postgresql://{place}{_chosen(options, PLACE_OPTIONS.__contains__)}"


Address = SqliteAddress | PostgresAddress


def parse_address(url: str) -> Address:
    """Parse the URL of a store; ignore a `+driver` suffix of the scheme.

    Raises InvalidArgument for all other texts, with a message that contains no password.
    """
    scheme, separator, rest = url.partition("://")
    engine = scheme.partition("+")[0]
    if separator and engine == "sqlite" and rest.startswith("/") and len(rest) > 1:
        if "\0" in rest:
            raise InvalidArgument(
                f"Invalid database {rest[1:]!a}: a path cannot contain a NUL byte"
            )
        # `Path.resolve` would fail for a loop of links, but no file is opened here.
        return SqliteAddress(Path(os.path.realpath(rest[1:])))
    if separator and engine in POSTGRES:
        return _postgres_address(f"postgresql://{rest}")
    raise InvalidArgument(f'Invalid database "{_harmless(url)}": {FORMS}')


def find_without_secrets(url: str) -> str | None:
    """Return the address without secrets as a user would type it, or None if it is invalid.

    libpq can get the secrets elsewhere.
    """
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
    """Return those parts of an invalid address that cannot contain a password."""
    if "@" not in url and "=" not in url:
        return url[:80]
    scheme, separator, _ = url.partition("://")
    return f"{scheme}://…" if separator and re.fullmatch("[A-Za-z0-9+.-]+", scheme) else "…"


def _split(url: str) -> tuple[str, str, str]:
    """Split the address into credentials, place and options like libpq.

    The credentials are before the first @, unless a / comes before it.
    """
    rest = url.partition("://")[2]
    credentials, at, after = rest.partition("@")
    if not at or "/" in credentials:
        credentials, after = "", rest
    place, _, options = after.partition("?")
    return credentials, place, options


def _chosen(options: str, is_chosen: Callable[[str], bool]) -> str:
    """Return the chosen options after a question mark, or an empty string if there are none."""
    named = ((option, unquote(option.partition("=")[0])) for option in options.split("&") if option)
    chosen = [option for option, name in named if is_chosen(name)]
    return f"?{'&'.join(chosen)}" if chosen else ""


def _postgres_address(url: str) -> PostgresAddress:
    _, place, query = _split(url)
    # If libpq split the address differently, its error message could contain part of a password.
    if "@" in place or "@" in query or "#" in place or _BAD_PERCENT.search(url):
        raise InvalidArgument(
            'Invalid database "postgresql://…": in a name or password, write %40 for @, %2F for /, '
            "%3F for ?, %23 for # and %25 for %"
        )
    if _SURROGATE.search(url):  # Python's form of bytes that are not UTF-8
        raise InvalidArgument(
            'Invalid database "postgresql://…": it is not UTF-8. Percent-encode such bytes, as in %FF'
        )
    address = PostgresAddress(url)
    if not place.partition("/")[2] and "dbname=" not in query:
        raise InvalidArgument(f'Invalid database "{address.label}": the name is missing; {FORMS}')
    return address
