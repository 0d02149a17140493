"""The file format of an account archive: the models of its lines, how they are written, and a reader.

An archive is NDJSON. The first line is a header, each of the others is a row of a table, and the last
one has the number of rows and the SHA-256 of all lines before it. So a file that was cut off or changed
is known before anything of it is stored. A resume's document is the last member of its line, byte
for byte as it is stored.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, BinaryIO, Final, Literal, NamedTuple, NoReturn, TypeVar

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from sqlalchemy import Table

from resumes.analyzer import check_stored, is_filename
from resumes.errors import InvalidInput, InvalidJson
from resumes.store.accounts import NAME
from resumes.store.api_keys import MASKED, MAX_NAME_CHARS
from resumes.store.identifiers import KEY_ID, LATEST_US, RESUME_ID, position_of
from resumes.store.import_ledger import (
    MAX_ITEMS_CHARS,
    MAX_LEDGER_CHARS,
    SOURCE_BYTES,
    FileOutcome,
    parse_items,
)
from resumes.store.schema import api_keys, imported_digests, imported_files, imported_items, resumes

T = TypeVar("T")

FORMAT: Final = "resumes-account"
VERSION: Final = 1

DOCUMENT: Final = b',"document":'
"""What stands before a document. Inside of a JSON string its first quote would be escaped."""

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""A resume is a small part of it."""

MAX_HEADER_BYTES: Final = 65_536
"""Far more than a first line has."""

MAX_SHOWN_CHARS: Final = 60
"""Of a value that an error message names."""


class RowKind(StrEnum):
    """The table of a row, in the order of the file."""

    RESUME = "resume"
    FILE = "file"
    ITEM = "item"
    DIGEST = "digest"
    KEY = "key"


class ArchiveRow(NamedTuple):
    """A row of the account, by column; `document` are the bytes of a resume's."""

    kind: RowKind
    values: dict[str, Any]
    document: bytes = b""

    @property
    def size_bytes(self) -> int:
        """Return about how many bytes the row takes in a store."""
        return len(self.document) + len(self.values.get("source") or b"") + 200


# The types of fields: what a store may have written, and nothing else


def _instant(value: str) -> str:
    datetime.fromisoformat(value)
    return value


def _filename(value: str) -> str:
    if not is_filename(value):
        raise ValueError("it is not a safe file name such as AdaResume.pdf")
    return value


def _items(value: str) -> str:
    parse_items(value)
    if "\\u0000" in value:
        raise ValueError("it contains the character U+0000")
    return value


def _whole(pattern: re.Pattern[str]) -> Any:
    return Field(pattern=f"^{pattern.pattern}$")


Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
LedgerText = Annotated[Text, Field(max_length=MAX_LEDGER_CHARS)]
Instant = Annotated[
    str,
    Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"),
    AfterValidator(_instant),
]
Id = Annotated[str, _whole(RESUME_ID)]
Name = Annotated[str, _whole(NAME)]
Number = Annotated[int, Field(ge=0, le=2**31 - 1)]
BigNumber = Annotated[int, Field(ge=0, le=2**63 - 1)]
Bytes = Annotated[
    bytes,
    BeforeValidator(lambda value: bytes.fromhex(value) if isinstance(value, str) else value),
]
Sha256 = Annotated[Bytes, Field(min_length=32, max_length=32)]


class _Line(BaseModel):
    """A line: names in camelCase, bytes as hexadecimal digits."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
    )


class Header(_Line):
    """The first line. `resumes` is how many there were when the export began.

    `last_id_us` is the time in the id of the newest resume that the account ever had. An import also
    compares it with the clock.
    """

    format: Literal["resumes-account"]
    version: Literal[1]
    account: Name
    plan: Name
    created_at: Instant
    exported_at: Instant
    last_id_us: Annotated[int, Field(ge=0, le=LATEST_US)]
    resumes: Number


class ResumeLine(_Line):
    """A resume without its document."""

    kind: Literal[RowKind.RESUME]
    id: Id
    title: Text | None
    name: Text | None
    filename: Annotated[str, AfterValidator(_filename)]
    created_at: Instant
    updated_at: Instant


class FileLine(_Line):
    """A file of the import ledger. Its reasons may be those of a newer version."""

    kind: Literal[RowKind.FILE]
    claim_id: Id
    name: LedgerText
    outcome: Annotated[FileOutcome, Field(strict=False)]  # a text, in JSON
    reason: Annotated[str, Field(pattern="^[a-z][a-z_]{0,63}$")] | None
    message: LedgerText | None
    path: LedgerText | None
    byte_offset: BigNumber | None
    size_bytes: BigNumber
    claimed_at: Instant
    finished_at: Instant
    resume_id: Id | None = None
    """None in archives of a store whose items had the resume of a file of one."""
    source: Annotated[Bytes, Field(max_length=SOURCE_BYTES)] | None
    root: LedgerText | None
    items: Annotated[Text, Field(max_length=MAX_ITEMS_CHARS), AfterValidator(_items)] | None


class ItemLine(_Line):
    """A resume that a file had."""

    kind: Literal[RowKind.ITEM]
    claim_id: Id
    item: Number
    outcome: Literal[FileOutcome.DONE, FileOutcome.DUPLICATE]
    resume_id: Id


class DigestLine(_Line):
    """A content that counts as stored."""

    kind: Literal[RowKind.DIGEST]
    digest: Sha256
    resume_id: Id


class ApiKeyLine(_Line):
    """An API key. Revoked ones are not exported."""

    kind: Literal[RowKind.KEY]
    id: Annotated[str, _whole(KEY_ID)]
    name: Annotated[Text, Field(max_length=MAX_NAME_CHARS)]
    masked: Annotated[str, _whole(MASKED)]
    created_at: Instant
    shown_at: Instant | None
    last_used_at: Instant | None
    expires_at: Instant | None
    revoked_at: None
    replaced_by: Annotated[str, _whole(KEY_ID)] | None
    key_hash: Sha256


class EndLine(_Line):
    """The last line."""

    kind: Literal["end"]
    counts: dict[str, Any]
    sha256: str


LINES: Final[Mapping[RowKind, tuple[type[_Line], Table]]] = {
    RowKind.RESUME: (ResumeLine, resumes),
    RowKind.FILE: (FileLine, imported_files),
    RowKind.ITEM: (ItemLine, imported_items),
    RowKind.DIGEST: (DigestLine, imported_digests),
    RowKind.KEY: (ApiKeyLine, api_keys),
}
"""The line of each kind, and the table that it is a row of."""

COLUMNS: Final[Mapping[RowKind, Mapping[str, str]]] = {
    kind: {name: to_camel(name) for name in line.model_fields if name != "kind"}
    for kind, (line, _) in LINES.items()
}
"""The columns of each kind of row, and their names in a line."""

TABLES: Final[Mapping[RowKind, Table]] = {kind: table for kind, (_, table) in LINES.items()}
KEYS: Final[Mapping[RowKind, tuple[str, ...]]] = {
    kind: tuple(key.name for key in table.primary_key if key.name != "account_id")
    for kind, table in TABLES.items()
}
"""What identifies the rows of a kind, and orders them."""

Line = Annotated[
    ResumeLine | FileLine | ItemLine | DigestLine | ApiKeyLine | EndLine,
    Field(discriminator="kind"),
]
MAX_FIELDS: Final = max(len(line.model_fields) for line, _ in LINES.values())
"""Of a line. One that has millions would have as many errors."""

_HEADER: Final[TypeAdapter[Header]] = TypeAdapter(Header)
_LINE: Final[TypeAdapter[Line]] = TypeAdapter(Line)


def is_account_file(file: BinaryIO) -> bool:
    """Return whether the first line is that of an account archive, of any version, complete or not."""
    try:
        header = json.loads(file.readline(MAX_HEADER_BYTES))
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT


def encode_archive(header: Header, rows: Iterable[ArchiveRow]) -> Iterator[bytes]:
    """Yield the lines of an archive. Each row is asked for when the lines before it were taken."""
    line = _json(header.model_dump(by_alias=True)) + b"\n"
    sha256 = hashlib.sha256(line)
    yield line
    counts = dict.fromkeys(RowKind, 0)
    for row in rows:
        counts[row.kind] += 1
        content: dict[str, Any] = {"kind": row.kind}
        for column, name in COLUMNS[row.kind].items():
            value = row.values[column]
            content[name] = value.hex() if isinstance(value, bytes) else value
        line = _json(content)
        if row.kind is RowKind.RESUME:
            line = line[:-1] + DOCUMENT + row.document + b"}"
        line += b"\n"
        sha256.update(line)
        yield line
    yield _json({"kind": "end", "counts": counts, "sha256": sha256.hexdigest()}) + b"\n"


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


class ArchiveReader:
    """Reads an archive once, from its first byte. Iterating gives its rows.

    Each field of a row is one that a store may have written, and so is its document, unless these
    are known from an earlier reading. Raises InvalidJson for what is no archive, of another version,
    cut off or changed; the last two only after the last row.
    """

    def __init__(self, file: BinaryIO, *, are_documents_known: bool = False) -> None:
        self._file = file
        self._are_documents_known = are_documents_known
        self._sha256 = hashlib.sha256()
        self._line = 0
        self._offset = self._next_offset = 0
        self._last: tuple[int, tuple[Any, ...]] = (0, ())
        self.counts = dict.fromkeys(RowKind, 0)
        self.header = self._validate(_HEADER, self._read()[0])

    def __iter__(self) -> Iterator[ArchiveRow]:
        while True:
            before = self._sha256.hexdigest()
            head, document = self._read()
            line = self._validate(_LINE, head)
            if isinstance(line, EndLine):
                self._check_end(line, before)
                return
            values = dict(vars(line))
            row = ArchiveRow(values.pop("kind"), values, document)
            self._check_document(row)
            self._check_order(row)
            self.counts[row.kind] += 1
            yield row

    @property
    def sha256(self) -> str:
        """Return the digest of all that was read."""
        return self._sha256.hexdigest()

    def _read(self) -> tuple[bytes, bytes]:
        """Return the next line without the document at its end, and that document or nothing."""
        line = self._file.readline(MAX_LINE_BYTES)
        self._line += 1
        self._offset = self._next_offset
        self._next_offset += len(line)
        if not line.endswith(b"\n"):
            self._refuse("it ends before its last line")
        self._sha256.update(line)
        head, found, rest = line.rstrip(b"\n").partition(DOCUMENT)
        if not found:
            return head, b""
        if not rest.endswith(b"}"):
            self._refuse("a line is not a JSON object")
        return head + b"}", rest[:-1]

    def _validate(self, line: TypeAdapter[T], content: bytes) -> T:
        try:
            fields = orjson.loads(content)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            self._refuse("a line is not a JSON object")
        if len(fields) > MAX_FIELDS:
            self._refuse(f"a line has {len(fields):,} fields; the maximum is {MAX_FIELDS}")
        try:
            return line.validate_python(fields, by_alias=True, by_name=False)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
        given, why = first["input"], first["msg"].removeprefix("Value error, ")
        if not first["loc"]:
            self._refuse(f"unknown kind of row {_shown(fields.get('kind'))}")
        name = f'"{_shown(first["loc"][-1])[1:-1]}"'  # of a stranger, perhaps
        if first["type"] == "missing":
            self._refuse(f"{name} is missing")
        self._refuse(f"{name} is {_shown(given)}: {why}")

    def _check_document(self, row: ArchiveRow) -> None:
        if bool(row.document) is not (row.kind is RowKind.RESUME):
            self._refuse("each resume's line must end with a document, and no other line may")
        if row.kind is not RowKind.RESUME:
            return
        values = row.values
        if position_of(values["id"]) > self.header.last_id_us:
            self._refuse(f'the resume {values["id"]} is newer than "lastIdUs" in the first line')
        try:
            if self._are_documents_known:
                row.document.decode()
                return
            known = check_stored(row.document)
        except (InvalidInput, UnicodeDecodeError) as error:
            self._refuse(f'"document" cannot be stored: {error}')
        for column, said in (("title", known.title), ("name", known.name)):
            if values[column] != said:
                self._refuse(
                    f'"{column}" is {_shown(values[column])}, but its document says otherwise'
                )

    def _check_order(self, row: ArchiveRow) -> None:
        # Which also says that no row comes twice.
        place = (list(RowKind).index(row.kind), tuple(row.values[key] for key in KEYS[row.kind]))
        if place <= self._last:
            self._refuse(f"its {row.kind} rows are out of order or repeated")
        self._last = place

    def _check_end(self, end: EndLine, sha256: str) -> None:
        if end.sha256 != sha256 or end.counts != self.counts:
            self._refuse("it was changed: its SHA-256 or its counts do not match")
        if self._file.read(1):
            self._refuse("there is data after its last line")

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidJson(
            f"Not a complete account export: {why} (line {self._line:,}, at byte "
            f"{self._offset:,}). Create one with `resumes accounts export`",
            offset=self._offset,
        )


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    said = repr(value)
    return said if len(said) <= MAX_SHOWN_CHARS else f"{said[:MAX_SHOWN_CHARS]}…"
