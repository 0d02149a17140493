"""Queries: what people type, as terms that an index looks up, and that a text proves.

A query is words, all of which must be found, `"a phrase"`, `-word`, prefixes such as `skill:` before a
word or a phrase, and `word*` for beginnings. Anything else is searched as words: nothing is an error.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Final

from resumes.search.texts import GROUPS, LABEL, PREFIXES, group_texts
from resumes.search.words import (
    BY_BEGINNINGS,
    CHUNK,
    ENDS,
    IN_RUN,
    JOINER,
    JOINERS,
    LETTER,
    MAX_BEGINNING_CHARS,
    MAX_WORD_CHARS,
    SIGN,
    WITHOUT_ENDS,
    fold,
    folded_groups,
    letters_of,
    loses_sign,
    parts_of,
    without_joiners,
)

MAX_QUERY_CHARS: Final = 500
"""The maximum length of a query; the rest does not count."""

MAX_TERMS: Final = 20
"""The maximum number of terms of a query; further ones do not count."""

MAX_REPEATS: Final = 4
"""How often a query may have the same two words in a row: a phrase that repeats itself is compared with a
text that does, too, from each word on."""

MIN_BEGINNING_CHARS: Final = 4
"""The shortest beginning that is looked up in all groups."""

MAX_LOOKUPS: Final = 8
"""How many tokens of a phrase are looked up; the text proves the rest."""


class Kind(StrEnum):
    """What the last word of a term finds."""

    WORD = "word"
    """The word; in name, title and email address also longer words that begin with it."""

    BEGINNING = "beginning"
    """All words that begin with it."""

    PHRASE = "phrase"
    """The word."""


@dataclass(frozen=True, slots=True)
class Term:
    """A word, or several that follow each other in one text, to be found, or not to be found.

    A resume may have the term if its tokens include all those of one of the `rows`, or one that begins
    with one of the `beginnings`; otherwise it does not have it. If `needs_proof`, one that may have it
    may still not have it, and `Query.matches` decides. So an engine looks up

    - a term: `rows[0]` all present OR `rows[1]` all present OR … OR a token that begins with
      `beginnings[0]` OR …;
    - a negative term: NOT that; but nothing if it needs proof, since a resume that may have it can
      still be one to find.
    """

    groups: str
    """The letters of the groups that are searched."""

    readings: tuple[tuple[str, ...], ...]
    """The words, folded, with compounds as one word, and with compounds divided. A run of Chinese or
    Japanese characters is one word."""

    kind: Kind
    is_negative: bool

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Tokens, with the letters of their groups; each row has at most 8, all of one group."""
        rows: dict[tuple[str, ...], None] = {}
        for group in self.groups:
            for words in self.readings:
                lists = self.kind is Kind.BEGINNING and group not in BY_BEGINNINGS
                tokens = sorted(_tokens(words[:-1] if lists else words, group))
                # Long words are rare ones.
                rows[tuple(sorted(tokens, key=len, reverse=True)[:MAX_LOOKUPS])] = None
        return tuple(filter(None, rows))

    @property
    def beginnings(self) -> tuple[str, ...]:
        """Beginnings of tokens, of five characters or more, with the letters of their groups. In those of
        `BY_BEGINNINGS` they are tokens, and in `rows`."""
        words = self.readings[0]
        if self.kind is not Kind.BEGINNING or len(words) > 1:
            return ()
        return tuple(group + words[0] for group in self.groups if group not in BY_BEGINNINGS)

    @property
    def needs_proof(self) -> bool:
        """Whether a resume that may have the term may still not have it."""
        words = self.readings[0]
        if len(words) > 1 or len(self.readings) > 1:
            return True
        if words[0].startswith(IN_RUN):
            return len(_chars(words[0])) > 2
        has_beginnings = not set(BY_BEGINNINGS).isdisjoint(self.groups)
        return has_beginnings and (self.kind is Kind.PHRASE or len(words[0]) > MAX_BEGINNING_CHARS)

    def is_in(self, group: str, text: str) -> bool:
        """Return whether the folded texts of a group have the term, negative or not."""
        return any(
            self.pattern(words, group).search(form)
            for words in self.readings
            if all(word.lstrip(".") in letters_of(text) for word in words)
            for form in {text, without_joiners(text)}
        )

    def pattern(self, words: tuple[str, ...], group: str | None) -> re.Pattern[str]:
        """Return what finds the words of a reading in a folded text of the group."""
        finds_longer = self.kind is Kind.BEGINNING or (
            self.kind is Kind.WORD and group is not None and group in BY_BEGINNINGS
        )
        return _pattern(words, finds_longer)


def _tokens(words: tuple[str, ...], group: str) -> set[str]:
    """Return tokens that a group with the words has."""
    end = MAX_BEGINNING_CHARS if group in BY_BEGINNINGS else None
    tokens = set()
    for word in words:
        chars = _chars(word)
        pairs = [group + pair for pair in map("".join, pairwise(chars))]
        tokens.update(pairs or [group + (chars or word[:end])])
    return tokens


def _chars(run: str) -> str:
    """Return the characters of a Chinese or Japanese run; of any other word, none."""
    return run[1::3] if run.startswith(IN_RUN) else ""


@dataclass(frozen=True, slots=True)
class Query:
    """Terms, all of which must be found, except for the negative ones, none of which may be.

    The resumes that an index finds for `looked_up` are all those that match, if `is_exact`; otherwise
    `matches` decides on each one. If all terms that are looked up are negative, an index that only
    excludes from what it has found looks for `EVERY_RESUME`, too.
    """

    terms: tuple[Term, ...]
    is_cut: bool = False
    """Whether the text was too long, so that its end does not count, or it repeats itself too often."""

    @property
    def looked_up(self) -> tuple[Term, ...]:
        """The terms that the index decides on."""
        return tuple(term for term in self.terms if not (term.is_negative and term.needs_proof))

    @property
    def is_exact(self) -> bool:
        """Whether no term needs proof."""
        return not any(term.needs_proof for term in self.terms)

    def matches(
        self,
        document: str | bytes,
        *,
        title: str | None,
        name: str | None,
        label: str | None = None,
    ) -> bool:
        """Return whether a stored resume has all the terms, and none of the negative ones.

        Title and name are the columns of `resumes`. Raises StoreIncompatible for a damaged document.
        """
        texts = folded_groups(group_texts(document, title=title, name=name, label=label))
        return all(
            any(term.is_in(group, texts[group]) for group in term.groups) is not term.is_negative
            for term in self.terms
        )


# Parsing

_ALIKE: Final = str.maketrans("\u201c\u201d\u201e\u201f\uff02\uff1a", '""""":')
"""Quotes and colons of other keyboards."""

_PREFIX: Final = f"(?ai:{'|'.join(PREFIXES)}):"
_ITEM: Final = re.compile(
    r"(?P<minus>(?<!\S)-(?=[^\s-]))?"
    rf"(?:(?P<prefix>{_PREFIX})(?:\s+(?!-?{_PREFIX}))?(?P<minus2>-(?=[^\s-]))?)?"
    r'(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))'
)
_AT: Final = re.compile("[@\ufe6b\uff20]")


def parse_query(text: str, *, is_typing: bool = False) -> Query:
    """Return the query in a text; without terms if there is nothing to search for in it.

    Only its first 500 characters count, and the first 20 terms of them. `word*` finds words that begin
    with it, if it has four letters or more; a shorter one is searched as a word, which in name, title
    and email address finds longer ones, too. With `is_typing` the last word is such a beginning, since
    more of it may follow.

    A blank may follow a prefix, and `skill:-java` is `-skill:java`. A quote that is not closed does not
    count, nor does a prefix without a word.
    """
    is_cut = len(text) > MAX_QUERY_CHARS
    text = text[:MAX_QUERY_CHARS].translate(_ALIKE)
    if text.count('"') % 2:
        before, _, after = text.rpartition('"')
        text = before + after
    terms: dict[Term, None] = {}
    for item in _ITEM.finditer(text):
        groups = PREFIXES[item["prefix"][:-1].lower()] if item["prefix"] else GROUPS
        is_negative = bool(item["minus"] or item["minus2"])
        if item["word"] is None:
            new = _phrase(item["phrase"], groups, is_negative)
        elif not item["prefix"] and re.fullmatch(_PREFIX, item["word"]):
            continue
        else:
            is_last = is_typing and item.end() == len(text)
            new = _words(item["word"], groups, is_negative, is_last)
        terms.update(dict.fromkeys(new))
    pairs = Counter(pair for term in terms for pair in pairwise(term.readings[-1]))
    is_cut |= len(terms) > MAX_TERMS or max(pairs.values(), default=0) > MAX_REPEATS
    return Query(tuple(terms)[:MAX_TERMS], is_cut)


def _phrase(text: str, groups: str, is_negative: bool) -> Iterator[Term]:
    chunks = list(CHUNK.finditer(fold(text)))
    if chunks:
        yield Term(groups, _readings(chunks), Kind.PHRASE, is_negative)


def label_terms(label: str) -> tuple[Term, ...]:
    """Return the term that all resumes with this label have; none if it has no words."""
    return tuple(_phrase(label, LABEL, is_negative=False))


def _words(text: str, groups: str, is_negative: bool, is_last: bool) -> Iterator[Term]:
    """Yield the terms of a text without blanks: one for each word or address in it."""
    word = text.rstrip("*")
    folded = ENDS[0].join(map(fold, _AT.split(word)))
    addresses: list[list[re.Match[str]]] = []
    end = -1
    for chunk in CHUNK.finditer(folded):
        if addresses and folded[end : chunk.start()] == ENDS[0]:
            addresses[-1].append(chunk)
        else:
            addresses.append([chunk])
        end = chunk.end()
    for address in addresses:
        readings = _readings(address)
        is_long = len(address) > 1 or (
            len(readings[0][0]) >= MIN_BEGINNING_CHARS and not address[0]["run"]
        )
        is_open = (is_last or word != text) and address[-1].end() == len(folded)
        kind = Kind.BEGINNING if is_open and is_long else Kind.WORD
        yield Term(groups, readings if len(address) > 1 else readings[:1], kind, is_negative)


def _readings(chunks: list[re.Match[str]]) -> tuple[tuple[str, ...], ...]:
    joined: list[str] = []
    divided: list[str] = []
    for chunk in chunks:
        if run := chunk["run"]:
            joined.append(run)
            divided.append(run)
        else:
            parts = parts_of(chunk["joined"])
            parts[0] = (chunk["dot"] or "") + parts[0]
            parts[-1] += chunk["sign"] or ""
            joined.append("".join(parts)[:MAX_WORD_CHARS])
            divided += [part[:MAX_WORD_CHARS] for part in parts]
    return tuple(dict.fromkeys((tuple(joined), tuple(divided))))


# Proof, and what is marked


_SEPARATORS: Final = rf"[ +#{re.escape(JOINERS)}]*"


@lru_cache(maxsize=512)
def _pattern(words: tuple[str, ...], finds_longer: bool) -> re.Pattern[str]:
    """Return the pattern of words that follow each other in a folded text."""
    patterns = [_word_pattern(word, finds_longer=False) for word in words[:-1]]
    patterns.append(_word_pattern(words[-1], finds_longer=finds_longer))
    return re.compile(_SEPARATORS.join(patterns))


def _word_pattern(word: str, *, finds_longer: bool) -> str:
    literal = re.escape(word)
    if word.startswith(IN_RUN):
        return literal
    # A search is fast for a pattern that begins with a literal, so what is before it comes after it.
    before = f"(?<!{LETTER}{literal})"
    if word.startswith("."):
        before += rf"(?<!\.{literal})"
    finds_longer = finds_longer or len(word) == MAX_WORD_CHARS  # which may be cut
    after = "" if finds_longer or word.endswith(("++", "#")) else f"(?!{LETTER})"
    if word.endswith("+") and not word.endswith("++"):
        after = f"(?!{LETTER})" if finds_longer else rf"(?!{LETTER}|\+)"
    elif after and not loses_sign(word):
        after += f"(?!{SIGN})"
    return literal + before + after


def hits(text: str, query: Query, group: str | None = None) -> list[tuple[int, int]]:
    """Return where a shown text has words of the query, as indexes of its characters, in order.

    `group` is the letter of the text's group: a term that does not search it marks nothing. With None
    all terms count, but without the longer words that they find in name, title and email address.
    """
    text = text.translate(WITHOUT_ENDS)
    chars = list(fold(text)) if text.isascii() else [fold(char) for char in text]
    at = [index for index, char in enumerate(chars) for _ in char]
    divided = "".join(chars)
    joiners = {joiner.start() for joiner in JOINER.finditer(divided)}
    kept = [index for index in range(len(divided)) if index not in joiners]
    joined, joined_at = "".join([divided[index] for index in kept]), [at[index] for index in kept]
    found: list[tuple[int, int]] = []
    for term in query.terms:
        if term.is_negative or (group is not None and group not in term.groups):
            continue
        for words in term.readings:
            for folded, places in ((divided, at), (joined, joined_at)):
                found += [
                    (places[hit.start()], places[hit.end() - 1] + 1)
                    for hit in term.pattern(words, group).finditer(folded)
                ]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        while end < len(text) and not chars[end]:  # an accent of its own
            end += 1
        if merged and start <= merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    return merged
