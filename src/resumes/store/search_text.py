"""What of a resume is searched, and when it is found: folded words, and the trigrams of them.

A resume's words are its title as a list shows it, its name and its e-mail address, without case
and accents. A term of a search is found in them anywhere if it has three characters or more, and
where a word begins if it has fewer.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from resumes.analyzer import list_title

MAX_FIELD_CHARS: Final = 500
"""So much of each field is searched; a title may be 20,000 characters long."""

MAX_TEXT_CHARS: Final = 200
MAX_TERMS: Final = 10

TRIGRAM_CHARS: Final = 3

SHORT_TERM_CHARS: Final = 8
"""Terms up to this length are looked up by all their trigrams."""

# Where what stands before is neither letter nor digit; underscores are none.
_BEGINNINGS = re.compile(r"(?<![^\W_])(?=(\S\S?))")

# Letters that Unicode does not take apart into one of ASCII and a mark.
_PLAIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "\u0131": "i", "æ": "ae", "œ": "oe"}
)


def folded(text: str) -> str:
    """Return the text without case and accents, compatible forms made one: `ŁÓDŹ` is `lodz`."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in plain if not unicodedata.combining(char)).translate(_PLAIN)


def searched_words(title: str | None, name: str | None, email: str | None) -> str:
    """Return the words of a resume, folded, each once, with one blank between them.

    Only the first 500 characters of each field count.
    """
    fields = (list_title(title, name), name or "", email or "")
    words = " ".join(field[:MAX_FIELD_CHARS] for field in fields)
    return " ".join(dict.fromkeys(folded(words).split()))


def parse_terms(text: str) -> list[str]:
    """Return the words to look for, folded, each once; none for a blank text.

    Of the text the first 200 characters count, and of those the first 10 words.
    """
    return list(dict.fromkeys(folded(text[:MAX_TEXT_CHARS]).split()))[:MAX_TERMS]


def holds(words: str, terms: Iterable[str]) -> bool:
    """Return whether the words of a resume hold all the terms."""
    return all(
        term in words if len(term) >= TRIGRAM_CHARS else _begins(words, term) for term in terms
    )


def _begins(words: str, term: str) -> bool:
    """Return whether a word, or what follows a mark inside of one, begins with the term."""
    at = words.find(term)
    while at > 0 and words[at - 1].isalnum():
        at = words.find(term, at + 1)
    return at >= 0


def trigrams_of_words(words: str) -> set[str]:
    """Return what the words are found by: three characters in a row of a word, and where a word
    begins the first one and two, by which shorter terms are looked up."""
    trigrams = set(_BEGINNINGS.findall(words))
    trigrams.update([beginning[0] for beginning in trigrams])
    for word in words.split(" "):
        trigrams.update([word[at : at + 3] for at in range(len(word) - 2)])
    return trigrams


def trigrams_of_terms(terms: Iterable[str]) -> set[str]:
    """Return trigrams that all words have which hold the terms; other words may have them too.

    All of a short term: `comple` has but one that `example.com` has not. Of a long one every
    other and the last: together they have all its characters, which are many, and each trigram
    costs a walk through all entries that have it.
    """
    trigrams = set()
    for term in terms:
        last = max(0, len(term) - TRIGRAM_CHARS)
        step = 1 if len(term) <= SHORT_TERM_CHARS else 2
        trigrams.update([term[at : at + TRIGRAM_CHARS] for at in (*range(0, last, step), last)])
    return trigrams
