"""Bodies that are made to cost a server much more than they cost their sender."""

import json
from collections.abc import Callable

MIB = 1024 * 1024
HEAD = '{"header":{"name":"Ada"},"sections":{'
SUMMARY = '"summaries":{"column":0,"items":['

TARGETS_S = {MIB: 0.05, 2 * MIB: 0.2}
"""In this time a body of that size has its answer on an idle machine,"""

BUSY = 4
"""and in so many times that on a busy one."""

TRIES = 2
OTHERS_WAIT_S = 2.0
"""No small request waits longer while bombs come in, one after the other."""


def _filled(start: str, unit: str, end: str, size_bytes: int) -> bytes:
    """`unit` as often as fits, separated by commas, between `start` and `end`."""
    count = (size_bytes - len(start) - len(end) + 1) // (len(unit) + 1)
    return (start + ",".join([unit] * count) + end).encode()


def _keys(size_bytes: int, *, start: str, end: str, distinct: bool) -> bytes:
    """Members with keys of 6 characters, all different or all alike."""
    count = (size_bytes - len(start) - len(end)) // len('"k00000":0,')
    members = (f'"k{n if distinct else 0:05x}":0' for n in range(count))
    return (start + ",".join(members) + end).encode()


def _deep(size_bytes: int) -> bytes:
    """Nested 100,000 levels deep, the rest white space."""
    return (b'{"header":' + b"[" * 100_000).ljust(size_bytes - 100_001) + b"]" * 100_000 + b"}"


def _escapes(size_bytes: int, *, start: str, end: str) -> bytes:
    count = (size_bytes - len(start) - len(end)) // 6
    return (start + "\\u00e9" * count + end).encode()


def valid(size_bytes: int) -> bytes:
    """A resume that is as large as that, within all limits of the format."""
    text = "Builds things that last, and says so. " * 500
    types = ("summaries", "projects", "achievements", "awards", "courses", "quotes")
    fields = {"summaries": "text", "quotes": "quote"}
    sections: dict[str, dict[str, object]] = {}
    left = size_bytes - 2_000
    for section_type in types:
        items = [{fields.get(section_type, "title"): text} for _ in range(min(18, left // 19_100))]
        left -= len(items) * 19_100
        sections[section_type] = {"column": 0, "items": items}
    body = json.dumps({"header": {"name": "Ada"}, "sections": sections})
    return body.encode().ljust(size_bytes)


BOMBS: dict[str, Callable[[int], bytes]] = {
    "100,000 levels": _deep,
    "empty lists at the top": lambda size: _filled("[", "[]", "]", size),
    "empty lists in an unknown field": lambda size: _filled(HEAD + '},"more":[', "[]", "]}", size),
    "empty lists as items": lambda size: _filled(HEAD + SUMMARY, "[]", "]}}}", size),
    "empty objects as items": lambda size: _filled(HEAD + SUMMARY, "{}", "]}}}", size),
    "objects with an empty key in an unknown field": lambda size: _filled(
        HEAD + '},"more":[', '{"":0}', "]}", size
    ),
    "zeros in a list of strings": lambda size: _filled(
        HEAD + '"skills":{"column":0,"items":[{"tags":[', "0", "]}]}}}", size
    ),
    "unknown keys at the top": lambda size: _keys(size, start=HEAD + "},", end="}", distinct=True),
    "unknown keys of an item": lambda size: _keys(
        size, start=HEAD + SUMMARY + "{", end="}]}}}", distinct=True
    ),
    "unknown section types": lambda size: _keys(size, start=HEAD, end="}}", distinct=True),
    "duplicate keys": lambda size: _keys(size, start=HEAD + "},", end="}", distinct=False),
    "integers of 5,000 digits": lambda size: _filled(HEAD + '},"more":[', "9" * 5_000, "]}", size),
    "one integer": lambda size: (HEAD + '},"more":').encode().ljust(size - 1, b"9") + b"}",
    "one fraction": lambda size: (HEAD + '},"more":0.').encode().ljust(size - 1, b"1") + b"}",
    "numbers that overflow at the end": lambda size: _filled(
        HEAD + '},"more":[', "1e300", ",1e400]}", size
    ),
    "a long string of escapes": lambda size: _escapes(
        size, start=HEAD + SUMMARY + '{"text":"', end='"}]}}}'
    ),
    "a long key of escapes": lambda size: _escapes(size, start=HEAD + '},"', end='":0}'),
    "a string without an end": lambda size: (HEAD + '},"more":"').encode().ljust(size, b"\\"),
    "escaped backslashes before a NUL": lambda size: (
        (HEAD + '},"more":"').encode().ljust(size // 2 * 2 - 10, b"\\") + b'\\u0000"}'
    ),
    "escaped quotes in an open string": lambda size: _filled(HEAD + '},"more":"', '\\"', "", size),
    "escaped quotes and colons in an open string": lambda size: _filled(
        HEAD + '},"more":"', '\\":', "", size
    ),
    "white space": lambda size: b" " * size,
    "line ends": lambda size: b"\n" * (size - 1) + b"x",
    "not UTF-8 at the end": lambda size: (
        (HEAD + '},"more":"').encode().ljust(size - 3, b"x") + b'\xff"}'
    ),
}
"""By name, what makes a bomb of about a size in bytes. Each is to be refused."""

KEPT = {"one fraction", "a long key of escapes", "escaped backslashes before a NUL"}
"""Those that are a single value in an unknown field, which is kept, whatever it is."""
