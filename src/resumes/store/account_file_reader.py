"""Reading an account's file (resumes.store.account_file), which a stranger may have written."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, BinaryIO, Final, NoReturn

import orjson

from resumes.analyzer import check_stored
from resumes.errors import InvalidInput, InvalidJson
from resumes.store import account_fields
from resumes.store.account_fields import Rule
from resumes.store.account_file import (
    COLUMNS,
    DOCUMENT,
    FORMAT,
    KEYS,
    VERSION,
    Column,
    Header,
    Kind,
    Row,
    json_name,
)
from resumes.store.identifiers import POSITION_DIGITS

LONGEST_LINE: Final = 64 * 1024 * 1024
"""Bytes. A resume is a small part of it."""

SHOWN_CHARS: Final = 60
"""Of a value that is wrong."""


class Reader:
    """An export that is read once, from its first byte. Iterating gives its rows.

    Each field of a row is one that a store may have written, and so is its document, unless these
    are known from an earlier reading. Raises InvalidJson for what is no export, of a newer version,
    cut off or changed; the last two only when the last row was given.
    """

    def __init__(self, file: BinaryIO, *, are_documents_known: bool = False) -> None:
        self._file = file
        self._are_documents_known = are_documents_known
        self._sha256 = hashlib.sha256()
        self._line = 0
        self._offset = self._next_offset = 0
        self._last: tuple[int, tuple[Any, ...]] = (0, ())
        self.counts = dict.fromkeys(Kind, 0)
        self.header = self._read_header()

    def __iter__(self) -> Iterator[Row]:
        while True:
            before = self._sha256.hexdigest()
            content, document = self._read()
            if content.get("kind") == "end":
                self._check_end(content, before)
                return
            row = self._row(content, document)
            self._check_order(row)
            self.counts[row.kind] += 1
            yield row

    @property
    def sha256(self) -> str:
        """The digest of all that was read."""
        return self._sha256.hexdigest()

    def _read(self) -> tuple[dict[str, Any], bytes]:
        """The next line: what it says, and the document at its end, if there is one."""
        line = self._file.readline(LONGEST_LINE)
        self._line += 1
        self._offset = self._next_offset
        self._next_offset += len(line)
        if not line.endswith(b"\n"):
            self._refuse("it ends before its last line")
        self._sha256.update(line)
        head, found, rest = line.rstrip(b"\n").partition(DOCUMENT)
        try:
            content = orjson.loads(head + b"}" if found else head)
        except ValueError:
            content = None
        if type(content) is not dict or (found and not rest.endswith(b"}")):
            self._refuse("a line is no JSON object")
        return content, rest[:-1]

    def _read_header(self) -> Header:
        content, _ = self._read()
        if content.get("format") != FORMAT:
            self._refuse(f'its first line does not say "format":"{FORMAT}"')
        if content.get("version") != VERSION:
            version = _shown(content.get("version"))
            self._refuse(f"it is of version {version}, this program reads {VERSION}")
        values = {
            field.name: self._value(
                content,
                Column(field.name, json_name(field.name), field.type, is_nullable=False),  # type: ignore[arg-type]  # a dataclass says its types as it was told them
                account_fields.HEADER[field.name],
            )
            for field in fields(Header)
        }
        return Header(**values)

    def _row(self, content: dict[str, Any], document: bytes) -> Row:
        name = content.get("kind")
        if type(name) is not str or name not in set(Kind):
            self._refuse(f"there are no rows of the kind {_shown(name)}")
        kind = Kind(name)
        rules = account_fields.ROWS[kind]
        values = {one.column: self._value(content, one, rules[one.column]) for one in COLUMNS[kind]}
        row = Row(kind, values, document)
        if bool(document) is not (kind is Kind.RESUME):
            self._refuse("a document stands at the end of each resume's line, and of no other")
        if kind is Kind.RESUME:
            self._check_resume(row)
        return row

    def _value(self, content: Mapping[str, Any], column: Column, rule: Rule) -> Any:
        said = value = content.get(column.name)
        if value is None:
            if not column.is_nullable:
                self._refuse(f'"{column.name}" is missing, which is {rule.words}')
            return None
        if column.type is bytes and type(value) is str:
            try:
                value = bytes.fromhex(value)
            except ValueError:
                self._refuse(f'"{column.name}" is {_shown(said)}, which is not hexadecimal')
        if type(value) is not column.type or not rule.allows(value):
            self._refuse(f'"{column.name}" is {_shown(said)}, and has to be {rule.words}')
        return value

    def _check_resume(self, row: Row) -> None:
        values = row.values
        if int(values["id"][:POSITION_DIGITS], 16) > self.header.last_id_us:
            self._refuse(f'the resume {values["id"]} is newer than "lastIdUs" of the first line')
        try:
            if self._are_documents_known:
                row.document.decode()
                return
            known = check_stored(row.document)
        except (InvalidInput, UnicodeDecodeError) as error:
            self._refuse(f'"document" is none that a store has: {error}')
        for column, said in (("title", known.title), ("name", known.name)):
            if values[column] != said:
                self._refuse(f'"{column}" is {_shown(values[column])}, its document says otherwise')

    def _check_order(self, row: Row) -> None:
        # Which also says that no row comes twice.
        place = (list(Kind).index(row.kind), tuple(row.values[key] for key in KEYS[row.kind]))
        if place <= self._last:
            self._refuse(f"its {row.kind} rows are not in order, or one comes twice")
        self._last = place

    def _check_end(self, content: Mapping[str, Any], sha256: str) -> None:
        counts = {kind.value: count for kind, count in self.counts.items()}
        if content.get("sha256") != sha256 or content.get("counts") != counts:
            self._refuse("it is not what was written: its SHA-256 or its counts differ")
        if self._file.read(1):
            self._refuse("something follows its last line")

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidJson(
            f"This is no whole export of an account: {why} (line {self._line:,}, at byte "
            f"{self._offset:,}). `resumes accounts export` writes one",
            offset=self._offset,
        )


def _shown(value: Any) -> str:
    """A value of a line, as people are told of it."""
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    said = repr(value)
    return said if len(said) <= SHOWN_CHARS else f"{said[:SHOWN_CHARS]}…"
