"""Anonymize resumes: omit sections, and replace the name and the contacts in all texts."""

import re
from collections.abc import Callable, Mapping
from typing import Final
from unicodedata import normalize

from resumes.rendering.phones import LIKE_DASHES, PLAIN, UNSEEN, PhoneNumber, iter_numbers

_LEFT_OUT: Final = frozenset({"findMeOnline", "references"})
MIN_WORD_CHARS: Final = 3
"""The minimum length of a name's word that is replaced on its own; shorter ones are too common."""

MIN_HANDLE_CHARS: Final = 4
"""The minimum length of a name to search for in addresses; shorter ones can match by chance."""

MAX_CHARS: Final = 200
"""The number of characters of a name or contact that are searched for; more would take too long."""

DIGITS: Final = range(7, 21)
"""The possible numbers of digits of a phone number that is hidden in any grouping. A shorter number
is hidden only as it is written in the header, since it could also be a year."""

_UNSPACED: Final = (
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Characters of scripts that do not separate words with spaces; each carries more meaning."""

_UNSPACED_PART: Final = re.compile(rf"(?:{_UNSPACED}){{2,}}")
_MARKS: Final = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    r"\u064b-\u065f\u0670\u06d6-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u07fd\u0816-\u082d"
    r"\u0859-\u085b\u0897-\u089f\u08ca-\u0963\u0966-\u0dff"
)
"""Vowel signs, accents and similar marks, which are parts of words although `\\w` does not match
them. The ranges also contain letters, for example the letters of most Indian scripts."""

_SPACED: Final = rf"(?:(?!{_UNSPACED})[^\W_]|[{_MARKS}])"
"""A letter, digit or mark of any other script: `Ada` is a separate word in `我是Ada`."""

_WORD: Final = re.compile(rf"{_SPACED}+|{_UNSPACED}+")
_JOINED: Final = re.compile(rf"{_SPACED}+(?:'{_SPACED}+)+")
"""A word with an apostrophe."""

_BETWEEN_DIGITS: Final = rf"[\s().\-/~_\u00b7\u2022\u2027\u2044\u2215\u2219\u30fb{LIKE_DASHES}]*"
"""The characters that may group the digits of a phone number."""

_TRUNK: Final = r"(?:06?|[18])"
"""The prefix for domestic calls: 06 in Hungary, 8 in Russia, 1 in North America, elsewhere 0."""

_DIGITS_WITH_TRUNK: Final = 11
"""The length of a Russian or North American number that includes the prefix 8 or 1. In other
countries such an 8 or 1 can be a part of the number."""

_ADDRESS: Final = re.compile(r"[^][\s<>(),;:|/\"]{1,64}@[^][\s<>(),;:|/\"@?]+(?<![.])")
"""An address in an email field; the field may also contain a name, `mailto:` or another address."""

_BLANKS: Final = r"\s{0,3}"
"""Spaces around a separator; without a limit, two separators in a row take quadratic time."""

_AT: Final = re.compile(
    rf"{_BLANKS}[\[({{<]{_BLANKS}(?:at|@){_BLANKS}[])}}>]{_BLANKS}|\s{{1,3}}at\s{{1,3}}|{_BLANKS}@{_BLANKS}",
    re.IGNORECASE,
)
_DOT: Final = re.compile(
    rf"{_BLANKS}[\[({{<]{_BLANKS}(?:dot|\.){_BLANKS}[])}}>]{_BLANKS}|\s{{1,3}}dot\s{{1,3}}|\.",
    re.IGNORECASE,
)
"""How people write `@` and `.` to hide an address from programs: ` at `, `[dot]` and so on."""

_BEFORE_WEBSITE: Final = re.compile(r"^(?:https?://)?(?:www\.)?|/$", re.IGNORECASE)
_HIDDEN: Final = "\ufffe"
"""The placeholder for the alias until all matches are replaced; no text contains this character."""

_REPEATED: Final = re.compile(rf"{_HIDDEN}(?:(?:\s+|[-\u2010-\u2015]){_HIDDEN})*")
_UNPARTED: Final = re.compile(rf"(?:(?!{_UNSPACED})[^\s<>()[\]{{}}\",;|\u3001\u3002\u060c\u061b])+")
_IN_ADDRESS: Final = re.compile(
    # Accept a capitalized ending only before a path: `done.It` may be two sentences.
    rf"@|://|\b(?i:www)\.|[\w{_HIDDEN}]\.(?:[a-z]{{2}}|[A-Za-z]{{2,}}/)"
)
"""A part that identifies a text as an email or web address."""


def alias_of(resume_id: str) -> str:
    """Return the replacement for a name: `Candidate 7E2`."""
    return f"Candidate {resume_id[-3:].upper()}"


class Anonymizer:
    """Replaces the name and the contacts from a header with the alias."""

    def __init__(self, header: Mapping[str, str], alias: str) -> None:
        self.alias = alias
        name = _seen(header.get("name"))[:MAX_CHARS]
        website = _BEFORE_WEBSITE.sub("", _seen(header.get("website")))
        phone = _seen(header.get("phone"))
        email = _seen(header.get("email"))
        addresses = _ADDRESS.findall(_DOT.sub(".", _AT.sub("@", email[:MAX_CHARS])))
        contacts = dict.fromkeys([email, phone, website])
        whole = r"\s*".join(map(re.escape, name.split()))
        known = [
            *(_contact_pattern(text) for text in contacts if len(text) >= MIN_WORD_CHARS),
            *map(_address_pattern, addresses),
            *map(_number_pattern, iter_numbers(phone[:MAX_CHARS])),
            _apart(whole, name.strip(), has_genitive=" " in name) if whole else "",
            *map(re.escape, _UNSPACED_PART.findall(name)),
            *(_joined_pattern(word) for word in _JOINED.findall(f"{name} {_unaccented(name)}")),
        ]
        self._known = re.compile("|".join(filter(None, known)) or r"(?!)")
        words = _WORD.findall(name)
        self._words = {_caseless(word) for word in words if len(word) >= MIN_WORD_CHARS}
        handles = {*self._words, *(_caseless(address.partition("@")[0]) for address in addresses)}
        long = [re.escape(handle) for handle in handles if len(handle) >= MIN_HANDLE_CHARS]
        self._handles = re.compile("|".join(long) or r"(?!)")

    def leaves_out(self, section_type: str) -> bool:
        """Return whether sections of this type can identify the person even without the name."""
        return section_type in _LEFT_OUT

    def replace(self, text: str) -> str:
        """Replace the name, its longer words and the contacts with the alias."""
        text = self._hide(normalize("NFC", text).replace("\u00ad", ""))
        seen = UNSEEN.sub("", text)
        if seen == text:
            return text
        # Invisible characters may split a name or contact, but texts without a match need them.
        replaced = self._hide(seen)
        return text if replaced == seen else replaced

    def _hide(self, text: str) -> str:
        hidden = _sub(self._known, len, text)
        hidden = _sub(_WORD, self._measure_word, hidden)
        if _HIDDEN in hidden or _IN_ADDRESS.search(hidden.translate(PLAIN)):
            hidden = _sub(_UNPARTED, self._measure_address, hidden)
        return _REPEATED.sub(self.alias, hidden) if _HIDDEN in hidden else text

    def _measure_word(self, word: str) -> int:
        # Look words up in a set: a pattern of all words of a long name would be too slow.
        names = (word, word[:-1]) if word[-1] in "sS" else (word,)
        return next((len(name) for name in names if _caseless(name) in self._words), 0)

    def _measure_address(self, part: str) -> int:
        """Return how much of `part` to hide: 0 unless it is an address that reveals the name."""
        is_hidden = _IN_ADDRESS.search(part) and (
            _HIDDEN in part or self._handles.search(_caseless(part))
        )
        return len(part.rstrip(".:!?'")) if is_hidden else 0


def _sub(pattern: re.Pattern[str], measure: Callable[[str], int], text: str) -> str:
    """Replace the beginning of each match with the placeholder; `measure` returns its length.

    Matches are searched for in the text after `PLAIN`, which does not change its length."""
    parts, end = [], 0
    for found in pattern.finditer(text.translate(PLAIN)):
        if count := measure(found[0]):
            parts += [text[end : found.start()], _HIDDEN]
            end = found.start() + count
    return "".join([*parts, text[end:]])


def _seen(text: str | None) -> str:
    return UNSEEN.sub("", normalize("NFC", text or "")).translate(PLAIN).strip()


def _unaccented(word: str) -> str:
    """Return the word without accents: `Hopital` for `Hôpital`."""
    plain = normalize("NFD", word.replace("\u0131", "i"))
    return normalize("NFC", re.sub(r"(?<=[A-Za-z\u0370-\u03ff])[\u0300-\u036f]+", "", plain))


def _caseless(word: str) -> str:
    """Return the word in a form that ignores case: Turkish capitals change the dot of an i, and
    Greek capitals have no accents."""
    caseless = word.casefold()
    return caseless if caseless.isascii() else _unaccented(caseless)


def _joined_pattern(word: str) -> str:
    """Return a pattern for a word such as `O'Neil`, which is also written as `ONeil`."""
    without = word.replace("'", "")
    if len(without) < MIN_WORD_CHARS:
        return ""
    # Require these capitals without the apostrophe: `Said` need not be the name Sa'id.
    bare = f"{without}|{without.upper()}" if re.match(r"\w'[A-Z]", word) else r"(?!)"
    return rf"{_apart(word, word, has_genitive=True)}|(?<!{_SPACED})(?:{bare}){_GENITIVE}"


def _contact_pattern(contact: str) -> str:
    pattern = r"\s+".join(map(re.escape, contact[:MAX_CHARS].split()))
    if len(contact) > MAX_CHARS:
        # Hide the rest of a long address too, up to the next space.
        return _apart(rf"{pattern}\S*", contact[:1])
    return _apart(pattern, contact)


def _address_pattern(address: str) -> str:
    """Return a pattern for an email address, including forms such as `ada at example dot org`."""
    name, _, host = address.partition("@")
    dotted = (rf"(?:{_DOT.pattern})".join(map(re.escape, part.split("."))) for part in (name, host))
    return _apart(rf"(?:{_AT.pattern})".join(dotted), address)


def _number_pattern(number: PhoneNumber) -> str:
    """Return a pattern for a phone number in any grouping, with or without its country code.

    The pattern is empty if the number has too few or too many digits."""
    country, national = number.country, number.national
    if not country:
        national = national.removeprefix("0")
    if len(number.country + number.national) not in DIGITS:
        return ""
    gap = _BETWEEN_DIGITS
    abroad = rf"(?:00|011){gap}"
    code = rf"(?:{abroad})?{_spelled(country)}" if country else rf"(?:\+\s?|{abroad})\d{{1,3}}"
    before = rf"(?:[+(]{{0,2}}{code}{gap}(?:{_TRUNK}{gap})?|\(?{_TRUNK}{gap})"
    # A short number without its prefix could be any other number.
    often = "?" if len(national) in DIGITS else ""
    spelled = _spelled(national)
    if not country and len(national) == _DIGITS_WITH_TRUNK and national[0] in "18":
        spelled = rf"(?:{_spelled(national[0])}{gap})?{_spelled(national[1:])}"
    return rf"(?<!\d)(?:{before}){often}\(?{spelled}(?!\d)"


def _spelled(digits: str) -> str:
    """Return a pattern for the digits in any grouping."""
    return _BETWEEN_DIGITS.join(digits)


# In English, German and Scandinavian languages, an s often follows a name: `Lovelaces Team`.
_GENITIVE: Final = rf"(?=[sS]?(?!{_SPACED}))"


def _apart(pattern: str, text: str, *, has_genitive: bool = False) -> str:
    """Return a pattern for the text as a separate word; with `has_genitive`, an s may follow it."""
    before = rf"(?<!{_SPACED})" if re.match(_SPACED, text) else ""
    last = _GENITIVE if has_genitive else rf"(?!{_SPACED})"
    after = last if re.match(_SPACED, text[-1:]) else ""
    # Ignore case only here: compiling the surrounding character ranges for both cases is slow.
    return f"{before}(?i:{pattern}){after}"
