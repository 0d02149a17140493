"""What the standard library says of the same bytes: a second opinion, by other code.

It is lenient where we are strict, so what is refused beyond it is looked for in what it read.
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from resumes.text import escaped

MAX_DEPTH: Final = 32
MAX_NAME_CHARS: Final = 60
INTEGERS: Final = range(-(2**63), 2**63)


class _Unkept(ValueError):
    """JSON that says something which not every store and client keeps."""


def find_value(body: bytes) -> tuple[Any] | None:
    """The value that the bytes say, alone in a tuple; None unless it is JSON that can be kept
    (docs/format.md, JSON)."""
    try:
        value = json.loads(
            body.decode("utf-8-sig"),  # drops a byte order mark
            object_pairs_hook=_without_repeats,
            parse_constant=_refuse,
            parse_int=_in_range,
        )
        _check(value, 1)
    except (ValueError, RecursionError):
        return None
    return (value,)


def find_items(body: bytes) -> list[Any] | None:
    """The items of the bytes if they are a JSON array by RFC 8259; None if they are not, or nest
    deeper than the standard library reads.

    Bytes that are not ASCII count as characters, so that UTF-8 is no matter here.
    """
    try:
        value = json.loads(body.decode("latin-1"), parse_constant=_refuse, parse_int=str)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def paths_of(value: Any, path: str | None = None) -> Iterator[str]:
    """The paths of a value and of all that is in it, as messages name them."""
    yield path or ""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from paths_of(
                member, _quoted(name) if path is None else f"{path}.{_quoted(name)}"
            )
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            yield from paths_of(entry, f"{path or ''}[{position}]")


def _quoted(name: str) -> str:
    return escaped(name if len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}…")


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Unkept
    return members


def _refuse(_: str) -> None:
    raise _Unkept


def _in_range(digits: str) -> int:
    # So many digits are out of range, and converting many more is refused.
    if len(digits) > 20 or int(digits) not in INTEGERS:
        raise _Unkept
    return int(digits)


def _check(value: Any, depth: int) -> None:
    """Raises _Unkept for what the standard library reads and we must not."""
    if isinstance(value, dict | list):
        if depth > MAX_DEPTH:
            raise _Unkept
        for each in value.values() if isinstance(value, dict) else value:
            _check(each, depth + 1)
        for name in value if isinstance(value, dict) else ():
            _check(name, depth)
    elif isinstance(value, str):
        if "\0" in value:
            raise _Unkept
        value.encode()  # UnicodeEncodeError, a ValueError, for half a surrogate pair
    elif isinstance(value, float) and not math.isfinite(value):
        raise _Unkept
