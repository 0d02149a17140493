r"""The words of a resume, by groups of fields: what the index of a search holds.

A word is a run of letters, digits and marks, without case and accents. Words joined by `-`, `'`, `.`,
`&` or `_` are words each, and one together: `Node.js` is `node`, `js` and `nodejs`. Signs that change
the meaning stay: `c++`, `c#`, `.net`. Chinese and Japanese have no blanks, so there every character
and every pair of characters is a word.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from resumes.analyzer import list_title, load_stored
from resumes.analyzer.kinds import Added, Group, Kind, KnownText, Listing, Text
from resumes.analyzer.schema import HEADER, SECTION_FIELDS, SECTION_TYPES, SectionType
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


def group_texts(
    document: str | bytes, *, title: str | None, name: str | None, label: str | None = None
) -> dict[str, list[str]]:
    """Return the texts of a stored resume by group, as they were sent.

    These are the texts that are shown to people: not hidden, unknown or style fields, icons, or
    addresses of pictures. Raises StoreIncompatible for a damaged document.
    """
    stored = load_stored(document)
    texts: dict[str, list[str]] = {group: [] for group in GROUPS}
    for field, value in stored["header"].items():
        if type(value) is str and field in HEADER.fields:
            texts[_HEADER_GROUPS.get(field, OTHER)].append(value)
    texts[TITLE].append(list_title(title, name))
    texts[LABEL].append(label or "")
    for section_type, section in stored["sections"].items():
        items = section.get("items") if type(section) is dict else None
        if type(items) is list and items:
            texts[OTHER].extend(_iter_texts(Group(SECTION_FIELDS), section))
            found = texts[section_group(section_type)]
            if section_type in SECTION_TYPES:
                fields = _searched_fields(SECTION_TYPES[section_type])
                for item in items:
                    found.extend(_iter_texts(fields, item))
            else:
                found.extend(_iter_strings(items))
    return texts


@lru_cache(maxsize=len(SECTION_TYPES))
def _searched_fields(section_type: SectionType) -> Group:
    fields = section_type.fields.items()
    return Group({field: kind for field, kind in fields if field not in _PICTURES})


def _iter_texts(kind: Kind, value: Any) -> Iterator[str]:
    """Yield the shown texts in a stored value of the kind."""
    match kind:
        case Added():
            yield from _iter_texts(kind.kind, kind.public(value) if value is not None else None)
        case Listing() if type(value) is list:
            for entry in value:
                yield from _iter_texts(kind.entry, entry)
        case Group() if type(value) is dict:
            for field, member in value.items():
                if field in kind.fields:
                    yield from _iter_texts(kind.fields[field], member)
        case Text() if type(value) is str and not isinstance(kind, KnownText):
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

FIELD_END: Final = "\x1e"
"""Between the texts of a group."""

_MAX_FOLDED_CHARS: Final = 20_000


class _Folding(dict[int, str]):
    """The folded form of each character, for `str.translate`: blank unless it belongs to a word."""

    _ALIKE: Final = {"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2010": "-"}

    def __missing__(self, code: int) -> str:
        form = "".join(map(self._plain, folded(chr(code))))
        if len(self) < _MAX_FOLDED_CHARS:  # a text may have any number of characters
            self[code] = form
        return form

    def _plain(self, char: str) -> str:
        char = self._ALIKE.get(char, char)
        return char if unicodedata.category(char)[0] in "LMN" or char in JOINERS + "+#" else " "


FOLDING: Final = _Folding()


def fold_texts(texts: Iterable[str]) -> str:
    """Return the texts folded, with `FIELD_END` between them.

    Each character then is a blank, a joiner, `+`, `#`, or part of a word.
    """
    return FIELD_END.join([text.translate(FOLDING) for text in texts])


# Words

NO_BLANKS: Final = "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""A range in a pattern: Han, kana and bopomofo, whose scripts have no blanks."""

LETTER: Final = rf"[^\s+#{re.escape(JOINERS)}{NO_BLANKS}]"
"""A pattern: a letter, digit or mark of a script with blanks, in a folded text."""

SIGN: Final = rf"\+\+|\#|\+(?!{LETTER})"
"""A pattern: the signs after a word that belong to it."""

_DOT: Final = rf"(?<![^\s+#{re.escape(JOINERS.replace('.', ''))}{NO_BLANKS}])\."
"""A pattern: a dot before a word that belongs to it."""

CHUNK: Final = re.compile(
    rf"(?P<dot>{_DOT}(?={LETTER}))?"
    rf"(?P<joined>{LETTER}+(?:[{re.escape(JOINERS)}]{LETTER}+)*)(?P<sign>{SIGN})?"
    rf"|(?P<run>[{NO_BLANKS}]+)"
)
"""A word, words that are joined, or a run of Chinese or Japanese characters, in a folded text."""

_JOINER: Final = re.compile(rf"(?<={LETTER})[{re.escape(JOINERS)}](?={LETTER})")


def without_joiners(text: str) -> str:
    """Return a folded text with its joined words as one word each."""
    return _JOINER.sub("", text)


def parts_of(joined: str) -> list[str]:
    """Return the words of joined words."""
    return re.split(f"[{re.escape(JOINERS)}]", joined)


def loses_sign(word: str) -> bool:
    """Return whether a word with signs is found without them: `security+` is, `c++` is not."""
    return not (len(word) == 1 and word.isalpha())


def words_in(text: str) -> set[str]:
    """Return the words of a folded text."""
    words: set[str] = set()
    for chunk in CHUNK.finditer(text):
        if run := chunk["run"]:
            words.update(run, map("".join, pairwise(run)))
            continue
        *parts, last = parts_of(chunk["joined"])
        words.update([part[:MAX_WORD_CHARS] for part in parts])
        forms = [last, "".join(parts) + last]
        if sign := chunk["sign"]:
            forms = [form + sign for form in forms] + list(filter(loses_sign, forms))
        if chunk["dot"]:
            forms.append("." + (parts[0] if parts else last))
        words.update([form[:MAX_WORD_CHARS] for form in forms])
    return words


def index_tokens(
    document: str | bytes, *, title: str | None, name: str | None, label: str | None = None
) -> set[str]:
    """Return the tokens of a stored resume: the letter of a group and a word of its texts.

    In the groups of `BY_BEGINNINGS`, these are the beginnings of the words, of up to 16 characters,
    instead of the words. One token is `EVERY_RESUME`. A token has only letters, digits, marks and
    `+ # .`, and 2 to 64 characters. Title and name are the columns of `resumes`. Raises
    StoreIncompatible for a damaged document.
    """
    tokens = {EVERY_RESUME}
    texts: Mapping[str, list[str]] = group_texts(document, title=title, name=name, label=label)
    for group in GROUPS:
        words: Iterable[str] = words_in(fold_texts(texts[group]))
        if group in BY_BEGINNINGS:
            words = {
                word[:end]
                for word in words
                for end in range(1, min(len(word), MAX_BEGINNING_CHARS) + 1)
            }
        tokens.update(sorted(group + word for word in words)[: MAX_TOKENS - len(tokens)])
    return tokens
