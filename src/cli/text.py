"""Text from data on its way to a terminal: made harmless, measured, cut."""

import unicodedata

JOINERS = "\u200c\u200d"
"""Invisible, and part of how Hindi, Persian and many emoji are written."""

ELLIPSIS = "…"


def safe_text(text: str) -> str:
    """The text with everything that could drive a terminal or mislead the eye escaped.

    That is control characters (line breaks too), escape sequences, bidirectional controls, lone
    surrogates and unassigned characters; letters of every script, blanks and joiners stay.
    """
    if text.isprintable():
        return text
    return "".join(char if _is_harmless(char) else _escape(char) for char in text)


def _is_harmless(char: str) -> bool:
    # isprintable() also says no to blanks such as the no-break space of French.
    return char.isprintable() or char in JOINERS or unicodedata.category(char) == "Zs"


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def safe_json(text: str) -> str:
    """JSON text with every character that `safe_text` escapes written as `\\uXXXX`.

    Line breaks stay: in JSON they stand between values only.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char == "\n" or _is_harmless(char) else _escape_json(char) for char in text
    )


def _escape_json(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def width(text: str) -> int:
    """How many cells the text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, cells: int) -> str:
    """The text in at most `cells` cells, its end replaced by an ellipsis where it is longer."""
    if width(text) <= cells:
        return text
    kept, used = "", 0
    for char in text:
        used += _char_width(char)
        if used > cells - 1:
            break
        kept += char
    return kept.rstrip() + ELLIPSIS


def pad(text: str, cells: int, *, to_the_right: bool = False) -> str:
    """The text filled with blanks to `cells` cells, at its end or, `to_the_right`, its start."""
    blanks = " " * max(0, cells - width(text))
    return blanks + text if to_the_right else text + blanks
