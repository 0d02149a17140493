"""Whose a resume is: resumes of one person are versions of each other."""

from hashlib import blake2b
from typing import Final

import msgspec

from resumes.text import folded

# With all of ASCII, since `translate` is slow for each character that is missing.
_PUNCTUATION: Final = {code: chr(code) for code in range(128)} | str.maketrans(
    dict.fromkeys(",;.'\u2019()-", " ")
)


def folded_email(email: str | None) -> str:
    """Return the address as addresses are compared; empty if there is none."""
    return folded(email).strip() if email else ""


def person_of(email: str | None, name: str | None) -> bytes | None:
    """Return a digest of 16 bytes of the email address and the words of the name, in any order.

    Case and accents do not count, nor does punctuation in the name: `Lovelace, Ada` is `Ada Lovelace`.
    None without an email address: many people have the same name.
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
    """Return the person of a stored resume with this name; None if it has none, or is damaged."""
    return person_of(find_email(document), name)


def find_email(document: str | bytes) -> str | None:
    """Return the email address of a stored resume; None if it has none, or is damaged."""
    try:
        return _decode(document).header.email
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
