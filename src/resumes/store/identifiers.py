"""IDs of resumes, accounts and keys. They are random, never reused, and safe in paths and URLs."""

import re
import secrets
from collections.abc import Iterator

RESUME_ID = re.compile(r"[0-9a-f]{24}")
"""The form of a resume ID, and therefore of a cursor (docs/api.md, List)."""

MAX_ID = "~"
"""A text that sorts after every ID."""

POSITION_DIGITS = 16
"""The number of leading digits in the ID of a resume or a claim that represent its time."""

ACCOUNT_ID = re.compile(r"[0-9a-f]{16}")
"""The form of an account ID."""

KEY_ID = re.compile(r"key_[0-9a-f]{12}")
"""The form of an API key ID."""


def resume_id(position_us: int, tail: str | None = None) -> str:
    """Return the ID for a position: 16 hexadecimal digits of microseconds, then 8 random digits.

    IDs that are compared as bytes are in the order of their positions. `tail` contains the random
    digits if the caller has generated many at once (`tails`).
    """
    return f"{position_us:0{POSITION_DIGITS}x}{tail or secrets.token_hex(4)}"


def position_of(resume_id: str) -> int:
    """Return the position in the ID of a resume or a claim, in microseconds."""
    return int(resume_id[:POSITION_DIGITS], 16)


def tails(count: int) -> Iterator[str]:
    """Return random ends of IDs, generated together because each generation is a system call."""
    drawn = secrets.token_hex(4 * count)
    return (drawn[start : start + 8] for start in range(0, len(drawn), 8))


def account_id() -> str:
    """Return a new account ID: 16 random hexadecimal digits, never reused (pitfalls S14)."""
    return secrets.token_hex(8)


def key_id() -> str:
    """Return a new API key ID: `key_` and 12 random hexadecimal digits. The ID is not secret."""
    return f"key_{secrets.token_hex(6)}"
