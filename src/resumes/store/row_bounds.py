"""The bounds of values in rows that come from another store.

Backups and copied stores are untrusted. A name of 30 MB would be in every list from then on, and an
ID from the year 6000 would leave no room above it. Documents are bounded only in size: `db check`
names damaged documents, and they must not prevent the restore of the others.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Table

from resumes.analyzer import is_filename
from resumes.analyzer.kinds import MAX_TEXT_CHARS
from resumes.clock import system_clock
from resumes.errors import InvalidInput, StoreIncompatible
from resumes.store.accounts import ARRIVING, NAME
from resumes.store.api_keys import MASKED, MAX_NAME_CHARS
from resumes.store.identifiers import ACCOUNT_ID, KEY_ID, RESUME_ID
from resumes.store.import_ledger import (
    MAX_ITEMS_CHARS,
    MAX_LEDGER_CHARS,
    SOURCE_BYTES,
    FileOutcome,
    parse_items,
)
from resumes.text import escaped

Check = Callable[[Any], str | None]
"""Returns the problem of a value that is not None; None if it is valid."""

INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)

YEAR_US: Final = 366 * 24 * 3_600 * 1_000_000

MAX_CLOCK_ERROR_US: Final = 100 * YEAR_US
"""How far the last ID of a store may be ahead of the clock: its machine's clock may have been wrong."""


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


def _form(pattern: "re.Pattern[str]", what: str) -> Check:
    def check(value: Any) -> str | None:
        is_so = isinstance(value, str) and pattern.fullmatch(value)
        return None if is_so else f"is not {what}"

    return check


def _number(highest: int) -> Check:
    def check(value: Any) -> str | None:
        is_so = isinstance(value, int) and 0 <= value <= highest
        return None if is_so else f"is not a number from 0 to {highest:,}"

    return check


def _bytes(lowest: int, highest: int) -> Check:
    def check(value: Any) -> str | None:
        is_so = isinstance(value, bytes | memoryview) and lowest <= len(value) <= highest
        return None if is_so else f"is not a value of {lowest:,} to {highest:,} bytes"

    return check


def _one_of(words: Iterable[str]) -> Check:
    known = frozenset(words)
    return lambda value: None if value in known else f"is none of {', '.join(sorted(known))}"


def _accepted_by(parse: Callable[[Any], object], max_chars: int) -> Check:
    is_text = _text(max_chars)

    def check(value: Any) -> str | None:
        if why := is_text(value):
            return why
        try:
            parse(value)
        except (InvalidInput, ValueError) as error:
            return f"cannot be stored: {error}"
        return "contains the character U+0000" if "\\u0000" in value else None

    return check


def _instant(value: Any) -> str | None:
    why = "is not a time such as 2026-01-31T09:00:00.000Z"
    if not (isinstance(value, str) and INSTANT.fullmatch(value)):
        return why
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return why
    return None


def _filename(value: Any) -> str | None:
    is_so = isinstance(value, str) and is_filename(value)
    return None if is_so else "is not a safe file name such as AdaResume.pdf"


def _last_id(value: Any) -> str | None:
    highest = system_clock() + MAX_CLOCK_ERROR_US
    is_so = isinstance(value, int) and 0 <= value <= highest
    return None if is_so else "is negative, or more than 100 years ahead of the clock"


_NAME: Final = _form(NAME, "the name of an account or a plan")
_ACCOUNT_NAME: Final = _form(
    re.compile(f"(?:{NAME.pattern})(?:{re.escape(ARRIVING)})?"), "the name of an account"
)
_ACCOUNT: Final = _form(ACCOUNT_ID, "the ID of an account")
_ID: Final = _form(RESUME_ID, "an ID of 24 hexadecimal digits")
_KEY: Final = _form(KEY_ID, "the ID of an API key")
_LEDGER: Final = _text(MAX_LEDGER_CHARS)
_OUTCOME: Final = _one_of(FileOutcome)
_SHA256: Final = _bytes(32, 32)
_INTEGER: Final = _number(2**31 - 1)
_BIG: Final = _number(2**63 - 1)

CHECKS: Final[dict[str, Check]] = {
    "plans.name": _NAME,
    "plans.max_resumes": _INTEGER,
    "plans.api_listing": _number(1),
    "accounts.id": _ACCOUNT,
    "accounts.name": _ACCOUNT_NAME,
    "accounts.plan": _NAME,
    "deleted_accounts.id": _ACCOUNT,
    "account_usage.resume_count": _INTEGER,
    "account_usage.last_id_us": _last_id,
    "api_keys.id": _KEY,
    "api_keys.name": _text(MAX_NAME_CHARS),
    "api_keys.masked": _form(MASKED, "the beginning of an API key"),
    "api_keys.replaced_by": _KEY,
    "key_directory.key_hash": _SHA256,
    "key_directory.key_id": _KEY,
    "resumes.id": _ID,
    "resumes.title": _text(MAX_TEXT_CHARS),
    "resumes.name": _text(MAX_TEXT_CHARS),
    "resumes.filename": _filename,
    "documents.id": _ID,
    "documents.crc32": _number(2**32 - 1),
    "documents.document": _text(2**30),
    "idempotency.key": _text(255),
    "idempotency.body_sha256": _SHA256,
    "idempotency.resume_id": _ID,
    "imported_files.claim_id": _ID,
    "imported_files.name": _LEDGER,
    "imported_files.outcome": _OUTCOME,
    "imported_files.reason": _form(re.compile("[a-z][a-z_]{0,63}"), "a reason"),
    "imported_files.message": _LEDGER,
    "imported_files.path": _LEDGER,
    "imported_files.byte_offset": _BIG,
    "imported_files.size_bytes": _BIG,
    "imported_files.resume_id": _ID,
    "imported_files.source": _bytes(0, SOURCE_BYTES),
    "imported_files.root": _LEDGER,
    "imported_files.items": _accepted_by(parse_items, MAX_ITEMS_CHARS),
    "imported_items.claim_id": _ID,
    "imported_items.item": _INTEGER,
    "imported_items.outcome": _OUTCOME,
    "imported_items.resume_id": _ID,
    "imported_digests.digest": _SHA256,
    "imported_digests.resume_id": _ID,
    "import_requests.claim_id": _ID,
    "import_requests.action": _form(re.compile("[a-z][a-z_]{0,63}"), "a request"),
    "import_requests.root": _LEDGER,
}
"""The checks by table and column. `account_id` and instants are the same in all tables."""


def _check_of(table: str, column: str) -> Check:
    if column == "account_id":
        return _ACCOUNT
    return _instant if column.endswith("_at") else CHECKS[f"{table}.{column}"]


def iter_checked(table: Table, rows: Iterable[Sequence[Any]], label: str) -> Iterator[Any]:
    """Yield the rows of the store at `label`, in the order of the table's columns. Raises
    StoreIncompatible for the first row that exceeds these bounds."""
    names = [column.name for column in table.columns]
    checks = [_check_of(table.name, name) for name in names]
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
    """Return the value for an error message, cut to fit on a line."""
    said = repr(value[:MAX_SHOWN_CHARS] if isinstance(value, str | bytes) else value)
    return said if len(said) <= MAX_SHOWN_CHARS else f"{said[:MAX_SHOWN_CHARS]}…"
