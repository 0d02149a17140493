"""Ids of resumes, accounts and keys: random, never reused, safe in a path, a URL and a terminal."""

import re
import secrets
from collections.abc import Iterator

RESUME_ID = re.compile(r"[0-9a-f]{24}")
"""The form of a resume id, and so of a cursor (docs/api.md, List)."""

MAX_ID = "~"
"""Sorts after every id."""

POSITION_DIGITS = 16
"""The number of leading digits of a resume's or a claim's id that are its time."""

ACCOUNT_ID = re.compile(r"[0-9a-f]{16}")
"""The form of an account's id."""

KEY_ID = re.compile(r"key_[0-9a-f]{12}")
"""The form of an API key's id."""


def resume_id(position_us: int, tail: str | None = None) -> str:
    """Return the id at a position of its account: 16 hex digits of microseconds, then 8 random.

    Compared as bytes, ids of one account are in the order of their positions. `tail` is the random
    end, if the caller has drawn many at once (`tails`).
    """
    return f"{position_us:0{POSITION_DIGITS}x}{tail or secrets.token_hex(4)}"


def position_of(resume_id: str) -> int:
    """Return the position in the ID of a resume or a claim, in microseconds."""
    return int(resume_id[:POSITION_DIGITS], 16)


def tails(count: int) -> Iterator[str]:
    """Return random ends of ids, drawn together: each draw is a system call."""
    drawn = secrets.token_hex(4 * count)
    return (drawn[start : start + 8] for start in range(0, len(drawn), 8))


def account_id() -> str:
    """Return a new account id: 16 random hex digits. Not reused when a name is (pitfalls S14)."""
    return secrets.token_hex(8)


def key_id() -> str:
    """Return a new API key id: `key_` and 12 random hex digits. Public, unlike the key."""
    return f"key_{secrets.token_hex(6)}"
