"""The fast path, for documents without problems or warnings.

msgspec decodes into structs that are made from the table in `schema.py`. A document that it refuses,
or that might have a warning, takes the slow path through `resume.py`, which alone composes messages.
A document that is accepted here has no problem and no warning, and the slow path would find the same
`Names` in it.
"""

import re
from typing import Final

import msgspec

from resumes.analyzer.schema import DOCUMENT
from resumes.analyzer.view import Names

MAX_BYTES: Final = 64 * 1024
"""A document of this size cannot have too many values, fields or warnings."""

# A text of only white space, which causes a warning, begins with a blank: a space, an escaped blank,
# or one beyond ASCII. Other texts that begin with a blank take the slow path as well.
_MAYBE_BLANK: Final = re.compile(
    # Assertions come after the first byte, since they are slow and there are many quotation marks.
    rb'"[ \\\xc2\xe1\xe2\xe3](?<!\\".)'
    rb"(?:(?<= )|(?<=\\)(?:[tnrf]|u(?:00(?:[01]|20|85|[aA]0)|1680|20|3000))|(?<=\xc2)[\x85\xa0]"
    rb"|(?<=\xe1)\x9a\x80|(?<=\xe2)(?:\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)|(?<=\xe3)\x80\x80)"
)
# A month 0 where they count from 1, and letters that are escaped, as they may be in the name of a month.
_MONTH_0: Final = re.compile(rb'Month"[ \t\r\n]*:[ \t\r\n]*-?0|\\u00[4-7]')
# U+0000 is refused; an escaped colon would hide a duplicate key.
_HIDING: Final = re.compile(rb"\\u00(?:00|3[aA])")


def parse_plain(body: bytes, first_month: int | None = None) -> Names | None:
    """Return the title, name and email address of the resume in the bytes; None if it has to take the slow path.

    `first_month` is as in `Format`.
    """
    if first_month and _MONTH_0.search(body):
        return None
    if len(body) > MAX_BYTES or _MAYBE_BLANK.search(body):
        return None
    if b"\\" in body and _HIDING.search(body):
        return None
    try:
        resume = _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    # The structs keep only the last of duplicate keys, and so have fewer colons.
    if body.count(b":") != _ENCODER.encode(resume).count(b":"):
        return None
    header = resume.header
    return Names(resume.title or None, header.name or None, header.email)


def without_line_breaks(body: bytes) -> bytes:
    """Return JSON text on one line: without white space between tokens, if it has line breaks."""
    has_breaks = b"\n" in body or b"\r" in body
    return msgspec.json.format(body, indent=-1) if has_breaks else body


_DECODER: Final = msgspec.json.Decoder(DOCUMENT.plain_type())
_ENCODER: Final = msgspec.json.Encoder()
