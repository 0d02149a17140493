"""An account as a file: lines of JSON that can be carried to another store.

The first line says whose it is, each of the others is a row, and the last one says how many rows
there were and the SHA-256 of all that stands before it. So a file that was cut off or changed is
known before anything of it is stored. A resume's document stands last in its line, byte for byte as
it is stored.
"""

import hashlib
import json
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, BinaryIO, Final, NamedTuple

import sqlalchemy
from sqlalchemy import Table

from resumes.analyzer import is_filename
from resumes.store.accounts import NAME
from resumes.store.api_keys import MASKED, MAX_NAME_CHARS
from resumes.store.identifiers import KEY_ID, LATEST_US, RESUME_ID
from resumes.store.import_items import parse_items
from resumes.store.import_ledger import SOURCE_BYTES, FileOutcome
from resumes.store.schema import (
    Text,
    api_keys,
    imported_digests,
    imported_files,
    imported_items,
    key_directory,
    resumes,
)

FORMAT: Final = "resumes-account"
VERSION: Final = 1

DOCUMENT: Final = b',"document":'
"""What stands before a document. Inside of a JSON string its first quote would be escaped."""


class Kind(StrEnum):
    """What a row is, in the order of the file."""

    RESUME = "resume"
    FILE = "file"
    ITEM = "item"
    DIGEST = "digest"
    KEY = "key"


class Row(NamedTuple):
    """A row of the account, by column; `document` are the bytes of a resume's."""

    kind: Kind
    values: dict[str, Any]
    document: bytes = b""

    @property
    def size_bytes(self) -> int:
        """About what it weighs."""
        return len(self.document) + len(self.values.get("source") or b"") + 200


class Column(NamedTuple):
    """A column as its lines have it."""

    column: str
    name: str
    type: type
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line says. `resumes` is how many there were when the export began.

    `last_id_us` is the time in the id of the newest resume that the account ever had.
    """

    account: str
    plan: str
    created_at: str
    exported_at: str
    last_id_us: int
    resumes: int


def _columns(table: Table) -> tuple[Column, ...]:
    return tuple(
        Column(column.name, json_name(column.name), _type(column), bool(column.nullable))
        for column in table.columns
        if column.name != "account_id"
    )


def _type(column: sqlalchemy.Column[Any]) -> type:
    return str if isinstance(column.type, Text) else column.type.python_type


def json_name(column: str) -> str:
    """What a column is called in a line: `createdAt`."""
    first, *rest = column.split("_")
    return first + "".join(word.capitalize() for word in rest)


COLUMNS: Final[Mapping[Kind, tuple[Column, ...]]] = {
    Kind.RESUME: _columns(resumes),
    Kind.FILE: _columns(imported_files),
    Kind.ITEM: _columns(imported_items),
    Kind.DIGEST: _columns(imported_digests),
    Kind.KEY: (*_columns(api_keys), *_columns(key_directory)[:1]),
}
"""The columns of each kind of row; bytes are written as hexadecimal digits."""

KEYS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.RESUME: ("id",),
    Kind.FILE: ("claim_id",),
    Kind.ITEM: ("claim_id", "item"),
    Kind.DIGEST: ("digest",),
    Kind.KEY: ("id",),
}
"""What tells the rows of a kind apart, and orders them."""


MAX_HEADER_BYTES: Final = 65_536
"""Far more than a first line has."""


def is_account_file(file: BinaryIO) -> bool:
    """Return whether the first line is that of an account's export, of any version, whole or not."""
    try:
        header = json.loads(file.readline(MAX_HEADER_BYTES))
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT


class Writer:
    """Makes the lines of an export, in order: the header's, the rows', the last one."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self.counts = dict.fromkeys(Kind, 0)

    def header(self, header: Header) -> bytes:
        """The first line."""
        names = {json_name(field.name): getattr(header, field.name) for field in fields(header)}
        return self._line(_json({"format": FORMAT, "version": VERSION} | names))

    def row(self, row: Row) -> bytes:
        """The row's line."""
        self.counts[row.kind] += 1
        content = {"kind": row.kind.value}
        for one in COLUMNS[row.kind]:
            value = row.values[one.column]
            content[one.name] = value.hex() if isinstance(value, bytes) else value
        line = _json(content)
        if row.kind is Kind.RESUME:
            line = line[:-1] + DOCUMENT + row.document + b"}"
        return self._line(line)

    def end(self) -> bytes:
        """The last line."""
        counts = {kind.value: count for kind, count in self.counts.items()}
        return _json({"kind": "end", "counts": counts, "sha256": self._sha256.hexdigest()}) + b"\n"

    def _line(self, content: bytes) -> bytes:
        line = content + b"\n"
        self._sha256.update(line)
        return line


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


MAX_INTEGER: Final = 2**31 - 1
MAX_BIG_INTEGER: Final = 2**63 - 1
DIGEST_BYTES: Final = 32

INSTANT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
REASON: Final = re.compile(r"[a-z][a-z_]{0,63}")


class Rule(NamedTuple):
    """Which values a field may have, of those that are of its column's type; and that in words."""

    allows: Callable[[Any], bool]
    words: str


def _form(pattern: re.Pattern[str], words: str) -> Rule:
    return Rule(lambda value: pattern.fullmatch(value) is not None, words)


def _number(largest: int) -> Rule:
    return Rule(lambda value: 0 <= value <= largest, f"a number from 0 to {largest}")


def _choice(choices: Container[str], words: str) -> Rule:
    return Rule(lambda value: value in choices, words)


def _text(most_chars: int, words: str) -> Rule:
    return Rule(lambda value: len(value) <= most_chars and "\0" not in value, words)


def _is_instant(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return INSTANT.fullmatch(value) is not None


def _is_items(value: str) -> bool:
    try:
        parse_items(value)
    except ValueError:
        return False
    return "\\u0000" not in value and "\0" not in value


_TEXT: Final = _text(MAX_INTEGER, "a text without U+0000")
_INSTANT: Final = Rule(_is_instant, "an instant such as 2026-01-31T09:00:00.000Z")
_ID: Final = _form(RESUME_ID, "an id of 24 digits of 0-9 and a-f")
_NAME: Final = _form(NAME, "1 to 63 of a-z, 0-9 and -, not - first")
_BYTES: Final = _number(MAX_BIG_INTEGER)
_DIGEST: Final = Rule(lambda value: len(value) == DIGEST_BYTES, "a SHA-256")
_NULL: Final = Rule(lambda value: value is None, "null: keys that are revoked stay behind")

HEADER: Final[Mapping[str, Rule]] = {
    "account": _NAME,
    "plan": _NAME,
    "created_at": _INSTANT,
    "exported_at": _INSTANT,
    "last_id_us": _number(LATEST_US),
    "resumes": _number(MAX_INTEGER),
}

ROWS: Final[Mapping[Kind, Mapping[str, Rule]]] = {
    Kind.RESUME: {
        "id": _ID,
        "title": _TEXT,
        "name": _TEXT,
        "filename": Rule(is_filename, "a name such as AdaResume.pdf that is safe in any folder"),
        "created_at": _INSTANT,
        "updated_at": _INSTANT,
    },
    Kind.FILE: {
        "claim_id": _ID,
        "name": _TEXT,
        "outcome": _choice(set(FileOutcome), f"one of {', '.join(FileOutcome)}"),
        "reason": _form(REASON, "a word of a-z and _"),
        "message": _TEXT,
        "path": _TEXT,
        "byte_offset": _BYTES,
        "size_bytes": _BYTES,
        "claimed_at": _INSTANT,
        "finished_at": _INSTANT,
        "source": Rule(lambda value: len(value) <= SOURCE_BYTES, "at most 64 KiB"),
        "root": _TEXT,
        "items": Rule(_is_items, "what became of each resume of a file"),
    },
    Kind.ITEM: {
        "claim_id": _ID,
        "item": _number(MAX_INTEGER),
        "outcome": _choice({FileOutcome.DONE, FileOutcome.DUPLICATE}, "done or duplicate"),
        "resume_id": _ID,
    },
    Kind.DIGEST: {"digest": _DIGEST, "resume_id": _ID},
    Kind.KEY: {
        "id": _form(KEY_ID, "key_ and 12 digits of 0-9 and a-f"),
        "name": _text(MAX_NAME_CHARS, f"a text of at most {MAX_NAME_CHARS} characters"),
        "masked": _form(MASKED, "the first three characters of a key, such as enh_live_abc…"),
        "created_at": _INSTANT,
        "shown_at": _INSTANT,
        "last_used_at": _INSTANT,
        "expires_at": _INSTANT,
        "revoked_at": _NULL,
        "key_hash": _DIGEST,
    },
}
"""Whether a field may be null, its column says."""
