"""The few words that a page adds, in the resume's own language; and which language that is."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple


class Words(NamedTuple):
    """What stands for a date that is not over, and before a grade."""

    present: str
    grade: str = "GPA"


WORDS: Final = {
    "en": Words("Present"),
    "ar": Words("حتى الآن", "المعدل"),
    "cs": Words("současnost", "Průměr"),
    "da": Words("nu", "Karakter"),
    "de": Words("heute", "Note"),
    "el": Words("σήμερα", "Βαθμός"),
    "es": Words("actualidad", "Nota media"),
    "fi": Words("nykyhetki", "Keskiarvo"),
    "fr": Words("aujourd’hui", "Moyenne"),
    "he": Words("היום", "ממוצע"),
    "hi": Words("वर्तमान", "GPA"),
    "hu": Words("jelenleg", "Átlag"),
    "it": Words("oggi", "Voto"),
    "ja": Words("現在"),
    "ko": Words("현재", "학점"),
    "nl": Words("heden", "Cijfer"),
    "no": Words("nå", "Karakter"),
    "pl": Words("obecnie", "Średnia"),
    "pt": Words("atual", "Média"),
    "ro": Words("prezent", "Medie"),
    "ru": Words("настоящее время", "Средний балл"),
    "sv": Words("nu", "Betyg"),
    "tr": Words("devam ediyor", "Not ortalaması"),
    "uk": Words("дотепер", "Середній бал"),
    "zh": Words("至今", "绩点"),
}

_SCRIPTS: Final = {
    "arabic": r"[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff]",
    "hebrew": r"[\u0590-\u05ff\ufb1d-\ufb4f]",
    "devanagari": r"[\u0900-\u097f]",
    "kana": r"[\u3040-\u30ff\u31f0-\u31ff]",
    "hangul": r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]",
    "han": r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]",
    "greek": r"[\u0370-\u03ff]",
    "cyrillic": r"[\u0400-\u052f]",
    "latin": r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]",
}
_COUNTED: Final = {script: re.compile(chars) for script, chars in _SCRIPTS.items()}

_BY_SCRIPT: Final = {
    "arabic": "ar", "hebrew": "he", "devanagari": "hi", "hangul": "ko", "greek": "el",
}  # fmt: skip

RIGHT_TO_LEFT: Final = frozenset({"ar", "he"})

_COMMON: Final = {
    "en": "the and of for with to in on at by from as an is",
    "cs": "a v na se že pro jako do ze při od podle nebo",
    "da": "og i af for med til på som ved en der det jeg",
    "de": "und der die das für mit von in im zu den auf bei eine als",
    "es": "y de la el en los las para con del por una que",
    "fi": "ja on sekä että kanssa oli mukaan sekä tai ovat",
    "fr": "et de la le les des en pour du une dans sur avec au",
    "hu": "és a az egy hogy valamint által vagy mint szerint",
    "it": "e di la il per con del della in un che dei delle",
    "nl": "en de het van een voor met in op aan bij te",
    "no": "og i av for med til på som ved en jeg å ble",
    "pl": "i w z na do oraz się dla przy od ze po jako",
    "pt": "e de da do em para com os as na no uma dos",
    "ro": "și de la în pentru cu din pe ale un o care",
    "ru": "и в на с по для от из к за при как",
    "sv": "och i av för med till på som att en vid det är",
    "tr": "ve bir ile için olarak da de bu en çok",
    "uk": "і та в у на з до для від за що як із",
}
_COMMON_WORDS: Final = {language: frozenset(words.split()) for language, words in _COMMON.items()}
_WORD: Final = re.compile(r"[^\W\d_]+")

MAX_CHARS: Final = 20_000
"""So much is looked at: the language does not change after it."""


def count_scripts(texts: Iterable[str]) -> Counter[str]:
    """Count the letters of each script."""
    whole = "\n".join(texts)
    return Counter(
        {
            script: count
            for script, found in _COUNTED.items()
            if (count := len(found.findall(whole)))
        }
    )


def find_language(texts: Iterable[str]) -> str:
    """Return the language that most of the texts seem to be in, as ISO 639-1; `en` in doubt."""
    whole = "\n".join(texts)[:MAX_CHARS]
    scripts = count_scripts([whole])
    if not scripts:
        return "en"
    if scripts["kana"] and scripts["kana"] + scripts["han"] > scripts["latin"] / 2:
        return "ja"
    if scripts["han"] > scripts["latin"] / 3:
        return "zh"
    [(script, _)] = scripts.most_common(1)
    if script in _BY_SCRIPT:
        return _BY_SCRIPT[script]
    said = Counter(word for word in _WORD.findall(whole.lower()))
    votes = {
        language: sum(said[word] for word in common)
        for language, common in _COMMON_WORDS.items()
        if (language in ("ru", "uk")) == (script == "cyrillic")
    }
    best = max(votes, key=lambda language: votes[language])
    if votes[best] > 2:
        return best
    return "ru" if script == "cyrillic" else "en"
