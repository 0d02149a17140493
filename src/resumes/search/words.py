r"""The words of a resume, by groups of fields: what the index of a search holds.

A word is a run of letters, digits and marks, without case and accents. Words joined by `-`, `'`, `.`,
`&` or `_` are words each, and one together: `Node.js` is `node`, `js` and `nodejs`. Signs that change
the meaning stay: `c++`, `c#`, `.net`. Chinese and Japanese have no blanks, so there every character
and every pair of characters is a word.
"""

import codecs
import contextlib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import filterfalse, pairwise
from typing import Any, Final

from resumes.analyzer import list_title, load_stored
from resumes.analyzer.kinds import Added, Group, Kind, Listing, Text
from resumes.analyzer.schema import HEADER, SECTION_TYPES
from resumes.text import folded

# Groups

NAME, EMAIL, TITLE, PLACE, SKILL, WORK, SCHOOL, LABEL, OTHER = GROUPS = "netpswclo"
"""The letters of the groups of fields. A token is the letter of a group and a word: `spython`."""

BY_BEGINNINGS: Final = NAME + EMAIL + TITLE
"""The groups in which a word is also found by its beginnings, which are tokens, too."""

EVERY_RESUME: Final = "x"
"""A token of every resume, for queries that only exclude resumes."""

MAX_WORD_CHARS: Final = 63
"""The rest of a longer word does not count."""

MAX_BEGINNING_CHARS: Final = 16
"""The longest beginning that is a token; a longer word is found by it, and then compared."""

MAX_TOKENS: Final = 20_000
"""The maximum number of tokens of a resume; further words are not found."""

_HEADER_GROUPS: Final = {"name": NAME, "email": EMAIL, "title": TITLE, "location": PLACE}

_SECTION_GROUPS: Final = {
    "skills": SKILL,
    "technologies": SKILL,
    "languages": SKILL,
    "industryExperiences": SKILL,
    "strengths": SKILL,
    "experiences": WORK,
    "volunteering": WORK,
    "projects": WORK,
    "educations": SCHOOL,
    "courses": SCHOOL,
    "certificates": SCHOOL,
}

_PICTURES: Final = frozenset({"companyLogo", "image"})
"""Fields with the address of a picture, which no view shows."""


def section_group(section_type: str) -> str:
    """Return the group of a section's items: that of `experiences` for `additionalExperiences`, and
    `OTHER` for any section type that has no group of its own."""
    name = section_type.removeprefix("additional")
    return _SECTION_GROUPS.get(name[:1].lower() + name[1:], OTHER)


# The texts of a resume


def _searched_fields(fields: Mapping[str, Kind]) -> dict[str, object]:
    """Return how the texts in a field are read: `str` for a text, `list` for a list of texts, or the
    kind of the field. Fields without texts are left out."""
    searched: dict[str, object] = {}
    for field, kind in fields.items():
        if type(kind) is Text:
            searched[field] = str
        elif type(kind) is Listing and type(kind.entry) is Text:
            searched[field] = list
        elif _has_texts(kind):
            searched[field] = kind
    return {field: kind for field, kind in searched.items() if field not in _PICTURES}


def _has_texts(kind: Kind) -> bool:
    match kind:
        case Added():
            return _has_texts(kind.kind)
        case Listing():
            return _has_texts(kind.entry)
        case Group():
            return any(map(_has_texts, kind.fields.values()))
    return type(kind) is Text


_HEADER: Final = _searched_fields(HEADER.fields)
_SECTIONS: Final = {
    name: (section_group(name), _searched_fields(section_type.fields))
    for name, section_type in SECTION_TYPES.items()
}


def group_texts(
    document: str | bytes, *, title: str | None, name: str | None, label: str | None = None
) -> dict[str, list[str]]:
    """Return the texts of a stored resume by group, as they were sent.

    These are the texts that are shown to people: not hidden, unknown or style fields, icons, or
    addresses of pictures. Title and name are the columns of `resumes`. Raises StoreIncompatible for a
    damaged document.
    """
    stored = load_stored(document)
    texts: dict[str, list[str]] = {group: [] for group in GROUPS}
    for field, value in stored["header"].items():
        if field in _HEADER:
            _add_texts(texts[_HEADER_GROUPS.get(field, OTHER)], {field: value}, _HEADER)
    texts[TITLE].append(list_title(title, name))
    if label:
        texts[LABEL].append(label)
    for section_type, section in stored["sections"].items():
        items = section.get("items") if type(section) is dict else None
        if type(items) is not list or not items:
            continue
        if type(heading := section.get("name")) is str:
            texts[OTHER].append(heading)
        if section_type in _SECTIONS:
            group, fields = _SECTIONS[section_type]
            for item in items:
                _add_texts(texts[group], item, fields)
        else:
            texts[OTHER].extend(_iter_strings(items))
    return texts


def _add_texts(texts: list[str], values: Any, fields: Mapping[str, object]) -> None:
    for field, value in values.items() if type(values) is dict else ():
        kind = fields.get(field)
        if kind is str:
            if type(value) is str:
                texts.append(value)
        elif kind is list:
            if type(value) is list:
                texts += [entry for entry in value if type(entry) is str]
        elif kind is not None:
            texts.extend(_iter_texts(kind, value))


def _iter_texts(kind: object, value: Any) -> Iterator[str]:
    """Yield the shown texts in a stored value of a kind, of which there are few."""
    match kind:
        case Added() if value is not None:
            yield from _iter_texts(kind.kind, kind.public(value))
        case Listing() if type(value) is list:
            for entry in value:
                yield from _iter_texts(kind.entry, entry)
        case Group() if type(value) is dict:
            for field, member in value.items():
                yield from _iter_texts(kind.fields.get(field), member)
        case Text() if type(kind) is Text and type(value) is str:
            yield value


def _iter_strings(value: Any) -> Iterator[str]:
    """Yield all strings in a value of an extra section type, except for the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _iter_strings(each)


# Folding

JOINERS: Final = "-'.&_"
"""Signs that join words when they are between letters or digits."""

IN_RUN: Final = "\0"
"""Before and after each Chinese or Japanese character in a folded text, since these scripts have no
blanks. With their ranges in it, a pattern would take milliseconds to compile."""

_FIELD_END, _GROUP_END = ENDS = "\x1e\x1f"
"""After a text, and after the texts of a group."""

WITHOUT_ENDS: Final = str.maketrans(dict.fromkeys(ENDS, " "))

MAX_CHARS: Final = 100_000
"""How many characters of the texts of a group are searched."""

MAX_NAME_CHARS: Final = 1_000
"""How many characters are searched in the groups of `BY_BEGINNINGS`."""


class _Folding(dict[int, str]):
    """The folded form of each character, for `str.translate`: blank unless it belongs to a word."""

    _ALIKE: Final = {"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2010": "-"}
    _KEPT: Final = frozenset(f"{JOINERS}+#{ENDS}")
    _MAX_CHARS: Final = 20_000
    # Han, kana and bopomofo.
    _NO_BLANKS: Final = (range(0x2E80, 0xA000), range(0xF900, 0xFB00), range(0x20000, 0x40000))

    def __missing__(self, code: int) -> str:
        form = "".join(map(self._plain, folded(chr(code))))
        if len(self) < self._MAX_CHARS:  # there are a million
            self[code] = form
        return form

    def _plain(self, char: str) -> str:
        char = self._ALIKE.get(char, char)
        if char not in self._KEPT and unicodedata.category(char)[0] not in "LMN":
            return " "
        return (
            f"{IN_RUN}{char}{IN_RUN}"
            if any(ord(char) in each for each in self._NO_BLANKS)
            else char
        )


_FOLDING: Final = _Folding()


def _fold_beyond_ascii(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return error.object[error.start : error.end].translate(_FOLDING), error.end


codecs.register_error("resumes.search.fold", _fold_beyond_ascii)


def fold(text: str) -> str:
    """Return the text without case and accents, and with a blank for each sign between words.

    What remains are parts of words, joiners, `+`, `#`, blanks, `IN_RUN` and `ENDS`.
    """
    if not text.isascii():
        # Most texts beyond ASCII are Latin, with few such characters, which the codec finds quickly. When
        # all have become ASCII, the others take a tenth of the time.
        with contextlib.suppress(UnicodeEncodeError):
            text = text.encode("ascii", "resumes.search.fold").decode("ascii")
    return text.translate(_FOLDING)


def folded_groups(texts: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the texts of each group in one, folded, with an `ENDS[0]` between them.

    The first 100,000 characters of each count, of name, title and email address the first 1,000.
    """
    joined = _GROUP_END.join([_FIELD_END.join(group) for group in texts.values()])
    if sum(map(joined.count, ENDS)) != sum([len(group) or 1 for group in texts.values()]) - 1:
        return folded_groups(
            {group: [text.translate(WITHOUT_ENDS) for text in texts[group]] for group in texts}
        )
    return {
        group: text[: MAX_NAME_CHARS if group in BY_BEGINNINGS else MAX_CHARS]
        for group, text in zip(texts, fold(joined).split(_GROUP_END), strict=True)
    }


# Words

_JOINS: Final = re.escape(JOINERS)

LETTER: Final = rf"[^\s{IN_RUN}+#{_JOINS}]"
"""A pattern: a letter, digit or mark of a script with blanks, in a folded text."""

SIGN: Final = rf"\+\+|\#|\+(?!{LETTER})"
"""A pattern: the signs after a word that belong to it."""

_DOT: Final = rf"(?<!\.)(?<!{LETTER})\."
"""A pattern: a dot before a word that belongs to it."""

CHUNK: Final = re.compile(
    rf"(?P<dot>{_DOT}(?={LETTER}))?"
    rf"(?P<joined>{LETTER}+(?:[{_JOINS}]{LETTER}+)*)(?P<sign>{SIGN})?"
    rf"|(?P<run>(?:{IN_RUN}.{IN_RUN})+)"
)
"""A word, words that are joined, or a run of Chinese or Japanese characters, in a folded text."""

# A search is fast for a pattern that begins with a literal or a set, so what is before it comes after it.
JOINER: Final = re.compile(rf"[{_JOINS}](?<={LETTER}[{_JOINS}])(?={LETTER})")
"""A sign that joins two words, in a folded text."""

_WITHOUT_JOINERS: Final = str.maketrans(dict.fromkeys(JOINERS))


def without_joiners(text: str, words: Iterable[str]) -> str:
    """Return a folded text with its joined words as one word each; empty if it does not have the words."""
    letters = text.translate(_WITHOUT_JOINERS)
    return JOINER.sub("", text) if all(word.lstrip(".") in letters for word in words) else ""


def parts_of(joined: str) -> list[str]:
    """Return the words of joined words."""
    return re.split(f"[{_JOINS}]", joined)


def loses_sign(word: str) -> bool:
    """Return whether a word with signs is found without them: `security+` is, `c++` is not."""
    return not (len(word.lstrip(".")) == 1 and word[-1].isalpha())


def _forms(word: str, sign: str | None) -> list[str]:
    if sign is None:
        return [word]
    return [word + sign, word] if loses_sign(word) else [word + sign]


def words_in(text: str) -> set[str]:
    """Return the words of a folded text."""
    words: set[str] = set()
    for chunk in CHUNK.finditer(text):
        if run := chunk["run"]:
            chars = run[1::3]
            words.update(chars, map("".join, pairwise(chars)))
            continue
        *parts, last = parts_of(chunk["joined"])
        wholes = _forms("".join(parts) + last, chunk["sign"])
        forms = parts + _forms(last, chunk["sign"]) + wholes
        if chunk["dot"]:
            forms += ["." + form for form in parts[:1] + wholes]
        words.update([form[:MAX_WORD_CHARS] for form in forms])
    return words


def index_tokens(
    document: str | bytes, *, title: str | None, name: str | None, label: str | None = None
) -> set[str]:
    """Return the tokens of a stored resume: the letter of a group and a word of its texts.

    In the groups of `BY_BEGINNINGS`, these are the beginnings of the words, of up to 16 characters,
    instead of the words. One token is `EVERY_RESUME`. A token has only letters, digits, marks and
    `+ # .`, and at most 64 characters. Raises StoreIncompatible for a damaged document.
    """
    tokens = {EVERY_RESUME}
    texts = folded_groups(group_texts(document, title=title, name=name, label=label))
    for group, text in texts.items():
        if text and group not in BY_BEGINNINGS:
            # Letters are put before the words while they are one text, which is faster.
            tagged = text.replace(_FIELD_END, " ").replace(" ", " " + group)
            tokens.update((group + tagged).split())
    tokens.difference_update(GROUPS)
    others = set(filterfalse(str.isalnum, tokens))
    if max(map(len, tokens)) > MAX_WORD_CHARS:
        others.update([token for token in tokens if len(token) > MAX_WORD_CHARS])
    if not all(map(str.isascii, texts.values())):
        others.update(filterfalse(str.isascii, tokens))
    tokens -= others
    for token in others:
        tokens.update(_tagged_words(token))
    for group in BY_BEGINNINGS:
        for chunk in texts[group].split():
            tokens.update(_tagged_beginnings(group + chunk))
    if len(tokens) > MAX_TOKENS:
        in_order = sorted(tokens, key=lambda token: (GROUPS.find(token[0]), token))
        tokens = set(in_order[:MAX_TOKENS])
    return tokens


def _kept(function: Callable[[str], Collection[str]]) -> Callable[[str], Collection[str]]:
    """Keep the last 20,000 results for texts of usual length."""
    keeping = lru_cache(maxsize=20_000)(function)
    return lambda text: (keeping if len(text) <= MAX_WORD_CHARS else function)(text)


@_kept
def _tagged_words(tagged: str) -> Collection[str]:
    """Return the tokens of a part of a text without blanks, which begins with the group's letter."""
    return [tagged[0] + word for word in words_in(tagged[1:])]


@_kept
def _tagged_beginnings(tagged: str) -> Collection[str]:
    """Return the beginnings of the tokens of a part of a text without blanks, as above."""
    if tagged.isascii() and tagged.isalnum():
        return _beginnings(tagged)
    return [end for word in words_in(tagged[1:]) for end in _beginnings(tagged[0] + word)]


def _beginnings(token: str) -> list[str]:
    return [token[:end] for end in range(2, min(len(token), MAX_BEGINNING_CHARS + 1) + 1)]
