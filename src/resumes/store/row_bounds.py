"""Checks of values in rows that come from another store.

Backups and copied stores are untrusted. A name of 30 MB would appear in every list, and new IDs
could not be greater than an ID from the year 6000. Of documents, only the size is checked: a
damaged document, which `db check` finds, must not prevent other documents from being restored.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Column, Integer, Table

from resumes.analyzer import is_filename
from resumes.analyzer.kinds import MAX_TEXT_CHARS
from resumes.clock import system_clock
from resumes.errors import InvalidInput, StoreIncompatible
from resumes.store.accounts import ARRIVING, MAX_FORMER_NAMES, NAME
from resumes.store.api_keys import MASKED, MAX_NAME_CHARS
from resumes.store.identifiers import ACCOUNT_ID, KEY_ID, RESUME_ID
from resumes.store.import_ledger import (
    MAX_ITEMS_CHARS,
    MAX_LEDGER_CHARS,
    MAX_SOURCE_BYTES,
    FileOutcome,
    parse_items,
)
from resumes.store.labels import MAX_LABEL_CHARS
from resumes.store.plans import MAX_KEEP_DAYS
from resumes.text import escaped

Check = Callable[[Any], str | None]
"""Returns the problem of a value that is not None, or None if the value is valid."""

INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)

WORD: Final = re.compile("[a-z][a-z_]{0,63}")

YEAR_US: Final = 366 * 24 * 3_600 * 1_000_000

MAX_CLOCK_ERROR_US: Final = 100 * YEAR_US
"""How far a store's last ID may be ahead of the clock, in case its clock was wrong."""

MAX_SHOWN_CHARS: Final = 60
"""The maximum length of a value in an error message."""


def _text(max_chars: int) -> Check:
    def check(value: Any) -> str | None:
        if not isinstance(value, str):
            return "is not a text"
        if len(value) > max_chars:
            return f"has {len(value):,} characters; the maximum is {max_chars:,}"
        return "contains the character U+0000" if "\0" in value else None

    return check


def _is(what: str, is_so: Callable[[Any], object], kind: Any = str) -> Check:
    return lambda value: None if isinstance(value, kind) and is_so(value) else f"is not {what}"


def _number(highest: int) -> Check:
    return _is(f"a number from 0 to {highest:,}", lambda value: 0 <= value <= highest, int)


def _bytes(lowest: int, highest: int) -> Check:
    what = f"a value of {lowest:,} to {highest:,} bytes"
    return _is(what, lambda value: lowest <= len(value) <= highest, bytes | memoryview)


def _one_of(words: Iterable[str]) -> Check:
    known = frozenset(words)
    return lambda value: None if value in known else f"is none of {', '.join(sorted(known))}"


def _items(value: Any) -> str | None:
    if why := _text(MAX_ITEMS_CHARS)(value):
        return why
    try:
        parse_items(value)
    except (InvalidInput, ValueError) as error:
        return f"cannot be stored: {error}"
    return "contains the character U+0000" if "\\u0000" in value else None


def _is_instant(value: str) -> bool:
    try:
        return bool(INSTANT.fullmatch(value) and datetime.fromisoformat(value))
    except ValueError:
        return False


_NAME: Final = _is("the name of an account or a plan", NAME.fullmatch)
_ACCOUNT_NAME: Final = _is(
    "the name of an account", re.compile(f"(?:{NAME.pattern})(?:{re.escape(ARRIVING)})?").fullmatch
)
_ACCOUNT: Final = _is("the ID of an account", ACCOUNT_ID.fullmatch)
_ID: Final = _is("an ID of 24 hexadecimal digits", RESUME_ID.fullmatch)
_KEY: Final = _is("the ID of an API key", KEY_ID.fullmatch)
_LEDGER: Final = _text(MAX_LEDGER_CHARS)
_SHA256: Final = _bytes(32, 32)
_INSTANT: Final = _is("a time such as 2026-01-31T09:00:00.000Z", _is_instant)

CHECKS: Final[dict[str, Check]] = {
    "account_id": _ACCOUNT,
    "claim_id": _ID,
    "resume_id": _ID,
    "replaced_id": _ID,
    "outcome": _one_of(FileOutcome),
    "root": _LEDGER,
    "plans.name": _NAME,
    "plans.keep_days": _is(
        f"a number of days from 1 to {MAX_KEEP_DAYS:,}",
        lambda value: 1 <= value <= MAX_KEEP_DAYS,
        int,
    ),
    "accounts.id": _ACCOUNT,
    "accounts.name": _ACCOUNT_NAME,
    "accounts.plan": _NAME,
    "accounts.on_newer": _one_of(("keep", "replace")),
    "accounts.first_month": _number(1),
    "accounts.former_names": _is(
        f"at most {MAX_FORMER_NAMES} names of accounts",
        lambda value: (
            value == ""
            or (
                len(names := value.split(" ")) <= MAX_FORMER_NAMES
                and all(map(NAME.fullmatch, names))
            )
        ),
    ),
    "deleted_accounts.id": _ACCOUNT,
    "forgotten.digest": _SHA256,
    "account_usage.last_id_us": _is(
        "a number up to 100 years ahead of the clock",
        lambda value: 0 <= value <= system_clock() + MAX_CLOCK_ERROR_US,
        int,
    ),
    "api_keys.id": _KEY,
    "api_keys.name": _text(MAX_NAME_CHARS),
    "api_keys.masked": _is("the beginning of an API key", MASKED.fullmatch),
    "api_keys.replaced_by": _KEY,
    "key_directory.key_hash": _SHA256,
    "key_directory.key_id": _KEY,
    "resumes.id": _ID,
    "resumes.title": _text(MAX_TEXT_CHARS),
    "resumes.name": _text(MAX_TEXT_CHARS),
    "resumes.label": _text(MAX_LABEL_CHARS),
    "resumes.person": _bytes(16, 16),
    "resumes.first_month": _number(1),
    "resumes.filename": _is("a safe file name such as AdaResume.pdf", is_filename),
    "documents.id": _ID,
    "documents.crc32": _number(2**32 - 1),
    "documents.document": _text(2**30),
    "idempotency.key": _text(255),
    "idempotency.body_sha256": _SHA256,
    "imported_files.name": _LEDGER,
    "imported_files.reason": _is("a reason", WORD.fullmatch),
    "imported_files.message": _LEDGER,
    "imported_files.path": _LEDGER,
    "imported_files.source": _bytes(0, MAX_SOURCE_BYTES),
    "imported_files.items": _items,
    "imported_digests.digest": _SHA256,
    "import_requests.action": _is("a request", WORD.fullmatch),
}
"""The checks by column, or by table and column if tables differ. Time columns end with `_at`."""

NUMBERS: Final[dict[type, Check]] = {
    Boolean: _number(1),
    Integer: _number(2**31 - 1),
    BigInteger: _number(2**63 - 1),
}
"""The checks of other columns, by type."""


def _check_of(column: Column[Any]) -> Check:
    if column.name.endswith("_at"):
        return _INSTANT
    check = CHECKS.get(f"{column.table}.{column.name}") or CHECKS.get(column.name)
    return check or NUMBERS[type(column.type)]


def iter_checked(table: Table, rows: Iterable[Sequence[Any]], label: str) -> Iterator[Any]:
    """Yield the rows, whose values are in the order of the table's columns, after checking them.

    Raises StoreIncompatible for the first invalid row; `label` is the store's address for messages.
    """
    names = [column.name for column in table.columns]
    checks = [_check_of(column) for column in table.columns]
    keys = [names.index(key.name) for key in table.primary_key]
    for row in rows:
        for value, check, name in zip(row, checks, names, strict=True):
            if value is not None and (why := check(value)):
                key = ", ".join(escaped(str(row[at])[:40]) for at in keys)
                raise StoreIncompatible(
                    f'{label} has a row that this service did not write: "{name}" in {table.name} '
                    f"({key}) {why}: {_shown(value)}. Nothing was stored; use another file, or look for "
                    "the cause with `resumes db check`"
                )
        yield row


def _shown(value: Any) -> str:
    """Return the value for an error message, truncated to fit on a line."""
    said = repr(value[:MAX_SHOWN_CHARS] if isinstance(value, str | bytes) else value)
    return said if len(said) <= MAX_SHOWN_CHARS else f"{said[:MAX_SHOWN_CHARS]}…"
