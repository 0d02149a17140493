"""What of a resume is searched, and when it is found: folded words, and short pieces of them.

A resume's words are its title as a list shows it, its name and its e-mail address, without case
and accents. A term of a search is found in them anywhere if it has three characters or more, and
where a word begins if it has fewer; the index holds the pieces by which such terms can be looked up.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from sqlalchemy import Connection

from resumes.analyzer import list_title

FIELD_CHARACTERS: Final = 500
"""So much of each field is searched; a title may be 20,000 characters long."""

TEXT_CHARACTERS: Final = 200
MOST_TERMS: Final = 10

PIECE: Final = 3
"""Characters of the pieces that a longer term is looked up by."""

SHORT_TERM: Final = 8
"""Characters of terms that are looked up by all their pieces."""

# Where what stands before is neither letter nor digit; underscores are none.
_STARTS = re.compile(r"(?<![^\W_])(?=(\S\S?))")

# Letters that Unicode does not take apart into one of ASCII and a mark.
_PLAIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "\u0131": "i", "æ": "ae", "œ": "oe"}
)


def folded(text: str) -> str:
    """The text without case and accents, compatible forms made one: `ŁÓDŹ` is `lodz`."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in plain if not unicodedata.combining(char)).translate(_PLAIN)


def searched_words(title: str | None, name: str | None, email: str | None) -> str:
    """The words of a resume, folded, each once, with one blank between them.

    Only the first 500 characters of each field count.
    """
    fields = (list_title(title, name), name or "", email or "")
    words = " ".join(field[:FIELD_CHARACTERS] for field in fields)
    return " ".join(dict.fromkeys(folded(words).split()))


def parse_terms(text: str) -> list[str]:
    """The words to look for, folded, each once; empty for a blank text.

    Of the text the first 200 characters count, and of those the first 10 words.
    """
    return list(dict.fromkeys(folded(text[:TEXT_CHARACTERS]).split()))[:MOST_TERMS]


def holds(words: str, terms: Iterable[str]) -> bool:
    """Whether the words of a resume hold all the terms."""
    return all(term in words if len(term) >= PIECE else _begins(words, term) for term in terms)


def _begins(words: str, term: str) -> bool:
    """Whether a word, or what follows a mark inside of one, begins with the term."""
    at = words.find(term)
    while at > 0 and words[at - 1].isalnum():
        at = words.find(term, at + 1)
    return at >= 0


def pieces_of_words(words: str) -> set[str]:
    """All that the words can be found by: three characters in a row of a word, and the first one
    and two where a word begins."""
    pieces = set(_STARTS.findall(words))
    pieces.update([piece[0] for piece in pieces])
    for word in words.split(" "):
        pieces.update([word[at : at + PIECE] for at in range(len(word) - PIECE + 1)])
    return pieces


def pieces_of_terms(terms: Iterable[str]) -> set[str]:
    """Pieces that words which hold the terms have; others may have them too.

    All of a short term: `comple` has but one that `example.com` has not. Of a long one every
    other and the last: together they have all its characters, which are many, and each piece
    costs a walk through all that have it.
    """
    pieces = set()
    for term in terms:
        last = max(0, len(term) - PIECE)
        step = 1 if len(term) <= SHORT_TERM else 2
        pieces.update([term[at : at + PIECE] for at in (*range(0, last, step), last)])
    return pieces


class Wanted(NamedTuple):
    """Entries of an account from number `first` to `last` that have all the pieces.

    `number` is the account's own, which engines may put before a piece.
    """

    account_id: str
    number: int
    pieces: Collection[str]
    first: int
    last: int


class Pieces(Protocol):
    """The pieces of entries, given by their number and words. All inside a transaction."""

    def add(
        self,
        connection: Connection,
        account_id: str,
        number: int,
        entries: Iterable[tuple[int, str]],
    ) -> None:
        """The entries are found by the pieces of their words."""

    def remove(
        self,
        connection: Connection,
        account_id: str,
        number: int,
        entries: Sequence[tuple[int, str]],
    ) -> None:
        """They no longer are."""

    def begin(self, connection: Connection, wanted: Wanted) -> Any:
        """The entries that have the pieces, and perhaps some that have not: an iterator to be
        closed, over rows of words and the columns of a list's entry, in the order of entries."""
