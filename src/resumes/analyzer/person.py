"""Identify the person of a resume: all resumes of a person are versions of each other."""

from hashlib import blake2b
from typing import Final

import msgspec

from resumes.text import folded

# The table contains all of ASCII, since `translate` is slow for missing characters.
_PUNCTUATION: Final = {code: chr(code) for code in range(128)} | str.maketrans(
    dict.fromkeys(",;.'\u2019()-", " ")
)


def folded_email(email: str | None) -> str:
    """Return the form in which email addresses are compared; it is empty without an address."""
    return folded(email).strip() if email else ""


def person_of(email: str | None, name: str | None) -> bytes | None:
    """Return a 16-byte digest of the email address and the name.

    It ignores case and accents, and in the name also punctuation and the order of the words, so
    `Lovelace, Ada` equals `Ada Lovelace`. Return None without an email address, since many people
    have the same name.
    """
    address = folded_email(email)
    if not address:
        return None
    words = sorted(folded(name).translate(_PUNCTUATION).split()) if name else ()
    return blake2b("\n".join((address, *words)).encode(), digest_size=16).digest()


class _Header(msgspec.Struct):
    email: str | None = None


class _Document(msgspec.Struct):
    header: _Header


_decode: Final = msgspec.json.Decoder(_Document).decode


def find_person(document: str | bytes, name: str | None) -> bytes | None:
    """Return `person_of` for a stored resume, or None if it has no email address or is damaged."""
    return person_of(find_email(document), name)


def find_email(document: str | bytes) -> str | None:
    """Return the email address of a stored resume, or None if it has none or is damaged."""
    try:
        return _decode(document).header.email
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
