"""Find the words of a text, and the tokens of a resume for the search index.

A word is a run of letters, digits and marks, without case and accents. Words that are joined by
`-`, `'`, `.`, `&` or `_` are separate words and also one word: `Node.js` is `node`, `js` and
`nodejs`. Signs that change the meaning are kept: `c++`, `c#`, `.net`. Since Chinese and Japanese
texts have no spaces, each character and each pair of characters in them is a word.
"""

import codecs
import contextlib
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import filterfalse, pairwise
from typing import Final

from resumes.search.texts import EMAIL, GROUPS, NAME, TITLE, group_texts
from resumes.text import folded

BY_BEGINNINGS: Final = NAME + EMAIL + TITLE
"""The groups in which a word is also found by its beginnings, which are also tokens."""

EVERY_RESUME: Final = "x"
"""A token that every resume has, for queries that only exclude resumes."""

MAX_WORD_CHARS: Final = 63
"""The maximum length of a word. The rest is ignored."""

MAX_BEGINNING_CHARS: Final = 16
"""The maximum length of a beginning that is a token."""

MAX_TOKENS: Final = 20_000
"""The maximum number of tokens of a resume. Further words are not found."""

MAX_GROUP_CHARS: Final = 100_000
"""The number of characters that are searched in a group's texts."""

MAX_NAME_CHARS: Final = 1_000
"""The number of characters that are searched in each group of `BY_BEGINNINGS`."""

# Folding

JOINERS: Final = "-'.&_"
"""Signs that join words if they are between letters or digits."""

IN_RUN: Final = "\0"
"""The mark before and after each Chinese or Japanese character in a folded text. Compiling a
pattern that contains the ranges of these characters instead would take milliseconds."""

_TEXT_END, _GROUP_END = ENDS = "\x1e\x1f"
WITHOUT_ENDS: Final = str.maketrans(dict.fromkeys(ENDS, " "))


class _Folding(dict[int, str]):
    """The folded form of each character, for `str.translate`. Separators become spaces."""

    _ALIKE: Final = {"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2010": "-"}
    _KEPT: Final = frozenset(f"{JOINERS}+#{ENDS}")
    # Han, kana and bopomofo.
    _NO_BLANKS: Final = (range(0x2E80, 0xA000), range(0xF900, 0xFB00), range(0x20000, 0x40000))
    _MAX_SIZE: Final = 40_000

    def __missing__(self, code: int) -> str:
        form = "".join(map(self._plain, folded(chr(code))))
        if len(self) >= self._MAX_SIZE:  # Unicode has a million characters
            self.clear()
        self[code] = form
        return form

    def _plain(self, char: str) -> str:
        char = self._ALIKE.get(char, char)
        if char not in self._KEPT and unicodedata.category(char)[0] not in "LMN":
            return " "
        return IN_RUN + char + IN_RUN if any(ord(char) in run for run in self._NO_BLANKS) else char


_FOLDING: Final = _Folding()


def _fold_beyond_ascii(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return error.object[error.start : error.end].translate(_FOLDING), error.end


codecs.register_error("resumes.search.fold", _fold_beyond_ascii)


def fold(text: str) -> str:
    """Remove case and accents, and replace other signs with spaces.

    The result contains only parts of words, joiners, `+`, `#`, spaces, `IN_RUN` and `ENDS`.
    """
    if not text.isascii():
        # Most texts that are not ASCII are Latin with a few other characters, which the codec finds
        # quickly. If the result is ASCII, `translate` takes a tenth of the time.
        with contextlib.suppress(UnicodeEncodeError):
            text = text.encode("ascii", "resumes.search.fold").decode("ascii")
    return text.translate(_FOLDING)


def folded_groups(texts: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Fold the texts of each group, and join them with `ENDS[0]`.

    Only the first 100,000 characters of a group are used, and 1,000 of name, title and email
    address.
    """
    joined = _GROUP_END.join([_TEXT_END.join(group) for group in texts.values()])
    if sum(map(joined.count, ENDS)) != sum([len(group) or 1 for group in texts.values()]) - 1:
        without = {
            group: [each.translate(WITHOUT_ENDS) for each in texts[group]] for group in texts
        }
        return folded_groups(without)
    return {
        group: text[: MAX_NAME_CHARS if group in BY_BEGINNINGS else MAX_GROUP_CHARS]
        for group, text in zip(texts, fold(joined).split(_GROUP_END), strict=True)
    }


# Words. The patterns are for folded texts.

_JOINS: Final = re.escape(JOINERS)

LETTER: Final = rf"[^\s{IN_RUN}+#{_JOINS}]"
"""A letter, digit or mark of a script that separates words with spaces."""

SIGN: Final = rf"\+\+|\#|\+(?!{LETTER})"
"""Signs that belong to the word before them."""

CHUNK: Final = re.compile(
    rf"(?P<dot>(?<!\.)(?<!{LETTER})\.(?={LETTER}))?"
    rf"(?P<joined>{LETTER}+(?:[{_JOINS}]{LETTER}+)*)(?P<sign>{SIGN})?"
    rf"|(?P<run>(?:{IN_RUN}.{IN_RUN})+)"
)
"""A word, joined words, or a run of Chinese or Japanese characters."""

# Searching is fast if the pattern begins with a literal or set, so the lookbehind comes after it.
JOINER: Final = re.compile(rf"[{_JOINS}](?<={LETTER}[{_JOINS}])(?={LETTER})")
"""A sign that joins two words."""

_ANY_JOINER: Final = re.compile(rf"[{_JOINS}]")


# Cache the results: each of up to 20 terms of a query is searched for in the same few texts.
@lru_cache(maxsize=len(GROUPS))
def letters_of(text: str) -> str:
    """Remove all signs in `JOINERS` from a folded text, even if they do not join words."""
    for joiner in JOINERS:  # `translate` takes ten times as long for text that is not ASCII
        text = text.replace(joiner, "")
    return text


@lru_cache(maxsize=len(GROUPS))
def without_joiners(text: str) -> str:
    """Convert joined words in a folded text to one word each."""
    return JOINER.sub("", text)


def parts_of(joined: str) -> list[str]:
    """Return the separate words of joined words."""
    return _ANY_JOINER.split(joined)


def loses_sign(word: str) -> bool:
    """Return whether a search without the sign also finds a word: `security+`, but not `c++`."""
    letters = word.lstrip(".")
    return not (len(letters) == 1 and letters.isalpha())


def words_in(text: str) -> set[str]:
    """Return the words of a folded text."""
    words: set[str] = set()
    for chunk in CHUNK.finditer(text):
        if run := chunk["run"]:
            chars = run[1::3]
            words.update(chars, map("".join, pairwise(chars)))
            continue
        *parts, last = parts_of(chunk["joined"])
        forms = [[word] for word in (last, "".join(parts) + last)]
        if sign := chunk["sign"]:
            forms = [[word + sign] + [word] * loses_sign(word) for [word] in forms]
        lasts, wholes = forms
        dotted = ["." + word for word in parts[:1] + wholes] if chunk["dot"] else []
        words.update([word[:MAX_WORD_CHARS] for word in parts + lasts + wholes + dotted])
    return words


# Tokens


def index_tokens(
    document: str | bytes, *, title: str | None, name: str | None, label: str | None = None
) -> set[str]:
    """Return the tokens of a stored resume: the letter of a group, followed by a word of its texts.

    In the groups of `BY_BEGINNINGS`, a token contains a beginning of a word, of at most 16
    characters, instead of the word. One token is `EVERY_RESUME`. A token contains only letters,
    digits, marks and `+ # .`, and at most 64 characters. Raises StoreIncompatible for a damaged
    document.
    """
    tokens = {EVERY_RESUME}
    texts = folded_groups(group_texts(document, title=title, name=name, label=label))
    for group, text in texts.items():
        if text and group not in BY_BEGINNINGS:
            # Adding the letters and removing full stops is faster in the joined text.
            tagged = text.replace(_TEXT_END, " ").replace(". ", " ").replace(" ", " " + group)
            tokens.update((group + tagged).split())
    tokens.difference_update(GROUPS)
    others = set(filterfalse(str.isalnum, tokens))
    if max(map(len, tokens)) > MAX_WORD_CHARS:
        others.update([token for token in tokens if len(token) > MAX_WORD_CHARS])
    tokens -= others
    tokens.update(*map(_WORDS.__getitem__, others))
    for group in BY_BEGINNINGS:
        chunks = [group + chunk for chunk in texts[group].split()]
        tokens.update(*map(_BEGINNINGS.__getitem__, chunks))
    if len(tokens) > MAX_TOKENS:
        in_order = sorted(tokens, key=lambda token: (GROUPS.find(token[0]), token))
        tokens = set(in_order[:MAX_TOKENS])
    return tokens


class _Memo(dict[str, list[str]]):
    """A cache of a function's results for texts of usual length, cleared at 20,000 results.

    Reading a result costs less than a function call."""

    _MAX_SIZE: Final = 20_000

    def __init__(self, function: Callable[[str], list[str]]) -> None:
        self._function = function

    def __missing__(self, text: str) -> list[str]:
        result = self._function(text)
        if len(text) <= MAX_WORD_CHARS:
            if len(self) >= self._MAX_SIZE:
                self.clear()
            self[text] = result
        return result


def _words(tagged: str) -> list[str]:
    """Return the tokens of a text without spaces that begins with the group's letter."""
    return [tagged[0] + word for word in words_in(tagged[1:])]


def _beginnings(tagged: str) -> list[str]:
    """Return the beginnings of the tokens of such a text."""
    return [
        token[:end]
        for token in ([tagged] if tagged.isalnum() else _WORDS[tagged])
        for end in range(2, min(len(token), MAX_BEGINNING_CHARS + 1) + 1)
    ]


_WORDS: Final = _Memo(_words)
_BEGINNINGS: Final = _Memo(_beginnings)
