"""Anonymous resumes: what is left out, and the name, which is replaced everywhere."""

import re
from collections.abc import Callable, Mapping
from typing import Final
from unicodedata import normalize

from resumes.rendering.phones import LIKE_DASHES, PLAIN, UNSEEN, PhoneNumber, iter_numbers

_LEFT_OUT: Final = frozenset({"findMeOnline", "references"})
MIN_WORD_CHARS: Final = 3
"""Words of the name that are shorter are too common to be replaced on their own."""

MAX_CHARS: Final = 200
"""How much of a name or contact is looked for: what is longer takes too long to find."""

DIGITS: Final = range(7, 21)
"""How many a phone number has. What has fewer is hidden only as it is written: a year could be meant."""

_UNSPACED: Final = (
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""What has no blanks between words, and says more with each character."""

_UNSPACED_PART: Final = re.compile(rf"(?:{_UNSPACED}){{2,}}")
_MARKS: Final = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    r"\u064b-\u065f\u0670\u06d6-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u07fd\u0816-\u082d"
    r"\u0859-\u085b\u0897-\u089f\u08ca-\u0963\u0966-\u0dff"
)
"""Vowel signs, accents and the like, which are parts of words but no letters to `re`; and what is
among them, as most of the scripts of India."""

_SPACED: Final = rf"(?:(?!{_UNSPACED})[^\W_]|[{_MARKS}])"
"""A part of a word of any other script: `Ada` is a word of `我是Ada`."""

_WORD: Final = re.compile(rf"{_SPACED}+|{_UNSPACED}+")
_JOINED: Final = re.compile(rf"{_SPACED}+(?:'{_SPACED}+)+")
"""What an apostrophe is part of."""

_BETWEEN_DIGITS: Final = rf"[\s().\-/~_\u00b7\u2022\u2027\u2044\u2215\u2219\u30fb{LIKE_DASHES}]*"
"""What groups the digits of a phone number, each time in another way."""

_TRUNK: Final = r"(?:06?|[18])"
"""What is dialed before a number within its country: 0 in most, 06 in Hungary, 8 in Russia, 1 in America."""

_DIGITS_WITH_TRUNK: Final = 11
"""The digits of a number in Russia or America with the 8 or 1, which may also be part of the number."""

_ADDRESS: Final = re.compile(r"[^][\s<>(),;:|/\"]{1,64}@[^][\s<>(),;:|/\"@?]+(?<![.])")
"""What an email field holds in addition: a name, `mailto:`, another address."""

_BLANKS: Final = r"\s{0,3}"
"""No more: with any number of them, two separators in a row take a time that grows with its square."""

_AT: Final = re.compile(
    rf"{_BLANKS}[\[({{<]{_BLANKS}(?:at|@){_BLANKS}[])}}>]{_BLANKS}|\s{{1,3}}at\s{{1,3}}|{_BLANKS}@{_BLANKS}",
    re.IGNORECASE,
)
_DOT: Final = re.compile(
    rf"{_BLANKS}[\[({{<]{_BLANKS}(?:dot|\.){_BLANKS}[])}}>]{_BLANKS}|\s{{1,3}}dot\s{{1,3}}|\.",
    re.IGNORECASE,
)
"""How people write an address that programs shall not find."""

_BEFORE_WEBSITE: Final = re.compile(r"^(?:https?://)?(?:www\.)?|/$", re.IGNORECASE)
_HIDDEN: Final = "\ufffe"
"""What stands for the alias until all is found: it is no character of any text."""

_REPEATED: Final = re.compile(rf"{_HIDDEN}(?:(?:\s+|[-\u2010-\u2015]){_HIDDEN})*")
_UNPARTED: Final = re.compile(rf"(?:(?!{_UNSPACED})[^\s<>()[\]{{}}\",;|\u3001\u3002\u060c\u061b])+")
_IN_ADDRESS: Final = re.compile(rf"@|://|\bwww\.|[\w{_HIDDEN}]\.[a-z]{{2}}")
"""What an email or web address is known by."""


def alias_of(resume_id: str) -> str:
    """Return the replacement for a name: `Candidate 7E2`."""
    return f"Candidate {resume_id[-3:].upper()}"


class Anonymizer:
    """Replaces the name and the contacts of a header, as a page shows them."""

    def __init__(self, header: Mapping[str, str], resume_id: str) -> None:
        self.alias = alias_of(resume_id)
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
            _apart(whole, name.strip()) if whole else "",
            *map(re.escape, _UNSPACED_PART.findall(name)),
            *(_joined_pattern(word) for word in _JOINED.findall(f"{name} {_unaccented(name)}")),
        ]
        self._known = re.compile("|".join(filter(None, known)) or r"(?!)")
        words = _WORD.findall(name)
        self._words = {_caseless(word) for word in words if len(word) >= MIN_WORD_CHARS}

    def leaves_out(self, section_type: str) -> bool:
        """Return whether sections of the type identify somebody on their own."""
        return section_type in _LEFT_OUT

    def replace(self, text: str) -> str:
        """Return the text with the alias for the name, each longer word of it, and the contacts."""
        text = self._hide(normalize("NFC", text).replace("\u00ad", ""))
        seen = UNSEEN.sub("", text)
        if seen == text:
            return text
        # What nobody sees may part what is to be hidden; elsewhere it says how a text is set.
        replaced = self._hide(seen)
        return text if replaced == seen else replaced

    def _hide(self, text: str) -> str:
        hidden = _sub(self._known, len, text)
        hidden = _sub(_WORD, self._measure_word, hidden)
        if _HIDDEN not in hidden:
            return text
        return _REPEATED.sub(self.alias, _sub(_UNPARTED, _measure_address, hidden))

    def _measure_word(self, word: str) -> int:
        # In a set: a name of many words would take a pattern too long to try.
        return len(word) if _caseless(word) in self._words else 0


def _measure_address(part: str) -> int:
    """Return how much of it is an address that holds something hidden."""
    is_hidden = _HIDDEN in part and _IN_ADDRESS.search(part)
    return len(part.rstrip(".:!?'")) if is_hidden else 0


def _sub(pattern: re.Pattern[str], measure: Callable[[str], int], text: str) -> str:
    """Hide so much of what matches once the text is plain, which has as many characters."""
    parts, end = [], 0
    for found in pattern.finditer(text.translate(PLAIN)):
        if count := measure(found[0]):
            parts += [text[end : found.start()], _HIDDEN]
            end = found.start() + count
    return "".join([*parts, text[end:]])


def _seen(text: str | None) -> str:
    return UNSEEN.sub("", normalize("NFC", text or "")).translate(PLAIN).strip()


def _unaccented(word: str) -> str:
    """Return the word as on a keyboard without its letters: `Hopital` for `Hôpital`."""
    plain = normalize("NFD", word.replace("\u0131", "i"))
    return normalize("NFC", re.sub(r"(?<=[A-Za-z\u0370-\u03ff])[\u0300-\u036f]+", "", plain))


def _caseless(word: str) -> str:
    """Return the word as in any case: capitals of Turkish change the dot of an i, and those of Greek
    have no accents."""
    caseless = word.casefold()
    return caseless if caseless.isascii() else _unaccented(caseless)


def _joined_pattern(word: str) -> str:
    """Return the pattern of a word such as `O'Neil`, which some write as `ONeil`."""
    without = word.replace("'", "")
    if len(without) < MIN_WORD_CHARS:
        return ""
    # In this case only: `Said` may not be the name Sa'id.
    bare = f"{without}|{without.upper()}" if re.match(r"\w'[A-Z]", word) else r"(?!)"
    return rf"{_apart(word, word)}|(?<!{_SPACED})(?:{bare})(?!{_SPACED})"


def _contact_pattern(contact: str) -> str:
    pattern = r"\s+".join(map(re.escape, contact[:MAX_CHARS].split()))
    if len(contact) > MAX_CHARS:
        # The rest of a long address, too, in which no blank is.
        return _apart(rf"{pattern}\S*", contact[:1])
    return _apart(pattern, contact)


def _address_pattern(address: str) -> str:
    """Return the pattern of an email address as people write it for other people."""
    name, _, host = address.partition("@")
    dotted = (rf"(?:{_DOT.pattern})".join(map(re.escape, part.split("."))) for part in (name, host))
    return _apart(rf"(?:{_AT.pattern})".join(dotted), address)


def _number_pattern(number: PhoneNumber) -> str:
    """Return the pattern of a phone number however it is grouped, with and without its country code;
    empty for what may be no such number."""
    country, national = number.country, number.national
    if not country:
        national = national.removeprefix("0")
    if len(number.country + number.national) not in DIGITS:
        return ""
    gap = _BETWEEN_DIGITS
    abroad = rf"(?:00|011){gap}"
    code = rf"(?:{abroad})?{_spelled(country)}" if country else rf"(?:\+\s?|{abroad})\d{{1,3}}"
    before = rf"(?:[+(]{{0,2}}{code}{gap}(?:{_TRUNK}{gap})?|\(?{_TRUNK}{gap})"
    # Without what is before it, a short number may be any other.
    often = "?" if len(national) in DIGITS else ""
    spelled = _spelled(national)
    if not country and len(national) == _DIGITS_WITH_TRUNK and national[0] in "18":
        spelled = rf"(?:{_spelled(national[0])}{gap})?{_spelled(national[1:])}"
    return rf"(?<!\d)(?:{before}){often}\(?{spelled}(?!\d)"


def _spelled(digits: str) -> str:
    """Return the pattern of digits however they are grouped."""
    return _BETWEEN_DIGITS.join(digits)


def _apart(pattern: str, text: str) -> str:
    """Return the pattern of a text where it is not part of another word."""
    before = rf"(?<!{_SPACED})" if re.match(_SPACED, text) else ""
    after = rf"(?!{_SPACED})" if re.match(_SPACED, text[-1:]) else ""
    # Only here: it takes long to prepare the letters around it for both cases.
    return f"{before}(?i:{pattern}){after}"
