"""Anonymous resumes: which sections are left out, and how the name is replaced everywhere."""

import re
from collections.abc import Callable, Mapping
from typing import Final
from unicodedata import normalize

from resumes.rendering.phones import LIKE_DASHES, PLAIN, UNSEEN, PhoneNumber, iter_numbers

_LEFT_OUT: Final = frozenset({"findMeOnline", "references"})
MIN_WORD_CHARS: Final = 3
"""Shorter words of the name are too common to be replaced on their own."""

MAX_CHARS: Final = 200
"""The maximum length of a name or contact that is searched for; longer ones take too long."""

DIGITS: Final = range(7, 21)
"""How many digits a phone number has. Fewer are hidden only as written, since they could be a year."""

_UNSPACED: Final = (
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Scripts without blanks between words, whose characters carry more meaning."""

_UNSPACED_PART: Final = re.compile(rf"(?:{_UNSPACED}){{2,}}")
_MARKS: Final = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    r"\u064b-\u065f\u0670\u06d6-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u07fd\u0816-\u082d"
    r"\u0859-\u085b\u0897-\u089f\u08ca-\u0963\u0966-\u0dff"
)
"""Vowel signs, accents and the like, which are parts of words but not letters for `re`; the ranges also
contain letters, such as those of most scripts of India."""

_SPACED: Final = rf"(?:(?!{_UNSPACED})[^\W_]|[{_MARKS}])"
"""A part of a word of any other script: `Ada` is a word of `我是Ada`."""

_WORD: Final = re.compile(rf"{_SPACED}+|{_UNSPACED}+")
_JOINED: Final = re.compile(rf"{_SPACED}+(?:'{_SPACED}+)+")
"""A word with an apostrophe."""

_BETWEEN_DIGITS: Final = rf"[\s().\-/~_\u00b7\u2022\u2027\u2044\u2215\u2219\u30fb{LIKE_DASHES}]*"
"""The characters that may group the digits of a phone number."""

_TRUNK: Final = r"(?:06?|[18])"
"""The prefix of calls within a country: 0 in most, 06 in Hungary, 8 in Russia, 1 in America."""

_DIGITS_WITH_TRUNK: Final = 11
"""The number of digits in Russia or America with the 8 or 1, which may also be part of the number."""

_ADDRESS: Final = re.compile(r"[^][\s<>(),;:|/\"]{1,64}@[^][\s<>(),;:|/\"@?]+(?<![.])")
"""The address in an email field, which may also contain a name, `mailto:` or another address."""

_BLANKS: Final = r"\s{0,3}"
"""Bounded, since without a limit two separators in a row would take quadratic time."""

_AT: Final = re.compile(
    rf"{_BLANKS}[\[({{<]{_BLANKS}(?:at|@){_BLANKS}[])}}>]{_BLANKS}|\s{{1,3}}at\s{{1,3}}|{_BLANKS}@{_BLANKS}",
    re.IGNORECASE,
)
_DOT: Final = re.compile(
    rf"{_BLANKS}[\[({{<]{_BLANKS}(?:dot|\.){_BLANKS}[])}}>]{_BLANKS}|\s{{1,3}}dot\s{{1,3}}|\.",
    re.IGNORECASE,
)
"""The forms in which people hide an address from programs."""

_BEFORE_WEBSITE: Final = re.compile(r"^(?:https?://)?(?:www\.)?|/$", re.IGNORECASE)
_HIDDEN: Final = "\ufffe"
"""The placeholder of the alias until everything is found; no text contains this character."""

_REPEATED: Final = re.compile(rf"{_HIDDEN}(?:(?:\s+|[-\u2010-\u2015]){_HIDDEN})*")
_UNPARTED: Final = re.compile(rf"(?:(?!{_UNSPACED})[^\s<>()[\]{{}}\",;|\u3001\u3002\u060c\u061b])+")
_IN_ADDRESS: Final = re.compile(rf"@|://|\bwww\.|[\w{_HIDDEN}]\.[a-z]{{2}}")
"""The parts by which an email or web address is recognized."""


def alias_of(resume_id: str) -> str:
    """Return the replacement for a name: `Candidate 7E2`."""
    return f"Candidate {resume_id[-3:].upper()}"


class Anonymizer:
    """Replaces the name of a header by the alias, and the contacts, as a page shows them."""

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
            _apart(whole, name.strip()) if whole else "",
            *map(re.escape, _UNSPACED_PART.findall(name)),
            *(_joined_pattern(word) for word in _JOINED.findall(f"{name} {_unaccented(name)}")),
        ]
        self._known = re.compile("|".join(filter(None, known)) or r"(?!)")
        words = _WORD.findall(name)
        self._words = {_caseless(word) for word in words if len(word) >= MIN_WORD_CHARS}

    def leaves_out(self, section_type: str) -> bool:
        """Return whether sections of this type identify the person even without a name."""
        return section_type in _LEFT_OUT

    def replace(self, text: str) -> str:
        """Return the text with the alias for the name, each longer word of it, and the contacts."""
        text = self._hide(normalize("NFC", text).replace("\u00ad", ""))
        seen = UNSEEN.sub("", text)
        if seen == text:
            return text
        # Invisible characters may split a name or contact; in other texts they control the layout.
        replaced = self._hide(seen)
        return text if replaced == seen else replaced

    def _hide(self, text: str) -> str:
        hidden = _sub(self._known, len, text)
        hidden = _sub(_WORD, self._measure_word, hidden)
        if _HIDDEN not in hidden:
            return text
        return _REPEATED.sub(self.alias, _sub(_UNPARTED, _measure_address, hidden))

    def _measure_word(self, word: str) -> int:
        # Words are in a set, since the pattern of a name with many words would be too slow.
        return len(word) if _caseless(word) in self._words else 0


def _measure_address(part: str) -> int:
    """Return the length of the address at the beginning that contains a hidden text."""
    is_hidden = _HIDDEN in part and _IN_ADDRESS.search(part)
    return len(part.rstrip(".:!?'")) if is_hidden else 0


def _sub(pattern: re.Pattern[str], measure: Callable[[str], int], text: str) -> str:
    """Hide as many characters of each match as `measure` returns. The match is made in the plain text,
    which has the same length."""
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
    """Return the word in a form that ignores case: Turkish capitals change the dot of an i, and Greek
    capitals have no accents."""
    caseless = word.casefold()
    return caseless if caseless.isascii() else _unaccented(caseless)


def _joined_pattern(word: str) -> str:
    """Return the pattern of a word such as `O'Neil`, which is also written as `ONeil`."""
    without = word.replace("'", "")
    if len(without) < MIN_WORD_CHARS:
        return ""
    # Only with this case, since `Said` may not be the name Sa'id.
    bare = f"{without}|{without.upper()}" if re.match(r"\w'[A-Z]", word) else r"(?!)"
    return rf"{_apart(word, word)}|(?<!{_SPACED})(?:{bare})(?!{_SPACED})"


def _contact_pattern(contact: str) -> str:
    pattern = r"\s+".join(map(re.escape, contact[:MAX_CHARS].split()))
    if len(contact) > MAX_CHARS:
        # Hide the rest of a long address too, up to a blank.
        return _apart(rf"{pattern}\S*", contact[:1])
    return _apart(pattern, contact)


def _address_pattern(address: str) -> str:
    """Return the pattern of an email address as people write it for other people."""
    name, _, host = address.partition("@")
    dotted = (rf"(?:{_DOT.pattern})".join(map(re.escape, part.split("."))) for part in (name, host))
    return _apart(rf"(?:{_AT.pattern})".join(dotted), address)


def _number_pattern(number: PhoneNumber) -> str:
    """Return the pattern of a phone number in any grouping, with and without its country code; empty if
    it may not be a phone number."""
    country, national = number.country, number.national
    if not country:
        national = national.removeprefix("0")
    if len(number.country + number.national) not in DIGITS:
        return ""
    gap = _BETWEEN_DIGITS
    abroad = rf"(?:00|011){gap}"
    code = rf"(?:{abroad})?{_spelled(country)}" if country else rf"(?:\+\s?|{abroad})\d{{1,3}}"
    before = rf"(?:[+(]{{0,2}}{code}{gap}(?:{_TRUNK}{gap})?|\(?{_TRUNK}{gap})"
    # Without its prefix, a short number may be any other number.
    often = "?" if len(national) in DIGITS else ""
    spelled = _spelled(national)
    if not country and len(national) == _DIGITS_WITH_TRUNK and national[0] in "18":
        spelled = rf"(?:{_spelled(national[0])}{gap})?{_spelled(national[1:])}"
    return rf"(?<!\d)(?:{before}){often}\(?{spelled}(?!\d)"


def _spelled(digits: str) -> str:
    """Return the pattern of digits in any grouping."""
    return _BETWEEN_DIGITS.join(digits)


def _apart(pattern: str, text: str) -> str:
    """Return the pattern of a text where it is not part of another word."""
    before = rf"(?<!{_SPACED})" if re.match(_SPACED, text) else ""
    after = rf"(?!{_SPACED})" if re.match(_SPACED, text[-1:]) else ""
    # The flag is only here, as compiling the surrounding letters for both cases takes long.
    return f"{before}(?i:{pattern}){after}"
