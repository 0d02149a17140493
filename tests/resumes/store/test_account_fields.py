"""What the fields of an account's file may hold."""

import io
from dataclasses import asdict, replace
from typing import Any

import pytest

from resumes.analyzer import parse
from resumes.errors import InvalidJson
from resumes.store import identifiers, items, keys
from resumes.store.account_fields import HEADER, ROWS
from resumes.store.account_file import COLUMNS, Header, Kind, Row, Writer, json_name
from resumes.store.account_file_reader import Reader
from tests.resumes.builders import a_document
from tests.resumes.store import exports

ID = "0" * 23 + "1"
NOW = exports.NOW
ITEMS = '{"total":1,"done":0,"duplicate":0,"held":1,"failed":0,"problems":[%s]}'
PROBLEM = '{"item":0,"place":"line 1","outcome":"held"}'

WHOLE: dict[Kind, dict[str, Any]] = {
    Kind.RESUME: {
        "id": ID, "title": None, "name": "Ada", "filename": "AdaResume.pdf",
        "created_at": NOW, "updated_at": NOW,
    },
    Kind.FILE: {
        "claim_id": ID, "name": "ana/a.json", "outcome": "failed", "reason": "invalid_json",
        "message": "why", "path": None, "byte_offset": 5, "size_bytes": 4, "claimed_at": NOW,
        "finished_at": NOW, "source": b"{", "root": "/srv/inbox", "items": ITEMS % PROBLEM,
    },
    Kind.ITEM: {"claim_id": ID, "item": 0, "outcome": "done", "resume_id": ID},
    Kind.DIGEST: {"digest": b"d" * 32, "resume_id": ID},
    Kind.KEY: {
        "id": "key_0123456789ab", "name": "one", "masked": keys.mask(keys.new_secret()),
        "created_at": NOW, "shown_at": None, "last_used_at": NOW, "expires_at": NOW,
        "revoked_at": None, "key_hash": b"h" * 32,
    },
}  # fmt: skip
DOCUMENT = parse(a_document("Ada")).document


def read(kind: Kind, **values: Any) -> Row:
    """The row with these values, after it went through a file."""
    writer = Writer()
    document = DOCUMENT if kind is Kind.RESUME else b""
    row = Row(kind, WHOLE[kind] | values, document)
    lines = [writer.header(exports.HEADER), writer.row(row), writer.end()]
    (back,) = Reader(io.BytesIO(b"".join(lines)))
    return back


def read_header(**values: Any) -> Header:
    writer = Writer()
    lines = [writer.header(replace(exports.HEADER, **values)), writer.end()]
    return Reader(io.BytesIO(b"".join(lines))).header


def test_every_column_has_a_rule() -> None:
    assert {kind: {one.column for one in COLUMNS[kind]} for kind in Kind} == {
        kind: set(rules) for kind, rules in ROWS.items()
    }
    assert set(HEADER) == set(asdict(exports.HEADER))


@pytest.mark.parametrize("kind", Kind)
def test_what_a_store_writes_is_taken(kind: Kind) -> None:
    assert read(kind).values == WHOLE[kind]


@pytest.mark.parametrize("kind", Kind)
def test_what_may_be_unknown_may_be_null_and_nothing_else(kind: Kind) -> None:
    for one in COLUMNS[kind]:
        is_said = WHOLE[kind][one.column] is not None
        if one.is_nullable and one.column not in ("title", "name"):
            assert read(kind, **{one.column: None}).values[one.column] is None
        elif is_said:
            with pytest.raises(InvalidJson, match=f'"{one.name}"'):
                read(kind, **{one.column: None})


WRONG: list[tuple[Kind, str, Any]] = [
    (Kind.RESUME, "id", "../../x"),
    (Kind.RESUME, "id", "A" * 24),
    (Kind.RESUME, "filename", "../escaped-to/x.pdf"),
    (Kind.RESUME, "filename", "/etc/x.pdf"),
    (Kind.RESUME, "filename", ".pdf"),
    (Kind.RESUME, "filename", "x.sh"),
    (Kind.RESUME, "filename", "a\0b.pdf"),
    (Kind.RESUME, "filename", "a\u202eb.pdf"),
    (Kind.RESUME, "filename", "x" * 200 + ".pdf"),
    (Kind.RESUME, "created_at", "2027"),
    (Kind.RESUME, "updated_at", ""),
    (Kind.FILE, "claim_id", "\x1b[2J../.."),
    (Kind.FILE, "name", "a\0b"),
    (Kind.FILE, "outcome", "zz"),
    (Kind.FILE, "reason", "\x1b[31m"),
    (Kind.FILE, "byte_offset", -1),
    (Kind.FILE, "byte_offset", True),
    (Kind.FILE, "size_bytes", 2**63),
    (Kind.FILE, "size_bytes", 1.5),
    (Kind.FILE, "claimed_at", "2027-02-30T08:00:00.000Z"),
    (Kind.FILE, "finished_at", "2027-01-15T08:00:00.000+00:00"),
    (Kind.FILE, "source", b"x" * 65_537),
    (Kind.FILE, "source", "zz"),
    (Kind.FILE, "items", "not json"),
    (Kind.FILE, "items", "[1,2]"),
    (Kind.FILE, "items", "[" * 5_000),
    (Kind.FILE, "items", ITEMS % "{}"),
    (Kind.FILE, "items", (ITEMS % PROBLEM).replace('"held"}', '"done"}')),
    (Kind.FILE, "items", (ITEMS % PROBLEM).replace("line 1", "\\u0000")),
    (Kind.ITEM, "item", 2**31),
    (Kind.ITEM, "outcome", "failed"),
    (Kind.ITEM, "resume_id", "x"),
    (Kind.DIGEST, "digest", b"short"),
    (Kind.KEY, "id", "\x1b[2J"),
    (Kind.KEY, "name", "x" * 101),
    (Kind.KEY, "masked", "enh_live_x"),
    (Kind.KEY, "created_at", ""),
    (Kind.KEY, "expires_at", "zzz"),
    (Kind.KEY, "revoked_at", NOW),
    (Kind.KEY, "key_hash", b""),
]


@pytest.mark.parametrize(("kind", "column", "value"), WRONG)
def test_what_no_store_writes_is_refused(kind: Kind, column: str, value: Any) -> None:
    with pytest.raises(InvalidJson, match=f'"{json_name(column)}" is .*line 2'):
        read(kind, **{column: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("account", "Ana~import"),
        ("plan", "../x"),
        ("created_at", "\x1b]0;x\x07"),
        ("exported_at", ""),
        ("last_id_us", 2**63 - 1),
        ("last_id_us", -1),
        ("resumes", "7"),
    ],
)
def test_a_first_line_that_no_store_writes_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidJson, match=f'"{json_name(field)}" is .*line 1'):
        read_header(**{field: value})


def test_after_the_latest_id_there_are_others() -> None:
    assert read_header(last_id_us=identifiers.LATEST_US).last_id_us == identifiers.LATEST_US
    assert identifiers.RESUME_ID.fullmatch(identifiers.resume_id(identifiers.LATEST_US + 2**40))
    assert identifiers.LATEST_US + 2**40 < 2**63


def test_a_reason_that_only_a_newer_version_knows_is_taken() -> None:
    assert read(Kind.FILE, reason="too_beautiful").values["reason"] == "too_beautiful"


def test_what_parse_items_made_is_taken() -> None:
    assert items.parse_items(read(Kind.FILE).values["items"]).held == 1
