r"""Escape untrusted text, fold text for searches, and format counts and sizes.

Texts of resumes and names of files and keys are shown in terminals, logs, reports and messages.
There, a control character can control the terminal, a direction control can make text look like
other text, an invisible character can make two names look the same, and a surrogate cannot be
encoded. Only this module defines which characters are harmless; user interfaces choose the
replacement for the others.
"""

import locale
import os
import shlex
import string
import unicodedata
from collections.abc import Callable
from typing import Final

JOINERS = "\u200c\u200d"
"""Invisible characters that Hindi, Persian and many emoji need."""


def is_harmless(text: str) -> bool:
    """Return whether every character of the text displays as itself and has no other effect.

    Letters of all scripts, marks, digits, symbols, spaces and the two joiners are harmless. Control
    characters (including line breaks and tabs), soft hyphens, zero-width and direction marks, tags,
    surrogates, private and unassigned characters are not.
    """
    return text.isprintable() or all(map(_is_harmless, text))


def _is_harmless(char: str) -> bool:
    # isprintable() is also false for spaces such as the French no-break space.
    return char.isprintable() or char in JOINERS or unicodedata.category(char) == "Zs"


def replaced(text: str, by: Callable[[str], str]) -> str:
    """Replace each character that is not harmless with `by(char)`."""
    if text.isprintable():
        return text
    return "".join(char if _is_harmless(char) else by(char) for char in text)


def escaped(text: str) -> str:
    r"""Escape characters that are not harmless as in source code: `\n`, `\x1b`, `\u202e`.

    Backslashes are not escaped, since the result is not meant to be parsed.
    """
    return replaced(text, lambda char: char.encode("unicode_escape").decode("ascii"))


def escaped_json(text: str) -> str:
    r"""Escape characters that are not harmless in JSON text as `\uXXXX`, which is equivalent JSON.

    Line breaks are kept: in JSON text, they occur only between values.
    """
    return replaced(text, escaped_in_json)


def escaped_in_json(char: str) -> str:
    r"""Return the character as `\uXXXX`, or a line break unchanged."""
    if char == "\n":
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


_INVISIBLE: Final = "\u00ad\u200b\u200e\u200f\u2060\ufeff" + JOINERS

# Letters that Unicode does not decompose into an ASCII letter and a mark; invisible characters.
_PLAIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "\u0131": "i", "æ": "ae", "œ": "oe"}
    | dict.fromkeys(_INVISIBLE)
)


def folded(text: str) -> str:
    """Remove case, accents and soft hyphens, and unify compatible forms: `ŁÓDŹ` becomes `lodz`."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in plain if not unicodedata.combining(char)).translate(_PLAIN)


def name_order(name: str) -> str:
    """Return the sort key of a name: `Élodie` is between `Elena` and `Emil`.

    The process's locale (LC_COLLATE) determines the order, so that `Åsa` is last in Swedish. In the
    locales C and POSIX, the order is Unicode's without case and accents.
    """
    alphabet = locale.setlocale(locale.LC_COLLATE).partition(".")[0]
    return folded(name) if alphabet in ("C", "POSIX") else locale.strxfrm(name)


_AFTER_NAMES: Final = frozenset({"jr", "sr", "ii", "iii", "iv", "phd", "md", "mba"})
"""Suffixes after a name, such as degrees."""


def family_name_order(name: str) -> tuple[str, str]:
    """Return the sort key of a name by its family name.

    The family name is the text before a comma or, in Chinese, Japanese and Korean writing, the
    first word. Otherwise, it is the last word, without suffixes such as degrees and `Jr.`.
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


def shell_line(*words: str) -> str:
    r"""Return a command for a shell: `resumes --home '/my home'`.

    Words with bytes that are not UTF-8 or with control characters are quoted so that they can be
    pasted into bash and zsh: `$'/home/h\xe9'`.
    """
    return " ".join(map(_quoted, words))


_BARE: Final = frozenset(f"{string.ascii_letters}{string.digits} /._-".encode())


def _quoted(word: str) -> str:
    if is_harmless(word):
        return shlex.quote(word)
    parts = (chr(byte) if byte in _BARE else f"\\x{byte:02x}" for byte in os.fsencode(word))
    return f"$'{''.join(parts)}'"


def counted(count: int, noun: str) -> str:
    """Format a count with its noun: `1 resume`, `2 resumes`, `1,000 resumes`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def in_bytes(count: int) -> str:
    """Format a size in the largest possible unit: `512 B`, `1.5 KiB`, `12 MiB`, `1,024 GiB`."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        amount = count / 1_024**power
        if amount >= 1:
            return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:,.0f} {unit}"
    return f"{count} B"
