r"""Untrusted text: which characters are harmless, and how others are escaped.

A resume, a file's name and a key's name end up in terminals, logs, reports and messages. There a
control character drives the terminal, a direction control makes text look like other text, an
invisible one makes two names look the same, and a surrogate cannot be encoded. Only this module
defines what is harmless; a user interface only chooses the replacement of other characters.

Text without case and accents, for a search; and numbers in words: counts and sizes.
"""

import locale
import unicodedata
from collections.abc import Callable
from typing import Final

JOINERS = "\u200c\u200d"
"""Invisible characters that are part of how Hindi, Persian and many emoji are written."""


def is_harmless(text: str) -> bool:
    """Return whether every character of the text only draws itself.

    Letters of all scripts, marks, digits, symbols, blanks and the two joiners are harmless.
    Controls (line ends and tabs too), soft hyphens, zero-width and direction marks, tags,
    surrogates, private and unassigned characters are not.
    """
    return text.isprintable() or all(map(_is_harmless, text))


def _is_harmless(char: str) -> bool:
    # isprintable() is also false for blanks such as the French no-break space.
    return char.isprintable() or char in JOINERS or unicodedata.category(char) == "Zs"


def replaced(text: str, by: Callable[[str], str]) -> str:
    """Return the text with `by(char)` in place of each character that is not harmless."""
    if text.isprintable():
        return text
    return "".join(char if _is_harmless(char) else by(char) for char in text)


def escaped(text: str) -> str:
    r"""Return the text with other characters escaped as in source code: `\n`, `\x1b`, `\u202e`.

    Backslashes stay as they are, since the result is not to be parsed.
    """
    return replaced(text, lambda char: char.encode("unicode_escape").decode("ascii"))


def escaped_json(text: str) -> str:
    r"""Return the JSON text with characters that are not harmless as `\uXXXX`, which is the same JSON.

    Line ends stay: in JSON they are only between values.
    """
    return replaced(text, escaped_in_json)


def escaped_in_json(char: str) -> str:
    r"""Return the character as `\uXXXX`, a line end as it is."""
    if char == "\n":
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


_INVISIBLE: Final = "\u00ad\u200b\u200e\u200f\u2060\ufeff" + JOINERS

# Letters that Unicode does not decompose into an ASCII letter and a mark; and invisible characters.
_PLAIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "\u0131": "i", "æ": "ae", "œ": "oe"}
    | dict.fromkeys(_INVISIBLE)
)


def folded(text: str) -> str:
    """Return the text without case, accents and soft hyphens, compatible forms made one: `ŁÓDŹ` is
    `lodz`."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in plain if not unicodedata.combining(char)).translate(_PLAIN)


def name_order(name: str) -> str:
    """Return the sort key of a name: `Élodie` is between `Elena` and `Emil`.

    The alphabet is that of the process's locale (LC_COLLATE), so that `Åsa` is last in Swedish; in one
    without an alphabet (C, POSIX) it is Unicode's order, without case and accents.
    """
    alphabet = locale.setlocale(locale.LC_COLLATE).partition(".")[0]
    return folded(name) if alphabet in ("C", "POSIX") else locale.strxfrm(name)


_AFTER_NAMES: Final = frozenset({"jr", "sr", "ii", "iii", "iv", "phd", "md", "mba"})
"""Degrees and the like, after a name."""


def family_name_order(name: str) -> tuple[str, str]:
    """Return the sort key of a name by its family name.

    It is the last word, without degrees and `Jr.`; the text before a comma; or, in Chinese, Japanese and
    Korean writing, the first word.
    """
    words = name.split()
    while len(words) > 1 and folded(words[-1]).replace(".", "") in _AFTER_NAMES:
        words.pop()
    family, comma, given = " ".join(words).rstrip(",").partition(",")
    if not comma and family[:1] >= "\u2e80":
        family, _, given = family.partition(" ")
    elif not comma:
        given, _, family = family.rpartition(" ")
    return name_order(family.strip()), name_order(given.strip())


def counted(count: int, noun: str) -> str:
    """Return `1 resume`, `2 resumes`, `1,000 resumes`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def in_bytes(count: int) -> str:
    """Return `512 B`, `1.5 KiB`, `12 MiB`, `1,024 GiB`: the largest unit of which there is one."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        amount = count / 1_024**power
        if amount >= 1:
            return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:,.0f} {unit}"
    return f"{count} B"
