"""What the fields of an account's file may hold: one table, by kind of row.

Such a file may come from a stranger, and whoever reads the store later relies on what is told here.
It is what a store of ours may have written, of whatever version: so a reason that is not known here
is taken, and a text may hold any character but U+0000, which PostgreSQL does not keep.
"""

import re
from collections.abc import Callable, Container, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from resumes.analyzer import is_filename
from resumes.store.account_file import Kind
from resumes.store.accounts import NAME
from resumes.store.identifiers import KEY_ID, LATEST_US, RESUME_ID
from resumes.store.items import parse_items
from resumes.store.keys import MASKED, MAX_NAME_CHARS
from resumes.store.ledger import SOURCE_BYTES, FileOutcome

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
