"""Reading an account's file (resumes.store.account_file), which may have been cut off or changed."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, BinaryIO, Final, NoReturn

from resumes.errors import InvalidJson
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

LONGEST_LINE: Final = 64 * 1024 * 1024
"""Bytes. A resume is a small part of it."""


def _object(text: bytes) -> dict[str, Any]:
    content = json.loads(text.decode(), parse_constant=_refuse_constant)
    if not isinstance(content, dict):
        raise ValueError("no object")
    return content


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class Reader:
    """An export that is read once, from its first byte. Iterating gives its rows.

    Raises InvalidJson for what is no export, of a newer version, cut off or changed; the last two
    only when the last row was given.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()
        self._offset = 0
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
        if not line.endswith(b"\n"):
            self._refuse("it ends before its last line")
        self._sha256.update(line)
        head, found, rest = line.rstrip(b"\n").partition(DOCUMENT)
        document = rest.removesuffix(b"}")
        try:
            content = _object(head + b"}" if found else head)
            if found:
                _object(document)
        except (ValueError, RecursionError):
            self._refuse("a line is no JSON object")
        self._offset += len(line)
        return content, document

    def _read_header(self) -> Header:
        content, _ = self._read()
        if content.get("format") != FORMAT:
            self._refuse(f'its first line does not say "format":"{FORMAT}"')
        if content.get("version") != VERSION:
            self._refuse(
                f"it is of version {content.get('version')!r:.20}, this program reads {VERSION}"
            )
        values = {field.name: content.get(json_name(field.name)) for field in fields(Header)}
        for field in fields(Header):
            self._check_value(values[field.name], field.type, json_name(field.name))
        return Header(**values)  # type: ignore[arg-type]  # they were just checked

    def _row(self, content: dict[str, Any], document: bytes) -> Row:
        if content.get("kind") not in set(Kind):
            self._refuse(f"there are no rows of the kind {content.get('kind')!r:.40}")
        kind = Kind(content["kind"])
        values = {one.column: self._value(content, one) for one in COLUMNS[kind]}
        if bool(document) is not (kind is Kind.RESUME):
            self._refuse("a document stands at the end of each resume's line, and of no other")
        return Row(kind, values, document)

    def _value(self, content: Mapping[str, Any], column: Column) -> Any:
        value = content.get(column.name)
        if value is None and column.is_nullable:
            return None
        if column.type is bytes and isinstance(value, str):
            try:
                return bytes.fromhex(value)
            except ValueError:
                self._refuse(f'"{column.name}" is not hexadecimal')
        self._check_value(value, column.type, column.name)
        return value

    def _check_value(self, value: object, kind: object, name: str) -> None:
        is_right = type(value) is kind
        if type(value) is int:
            is_right = is_right and 0 <= value < 2**63
        if type(value) is str:
            is_right = is_right and "\0" not in value  # PostgreSQL keeps none
        if not is_right:
            self._refuse(f'"{name}" is missing, or not what it has to be')

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
            f"This is no whole export of an account: {why} (at byte {self._offset:,}). "
            "`resumes accounts export` writes one",
            offset=self._offset,
        )
