"""Parse queries into terms, which an index looks up and which a resume's text can prove.

A query consists of words, `"a phrase"`, `-word`, and `word*` for longer words that begin with it; a
prefix such as `skill:` can precede a word or phrase. All words must be found, except those after
`-`. Anything else is searched for as words, so a query is never invalid.
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
"""The maximum length of a query. The rest is ignored."""

MAX_TERMS: Final = 20
"""The maximum number of terms in a query. Further terms are ignored."""

MAX_REPEATS: Final = 4
"""The maximum number of times that the same two words may follow each other in a query. Searching a
repetitive text for a repetitive phrase is slow, since the comparison starts again at each word."""

MIN_BEGINNING_CHARS: Final = 4
"""The minimum length of a beginning of a word that is looked up in all groups."""

MAX_LOOKUPS: Final = 8
"""The maximum number of tokens of a phrase that are looked up; the text proves the others."""


class Kind(StrEnum):
    """The words that the last word of a term finds."""

    WORD = "word"
    """The word; in name, title and email address, also longer words that begin with it."""

    BEGINNING = "beginning"
    """All words that begin with it."""

    PHRASE = "phrase"
    """Only the word itself."""


@dataclass(frozen=True, slots=True)
class Term:
    """One or several consecutive words that a text must contain or, if negative, must not contain.

    A resume can contain the term only if its tokens include all tokens of one of the `rows`, or a
    token that begins with one of the `beginnings`. With `needs_proof`, this is not sufficient, and
    `Query.matches` decides. So an engine looks up

    - for a term: `rows[0]` all present OR `rows[1]` all present OR … OR a token that begins with
      `beginnings[0]` OR …;
    - for a negative term: NOT that, or nothing if the term needs proof, since a resume with these
      tokens need not contain the term.
    """

    groups: str
    """The letters of the groups to search."""

    readings: tuple[tuple[str, ...], ...]
    """The folded words, once with each compound as one word and once with compounds divided. A run
    of Chinese or Japanese characters is one word."""

    kind: Kind
    is_negative: bool

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Tokens, which begin with a group's letter: at most 8 in a row, and all of one group."""
        rows: dict[tuple[str, ...], None] = {}
        for group in self.groups:
            for words in self.readings:
                lists = self.kind is Kind.BEGINNING and group not in BY_BEGINNINGS
                tokens = sorted(_tokens(words[:-1] if lists else words, group))
                # Prefer long words, since they are rare.
                rows[tuple(sorted(tokens, key=len, reverse=True)[:MAX_LOOKUPS])] = None
        return tuple(filter(None, rows))

    @property
    def beginnings(self) -> tuple[str, ...]:
        """Beginnings of tokens, with the letter of the group and so at least five characters long.

        In the groups of `BY_BEGINNINGS`, beginnings are tokens and therefore in `rows`."""
        words = self.readings[0]
        if self.kind is not Kind.BEGINNING or len(words) > 1:
            return ()
        return tuple(group + words[0] for group in self.groups if group not in BY_BEGINNINGS)

    @property
    def needs_proof(self) -> bool:
        """Whether a resume that the index finds for the term may not contain it."""
        words = self.readings[0]
        if len(words) > 1 or len(self.readings) > 1:
            return True
        if words[0].startswith(IN_RUN):
            return len(_chars(words[0])) > 2
        has_beginnings = not set(BY_BEGINNINGS).isdisjoint(self.groups)
        return has_beginnings and (self.kind is Kind.PHRASE or len(words[0]) > MAX_BEGINNING_CHARS)

    def is_in(self, group: str, text: str) -> bool:
        """Return whether the folded text of a group contains the term, even if it is negative."""
        return any(
            self.pattern(words, group).search(form)
            for words in self.readings
            if all(word.lstrip(".") in letters_of(text) for word in words)
            for form in {text, without_joiners(text)}
        )

    def pattern(self, words: tuple[str, ...], group: str | None) -> re.Pattern[str]:
        """Return the pattern that finds the words of a reading in a folded text of the group."""
        finds_longer = self.kind is Kind.BEGINNING or (
            self.kind is Kind.WORD and group is not None and group in BY_BEGINNINGS
        )
        return _pattern(words, finds_longer)


def _tokens(words: tuple[str, ...], group: str) -> set[str]:
    """Return the tokens that a text of the group has if it contains the words."""
    end = MAX_BEGINNING_CHARS if group in BY_BEGINNINGS else None
    tokens = set()
    for word in words:
        chars = _chars(word)
        pairs = [group + pair for pair in map("".join, pairwise(chars))]
        tokens.update(pairs or [group + (chars or word[:end])])
    return tokens


def _chars(run: str) -> str:
    """Return the characters of a Chinese or Japanese run, or no text for any other word."""
    return run[1::3] if run.startswith(IN_RUN) else ""


@dataclass(frozen=True, slots=True)
class Query:
    """Terms. A resume matches if it contains all positive terms and no negative one.

    If `is_exact`, the matches are exactly the resumes that an index finds for `looked_up`;
    otherwise, `matches` decides for each of these resumes. If all terms that are looked up are negative, an index that
    can only exclude resumes from a result also looks up `EVERY_RESUME`.
    """

    terms: tuple[Term, ...]
    is_cut: bool = False
    """Whether the query is too long, so that a part of it is ignored, or too repetitive."""

    @property
    def looked_up(self) -> tuple[Term, ...]:
        """The terms that the index looks up."""
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
        """Return whether a stored resume matches. Raises StoreIncompatible for a damaged document.

        `title` and `name` are the values of these columns of `resumes`.
        """
        texts = folded_groups(group_texts(document, title=title, name=name, label=label))
        return all(
            any(term.is_in(group, texts[group]) for group in term.groups) is not term.is_negative
            for term in self.terms
        )


# Parsing

_ALIKE: Final = str.maketrans("\u201c\u201d\u201e\u201f\uff02\uff1a", '""""":')
"""Quotation marks and colons from other keyboards."""

_PREFIX: Final = f"(?ai:{'|'.join(PREFIXES)}):"
_ITEM: Final = re.compile(
    r"(?P<minus>(?<!\S)-(?=[^\s-]))?"
    rf"(?:(?P<prefix>{_PREFIX})(?:\s+(?!-?{_PREFIX}))?(?P<minus2>-(?=[^\s-]))?)?"
    r'(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))'
)
_AT: Final = re.compile("[@\ufe6b\uff20]")


def parse_query(text: str, *, is_typing: bool = False) -> Query:
    """Parse a text into a query, which has no terms if the text contains nothing to search for.

    Only the first 500 characters are used, and of them only the first 20 terms. `word*` finds words
    that begin with these letters if there are at least four; with fewer letters, it is a normal
    word, which finds longer words only in name, title and email address. With `is_typing`, the last
    word is treated as if `*` followed, since the user may not have finished it.

    A space may follow a prefix, and `skill:-java` means `-skill:java`. A quotation mark that is not
    closed and a prefix without a word are ignored.
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
    """Return the term that all resumes with this label contain, or none if it has no words."""
    return tuple(_phrase(label, LABEL, is_negative=False))


def _words(text: str, groups: str, is_negative: bool, is_last: bool) -> Iterator[Term]:
    """Yield a term for each word or email address in a text without spaces."""
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


# Proof and highlighting


_SEPARATORS: Final = rf"[ +#{re.escape(JOINERS)}]*"


@lru_cache(maxsize=512)
def _pattern(words: tuple[str, ...], finds_longer: bool) -> re.Pattern[str]:
    """Return a pattern for these words in a row in a folded text."""
    patterns = [_word_pattern(word, finds_longer=False) for word in words[:-1]]
    patterns.append(_word_pattern(words[-1], finds_longer=finds_longer))
    return re.compile(_SEPARATORS.join(patterns))


def _word_pattern(word: str, *, finds_longer: bool) -> str:
    literal = re.escape(word)
    if word.startswith(IN_RUN):
        return literal
    # Searching is fast if the pattern begins with a literal, so the lookbehind comes after it.
    before = f"(?<!{LETTER}{literal})"
    if word.startswith("."):
        before += rf"(?<!\.{literal})"
    finds_longer = finds_longer or len(word) == MAX_WORD_CHARS  # the word may be cut
    after = "" if finds_longer or word.endswith(("++", "#")) else f"(?!{LETTER})"
    if word.endswith("+") and not word.endswith("++"):
        after = f"(?!{LETTER})" if finds_longer else rf"(?!{LETTER}|\+)"
    elif after and not loses_sign(word):
        after += f"(?!{SIGN})"
    return literal + before + after


def hits(text: str, query: Query, group: str | None = None) -> list[tuple[int, int]]:
    """Return the ranges of a shown text that match the query, as sorted character indexes.

    `group` is the letter of the text's group; terms that do not search this group are ignored. With
    None, all terms are used, but they do not find longer words as in name, title and email address.
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
        while end < len(text) and not chars[end]:  # a separate accent
            end += 1
        if merged and start <= merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    return merged
