"""Which resumes a query finds, in plain and slow Python: the expectation of all tests of the search.

It is written from the rules (docs/decisions/0020), and shares with the code only `folded`, which has tests
of its own, and what views show of a document.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final

from resumes.analyzer import Format, iter_sections, list_title
from resumes.search.query import Query, Term
from resumes.text import folded
from tests.support.documents import HEADER, SECTIONS

PREFIXES: Final = ("name", "title", "email", "place", "skill", "work", "school", "label")
BY_BEGINNINGS: Final = ("name", "title", "email")
SKILLS: Final = (
    "skills",
    "additionalTechnologies",
    "languages",
    "industryExperiences",
    "strengths",
)
WORK: Final = ("experiences", "additionalExperiences", "volunteering", "projects")
SCHOOL: Final = ("educations", "courses", "certificates")
PICTURES: Final = ("companyLogo", "image")
JOINERS: Final = "-'.&_"
ALIKE: Final = {"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-"}
QUOTES: Final = "\u201c\u201d\u201e\u201f\uff02"

HOSTILE_QUERIES: Final = (
    '"', '""', '"ada', "ada*", "*", "NEAR(ada bo)", "ada NOT bo", "-ada", "^ada", "tokens:ada",
    "{tokens}: ada", "ada + bo", "'", "';--", "\x00", "ada\x00", "\ud800", "ad\udfff", "\U0010ffff",
    "(", ")", "%", "_", "\\", "ada" * 7_000, "ada " * 7_000, "́" * 20_000, "ﷺ" * 200, '{"ada"}',
    "ada OR bo", "ada & !bo", "ada | bo", "<->", "ada:*", "\u202eada", "-" * 5_000, '"a" ' * 3_000,
    "a* " * 200, "ada*" * 200, "x" * 10_000_000,
    '-""', "name:", "skill:-", "foo:ada", "a*", "*" * 10_000, "-ada -bo", "A" + "\u0301" * 400, "a\x1eb\x1f",
    f'"{"a " * 200}b"', f'"{"a-" * 200}b"', "ﷺ" * 400, " ".join(f"w{number}" for number in range(1_000)),
)  # fmt: skip


@dataclass(frozen=True)
class Words:
    """Words that follow each other, to be found in one text."""

    groups: tuple[str, ...]
    text: str
    """Folded."""

    is_phrase: bool = False
    is_beginning: bool = False
    is_negative: bool = False

    @cached_property
    def sought(self) -> list[tuple[list["Spot"], list[str]]]:
        """The words in each reading, and their letters, which any text that has them has."""
        is_compound = self.is_phrase or "@" in self.text
        readings = [spots(self.text, is_joined=joins) for joins in (True, not is_compound)]
        return [(sought, [spot.written.strip(".+#") for spot in sought]) for sought in readings]


@dataclass(frozen=True)
class Spot:
    """A word at a place in a text."""

    start: int
    end: int
    written: str
    forms: frozenset[str]
    has_blanks: bool
    follows: bool = False
    """Whether it is a character directly after another one, in a script without blanks."""


def is_found(
    document: dict[str, Any],
    text: str,
    *,
    title: str | None,
    name: str | None,
    label: str | None = None,
    is_typing: bool = False,
) -> bool:
    """Whether the query finds the resume."""
    texts = [*iter_texts(document, title, name, label)]
    return has_all(texts, [*iter_words(text, is_typing=is_typing)])


def has_all(texts: Sequence[tuple[str, str]], query: Sequence[Words]) -> bool:
    """Whether the texts, with their groups, are those of a resume that the query finds."""
    return all(
        any(has(content, words, group) for group, content in texts if group in words.groups)
        is not words.is_negative
        for words in query
    )


def iter_texts(
    document: dict[str, Any], title: str | None, name: str | None, label: str | None
) -> Iterator[tuple[str, str]]:
    """Every text that is searched, with its group."""
    yield "title", list_title(title, name)
    yield "label", label or ""
    for field, value in document["header"].items():
        if field in HEADER:
            group = {"location": "place"}.get(field, field)
            yield group if group in PREFIXES else "other", value or ""
    for section in iter_sections(document, Format(frozenset(document["sections"]))):
        sent = document["sections"][section.type]
        yield "other", (sent.get("items") and sent.get("name")) or ""
        kinds = SECTIONS.get(section.type)
        for item in section.items:
            for field, value in item.items():
                if kinds is None:
                    yield from (("other", each) for each in _iter_strings(value))
                elif kinds[field] in ("text", "texts", "slices") and field not in PICTURES:
                    yield from ((_group_of(section.type), each) for each in _iter_strings(value))


def _group_of(section: str) -> str:
    groups = {"skill": SKILLS, "work": WORK, "school": SCHOOL}
    return next((group for group, sections in groups.items() if section in sections), "other")


def _iter_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _iter_strings(each)


def has(text: str, words: Words, group: str | None) -> bool:
    """Whether a text of the group has the words, both with compounds divided or as one word."""
    is_open = words.is_beginning or (not words.is_phrase and group in BY_BEGINNINGS)
    letters, *readings = _readings(text)
    for sought, needed in words.sought:
        if all(map(letters.__contains__, needed)) and any(
            _follow(found, sought, is_open=is_open) for found in readings
        ):
            return True
    return False


@lru_cache(maxsize=100_000)
def _readings(text: str) -> tuple[str, list[Spot], list[Spot]]:
    """The letters of a text, for a quick no, and its words."""
    text = plain(text)
    letters = text.translate(dict.fromkeys(map(ord, JOINERS)))
    return letters, spots(text, is_joined=True), spots(text, is_joined=False)


def _follow(found: list[Spot], sought: list[Spot], *, is_open: bool) -> bool:
    def is_at(start: int) -> bool:
        for number, word in enumerate(sought, 1):
            spot = found[start + number - 1]
            starts = is_open and number == len(sought) and word.has_blanks
            if word.written not in spot.forms and not (
                starts and any(form.startswith(word.written) for form in spot.forms)
            ):
                return False
            if word.follows and not spot.follows:
                return False
        return True

    return any(is_at(start) for start in range(len(found) - len(sought) + 1))


def plain(text: str) -> str:
    """The text without case and accents."""
    return folded("".join(ALIKE.get(char, char) for char in text)).replace("\u02bc", "'")


def spots(text: str, *, is_joined: bool) -> list[Spot]:
    """The words of a folded text, compounds as one word or divided."""
    found: list[Spot] = []
    at = 0
    while at < len(text):
        start = at
        at += 1
        if _has_no_blanks(text[start:at]):
            follows = start > 0 and _has_no_blanks(text[start - 1])
            found.append(Spot(start, at, text[start], frozenset(text[start]), False, follows))
        elif _is_letter(text[start:at]):
            while _is_letter(text[at : at + 1]) or (
                text[at : at + 1] in JOINERS
                and _is_letter(text[at - 1 : at])
                and _is_letter(text[at + 1 : at + 2])
            ):
                at += 1
            compound = text[start:at]
            for joiner in JOINERS:
                compound = compound.replace(joiner, "" if is_joined else " ")
            found += _signed(text, start, at, compound.split())
            at = found[-1].end
    return found


def _signed(text: str, start: int, end: int, words: list[str]) -> Iterator[Spot]:
    dot, sign = "", ""
    if text[:start].endswith(".") and not (
        _is_letter(text[:start][-2:-1]) or text[:start].endswith("..")
    ):
        dot = "."
    if text[end : end + 2] == "++":
        sign = "++"
    elif text[end : end + 1] == "#" or (
        text[end : end + 1] == "+" and not _is_letter(text[end + 1 : end + 2])
    ):
        sign = text[end]
    for number, word in enumerate(words):
        before = dot if number == 0 else ""
        after = sign if number == len(words) - 1 else ""
        forms = {before + word, word + after, before + word + after, word}
        if after and len(word) == 1 and word.isalpha():
            forms = {form for form in forms if form.endswith(after)}
        yield Spot(start - len(dot), end + len(sign), before + word + after, frozenset(forms), True)


def _is_letter(char: str) -> bool:
    """Whether it is a letter, digit or mark of a script with blanks."""
    return char != "" and unicodedata.category(char)[0] in "LMN" and not _has_no_blanks(char)


def _has_no_blanks(char: str) -> bool:
    return (
        char != ""
        and unicodedata.category(char)[0] in "LMN"
        and (
            "\u2e80" <= char <= "\u9fff"
            or "\uf900" <= char <= "\ufaff"
            or "\U00020000" <= char <= "\U0003ffff"
        )
    )


# The grammar


def iter_words(text: str, *, is_typing: bool = False) -> Iterator[Words]:
    """What is to be found by a query, and what is not."""
    for quote in QUOTES:
        text = text.replace(quote, '"')
    text = text.replace("\uff1a", ":")
    if text.count('"') % 2:
        text = text[: text.rindex('"')] + text[text.rindex('"') + 1 :]
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        is_negative = _excludes(text, at) and text[:at][-1:].isspace() | (at == 0)
        at += is_negative
        groups: tuple[str, ...] = (*PREFIXES, "other")
        if prefix := _prefix(text, at):
            at += len(prefix) + 1
            blanks = len(text[at:]) - len(text[at:].lstrip())
            if at + blanks == len(text) or (
                blanks and _prefix(text, at + blanks + (text[at + blanks] == "-"))
            ):
                continue
            at += blanks
            groups = (prefix,)
            if _excludes(text, at):
                is_negative = True
                at += 1
        if text[at] == '"':
            phrase = text[at + 1 : text.index('"', at + 1)]
            at += len(phrase) + 2
            if spots(plain(phrase), is_joined=True):
                yield Words(groups, plain(phrase), is_phrase=True, is_negative=is_negative)
            continue
        start = at
        while at < len(text) and not text[at].isspace() and text[at] != '"':
            at += 1
        item = text[start:at]
        if not _prefix(item, 0) or len(_prefix(item, 0)) + 1 < len(item) or prefix:
            is_open = item.endswith("*") or (is_typing and at == len(text))
            words = Words(groups, plain(item.rstrip("*")), is_negative=is_negative)
            yield from _iter_pieces(words, is_open=is_open)


def _excludes(text: str, at: int) -> bool:
    following = text[at + 1 : at + 2]
    return text[at : at + 1] == "-" and following not in ("", "-") and not following.isspace()


def _prefix(text: str, at: int) -> str:
    start = text[at : at + 10]
    found = [prefix for prefix in PREFIXES if _lower(start).startswith(prefix + ":")]
    return found[0] if found else ""


def _lower(text: str) -> str:
    return (
        text.lower() if text.isascii() else "".join(c.lower() if c.isascii() else c for c in text)
    )


def _iter_pieces(words: Words, *, is_open: bool) -> Iterator[Words]:
    """The words and addresses in what was typed without blanks."""
    text = words.text
    pieces: list[tuple[int, int]] = []
    for spot in spots(text, is_joined=True):
        if pieces and (spot.follows or text[pieces[-1][1] : spot.start] == "@"):
            pieces[-1] = (pieces[-1][0], spot.end)
        else:
            pieces.append((spot.start, spot.end))
    for start, end in pieces:
        piece = replace(words, text=text[start:end])
        is_last = is_open and end == len(text)
        [word, *_] = spots(piece.text, is_joined=True)
        is_short = len(word.written) < 4 and "@" not in piece.text
        yield replace(piece, is_beginning=is_last and not is_short)


# An index in memory


def may_have(tokens: set[str], query: Query) -> bool:
    """What an index that has these tokens of a resume says about it."""
    return all(_may_have(tokens, term) is not term.is_negative for term in query.looked_up)


def _may_have(tokens: set[str], term: Term) -> bool:
    return any(tokens.issuperset(row) for row in term.rows) or any(
        token.startswith(term.beginnings) for token in tokens
    )
