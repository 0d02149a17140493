"""Parse documents without problems and warnings on a fast path.

msgspec decodes documents into structs that are created from the table in `schema.py`. A document
that it rejects, or that might cause a warning, takes the slow path in `resume.py`, which composes
all messages. A document that is accepted here has neither problems nor warnings, and the slow path
would return the same `Names` for it.
"""

import re
from typing import Final

import msgspec

from resumes.analyzer.schema import DOCUMENT
from resumes.analyzer.view import Names

MAX_BYTES: Final = 64 * 1024
"""A document of at most this size cannot have too many values, fields or warnings."""

# A text that is only white space causes a warning. It begins with a space, an escaped white space
# character, or one beyond ASCII; all texts that begin so take the slow path.
_MAYBE_BLANK: Final = re.compile(
    # Put assertions after the first byte: they are slow, and there are many quotation marks.
    rb'"[ \\\xc2\xe1\xe2\xe3](?<!\\".)'
    rb"(?:(?<= )|(?<=\\)(?:[tnrf]|u(?:00(?:[01]|20|85|[aA]0)|1680|20|3000))|(?<=\xc2)[\x85\xa0]"
    rb"|(?<=\xe1)\x9a\x80|(?<=\xe2)(?:\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)|(?<=\xe3)\x80\x80)"
)
# A month 0, which causes a warning if months count from 1, or an escaped letter, which may be a
# part of the field name.
_MONTH_0: Final = re.compile(rb'Month"[ \t\r\n]*:[ \t\r\n]*-?0|\\u00[4-7]')
# U+0000 is rejected; an escaped colon would hide a duplicate key.
_HIDING: Final = re.compile(rb"\\u00(?:00|3[aA])")


def parse_plain(body: bytes, first_month: int | None = None) -> tuple[Names, bytes] | None:
    """Return the names and the JSON text on one line, or None if the slow path is needed.

    `first_month` has the same meaning as in `Format`.
    """
    if len(body) > MAX_BYTES:
        return None
    try:
        resume = _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    text = without_line_breaks(body)  # search this text: it can be shorter by a third
    if first_month and _MONTH_0.search(text):
        return None
    if _MAYBE_BLANK.search(text) or (b"\\" in text and _HIDING.search(text)):
        return None
    # If the text has more colons than the structs, it contains duplicate keys, which structs drop.
    if text.count(b":") != _ENCODER.encode(resume).count(b":"):
        return None
    header = resume.header
    return Names(resume.title or None, header.name or None, header.email), text


def without_line_breaks(body: bytes) -> bytes:
    """Remove all white space between the tokens of JSON text if it contains line breaks."""
    has_breaks = b"\n" in body or b"\r" in body
    return msgspec.json.format(body, indent=-1) if has_breaks else body


_DECODER: Final = msgspec.json.Decoder(DOCUMENT.plain_type())
_ENCODER: Final = msgspec.json.Encoder()
