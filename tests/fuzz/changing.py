"""Changing inputs at random, so that JSON mostly stays JSON.

libFuzzer changes bytes, and of those changes nearly all break a document at its first bracket. What
is changed here is the value; everything random comes from `chosen`, so a seed gives the same again.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from resumes.analyzer.jsonresume.mapping import HEADER, KEYS, LISTS, PROFILES
from resumes.analyzer.schema import HEADER as CONTACT
from resumes.analyzer.schema import SECTION_FIELDS, SECTION_TYPES, STYLE

ChangeBytes = Callable[[bytes], bytes]

BYTES_SHARE: Final = 0.25
"""How often bytes are changed, and no value."""

MOST_CHANGES: Final = 4

NAMES: Final = sorted(
    {"header", "sections", "title", "style", "isImported", "record", "items", "hobbies"}
    | {"type", "kind", "isCoverLetter", "coverLetters", "unknown", "", "a.b", "x[0]", "é\u202e"}
    | {"fromYear", "fromMonth", "toYear", "toMonth", "isOngoing", "value", "layoutMode"}
    | {*SECTION_TYPES, *SECTION_FIELDS, *STYLE.fields, *CONTACT.fields, *KEYS}
    | {f"show{name[:1].upper()}{name[1:]}" for row in LISTS for name in row.parts[0].fields}
    | {field for section_type in SECTION_TYPES.values() for field in section_type.fields}
    | {name for row in (PROFILES, *LISTS) for part in row.parts for name in part.names}
    | {name for part in HEADER for name in part.names}
    | {"city", "region", "countryCode"}
)
"""All fields of both formats, and some of neither."""

TEXTS: Final = (
    "", " ", "\t\n", "Ada", "x" * 20_001, "x" * 12_000, "p\n\n\n" * 3_000, "\x1b[2J", "\u202eevil", "👩‍🚀", "\U000e0041", "\x7f",
    "multicolumn", "#12345", "#12345678", "2020-01", "13/2020", "Present", "December 1999",
    "native", "Paris, Île-de-France, FR", "Berlin, CA", ", , ", "A - 2014-11-01 - B", "cover letter",
    "https://jsonresume.org/schema", "a.b[0]", "../..", "\u0085\u2028", "ﬁ", "e\u0301",
)  # fmt: skip
NUMBERS: Final = (
    0, 1, 2, 3, 11, 12, -1, 2020, 2.5, -0.0, 1.0, 1e-320, 1.7e308, 2**63 - 1, -(2**63), 2**53 + 1,
)  # fmt: skip


REQUEST_LINES: Final = (
    b"", b"GET / HTTP/1.1", b"POST /a?b HTTP/1.1", b"HEAD http://a:1/b HTTP/1.0", b"Host: a", b"host:b",
    b"Content-Length: 3", b"Content-Length: 0", b"content-length:\t03 ", b"Transfer-Encoding: chunked",
    b"transfer-encoding: gzip", b"Connection: close", b"Connection: keep-alive", b"Connection: upgrade",
    b"Upgrade: h2c", b"Expect: 100-continue", b"0", b"3", b"a", b"3;a=b", b"abc", b" a", b"X: y",
)  # fmt: skip
REQUEST_WORDS: Final = (
    b" ", b"  ", b"\t", b":", b": ", b"1", b"0", b"/", b"%", b"%2f", b"?", b"#", b";", b",", b", x", b"=", b'"',
    b"\r", b"\n", b"\x00", b"\x7f", b"\xff", b"GET", b"POST", b"CONNECT", b"PRI", b"HTTP/1.1", b"HTTP/1.0",
    b"chunked", b"close", b"http://", b"a", b"b", b"",
)  # fmt: skip


def changed(data: bytes, chosen: random.Random, change_bytes: ChangeBytes) -> bytes:
    """The input with a few changes; in its value if it is JSON, otherwise in its bytes."""
    if chosen.random() < BYTES_SHARE:
        return change_bytes(data)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return change_bytes(data)
    for _ in range(chosen.randint(1, MOST_CHANGES)):
        value = _changed_value(value, chosen)
    try:
        return orjson.dumps(value, option=chosen.choice((0, 0, orjson.OPT_INDENT_2)))
    except orjson.JSONEncodeError:
        return change_bytes(data)  # nested deeper than can be written


def changed_file(data: bytes, chosen: random.Random, change_bytes: ChangeBytes) -> bytes:
    """The same of a dropped file, whose first line is its name; of lines, in one of them."""
    head, _, content = data.partition(b"\n")
    if chosen.random() < BYTES_SHARE / 2:
        return change_bytes(head) + b"\n" + content
    if b"jsonl" not in head and b"ndjson" not in head:
        return head + b"\n" + changed(content, chosen, change_bytes)
    return head + b"\n" + changed_line(content, chosen, change_bytes)


def changed_line(data: bytes, chosen: random.Random, change_bytes: ChangeBytes) -> bytes:
    """The same of lines, in one of them, which is perhaps there twice then."""
    lines = data.split(b"\n")
    at = chosen.randrange(len(lines))
    lines[at] = changed(lines[at], chosen, change_bytes)
    if chosen.random() < BYTES_SHARE:
        lines.insert(at, chosen.choice(lines))
    return b"\n".join(lines)


def changed_request(data: bytes, chosen: random.Random, change_bytes: ChangeBytes) -> bytes:
    """The same of HTTP requests, in their lines."""
    if chosen.random() < BYTES_SHARE:
        return change_bytes(data)
    lines = data.split(b"\r\n")
    for _ in range(chosen.randint(1, MOST_CHANGES)):
        at = chosen.randrange(len(lines))
        match chosen.randrange(5):
            case 0:
                lines.insert(at, chosen.choice(lines))
            case 1:
                lines.insert(at, chosen.choice(REQUEST_LINES))
            case 2:
                del lines[at : at + (len(lines) > 1)]
            case 3:
                lines[at] = change_bytes(lines[at])
            case _:
                old, new = chosen.sample(REQUEST_WORDS, 2)
                lines[at] = lines[at].replace(old, new, 1)
    return b"\r\n".join(lines)


def changed_bytes(data: bytes, chosen: random.Random) -> bytes:
    """The input with a piece of it cut out, repeated or overwritten."""
    begin = chosen.randint(0, len(data))
    end = min(len(data), begin + chosen.choice((0, 1, 1, 2, 8, 64)))
    piece = chosen.choice((b"", data[begin:end] * 2, chosen.randbytes(end - begin), b'"', b"\\u"))
    return data[:begin] + piece + data[end:]


def _changed_value(value: Any, chosen: random.Random) -> Any:
    holders = list(_iter_holders(value))
    if not holders:
        return _any_value(chosen)
    holder = chosen.choice(holders)
    if isinstance(holder, list):
        _change_list(holder, chosen, holders)
    else:
        _change_object(holder, chosen, holders)
    return value


def _iter_holders(value: Any) -> Iterator[Any]:
    """The value and all that is in it, if it holds other values."""
    if isinstance(value, dict | list):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from _iter_holders(each)


def _change_list(holder: list[Any], chosen: random.Random, holders: list[Any]) -> None:
    at = chosen.randint(0, len(holder))
    match chosen.randrange(4):
        case 0:
            holder.insert(at, _any_value(chosen))
        case 1:
            holder.insert(at, _copied(chosen.choice(holders)))
        case 2:
            del holder[at : at + 1]
        case _:
            holder[at : at + 1] = [_any_value(chosen)]


def _change_object(holder: dict[str, Any], chosen: random.Random, holders: list[Any]) -> None:
    name = chosen.choice(list(holder)) if holder else chosen.choice(NAMES)
    match chosen.randrange(6):
        case 0:
            holder.pop(name, None)
        case 1:
            holder[chosen.choice(NAMES)] = holder.pop(name, None)
        case 2:
            holder[chosen.choice(NAMES)] = _copied(chosen.choice(holders))
        case 3:
            holder[chosen.choice(NAMES)] = _any_value(chosen)
        case _:
            holder[name] = _any_value(chosen)


def _any_value(chosen: random.Random) -> Any:
    match chosen.randrange(6):
        case 0:
            return chosen.choice((None, True, False, [], {}))
        case 1:
            return chosen.choice(NUMBERS)
        case 2:
            return [chosen.choice(TEXTS) for _ in range(chosen.choice((1, 2, 201)))]
        case 3:
            return {chosen.choice(NAMES): chosen.choice(TEXTS)}
        case 4:
            name, text = chosen.choice(NAMES), chosen.choice(TEXTS)
            count = chosen.choice((1, 300)) if len(text) < 50 else 1
            return [{name: text} for _ in range(count)]
        case _:
            return chosen.choice(TEXTS)


def _copied(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))
