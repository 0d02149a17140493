"""Whether there are fonts for the scripts that resumes are written in."""

import heapq
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from resumes.health.findings import Finding, notice
from resumes.rendering import Renderer, RenderingFailed, compose
from resumes.rendering.identity import font_folders, version
from resumes.store import accounts, listing
from resumes.store.engine import Store

SUBJECT: Final = "fonts"

MOST_ACCOUNTS: Final = 50
NEWEST: Final = 20
"""So many resumes of each of the largest accounts are looked at: what those are called, no more."""

SAMPLE_CHARS: Final = 20

CJK_PACKAGE: Final = "fonts-noto-cjk"
OTHER_PACKAGE: Final = "fonts-noto-core"

_OTHERS: Final = frozenset(
    {
        "ARMENIAN", "BENGALI", "ETHIOPIC", "GEORGIAN", "GUJARATI", "GURMUKHI", "KANNADA", "KHMER",
        "LAO", "MALAYALAM", "MONGOLIAN", "MYANMAR", "ORIYA", "SINHALA", "TAMIL", "TELUGU", "THAI",
        "TIBETAN",
    }
)  # fmt: skip
"""How Unicode's names of letters begin. The package has fonts for all that are not here."""


class Script(NamedTuple):
    """A script that the fonts of the package do not have, and the Debian package of one that has."""

    name: str
    """As in `in Japanese`."""
    package: str


_JAPANESE: Final = Script("Japanese", CJK_PACKAGE)
_HAN: Final = Script("Chinese/Japanese", CJK_PACKAGE)
_CJK: Final = {
    "HIRAGANA": _JAPANESE,
    "KATAKANA": _JAPANESE,
    "HANGUL": Script("Korean", CJK_PACKAGE),
    "BOPOMOFO": _HAN,
    "CJK": _HAN,
}


def find_scripts(text: str) -> dict[Script, Counter[str]]:
    """Return the scripts that need a font beside those of the package, with their letters."""
    found: dict[Script, Counter[str]] = defaultdict(Counter)
    for char in text:
        if char.isascii():
            continue
        word = unicodedata.name(char, "").partition(" ")[0]
        if word in _CJK:
            found[_CJK[word]][char] += 1
        elif word in _OTHERS:
            found[Script(word.capitalize(), OTHER_PACKAGE)][char] += 1
    if _JAPANESE in found and _HAN in found:
        found[_JAPANESE] += found.pop(_HAN)
    return dict(found)


def font_remedy(text: str, home: Path) -> str:
    """Return how to come by a font for a text that none has."""
    packages = sorted({script.package for script in find_scripts(text)})
    install = f"install {' and '.join(packages)}, or " if packages else ""
    return f"{install}put a font into {home / 'fonts'}"


def read_names(store: Store) -> Sequence[str]:
    """Return what the newest resumes are called, those of the largest accounts."""
    known = [one for one in accounts.list_accounts(store) if one.resume_count]
    largest = heapq.nlargest(MOST_ACCOUNTS, known, key=lambda one: one.resume_count)
    return [
        f"{entry.name or ''} {entry.title or ''}"
        for account in largest
        for entry in listing.list_newest(store, account.id, limit=NEWEST)
    ]


def iter_font_findings(names: Iterable[str], home: Path) -> Iterator[Finding]:
    """Whether the scripts that these resumes are in can be drawn."""
    samples = _samples(names)
    folders = font_folders(home)
    try:
        missing = _find_missing(samples, tuple(folders), version(folders)) if samples else []
    except RenderingFailed as error:
        yield notice(
            SUBJECT,
            f"no PDF can be drawn: {str(error).partition(chr(10))[0]}",
            "Install the service anew; its package typst draws PDFs",
        )
        return
    if not missing:
        yield Finding(SUBJECT, "there are fonts for the newest resumes")
        return
    *others, last = sorted(script.name for script in missing)
    named = f"{', '.join(others)} and {last}" if others else last
    packages = " and ".join(sorted({script.package for script in missing}))
    yield notice(
        SUBJECT,
        f"some resumes are in {named}, and no font has that: PDFs of them show boxes",
        f"Install {packages}, or put a font into {home / 'fonts'}",
    )


def _samples(names: Iterable[str]) -> tuple[tuple[Script, str], ...]:
    """The commonest letters of each script."""
    whole: dict[Script, Counter[str]] = defaultdict(Counter)
    for name in names:
        for script, letters in find_scripts(name).items():
            whole[script] += letters
    if _JAPANESE in whole and _HAN in whole:
        whole[_HAN] += whole.pop(_JAPANESE)
    return tuple(
        (script, "".join(char for char, _ in letters.most_common(SAMPLE_CHARS)))
        for script, letters in sorted(whole.items())
    )


@lru_cache(maxsize=8)
def _find_missing(
    samples: tuple[tuple[Script, str], ...], folders: tuple[Path, ...], fonts: bytes
) -> list[Script]:
    """Return the scripts whose samples no font has, asking the process that draws PDFs.

    `fonts` changes when fonts come or go: the answer is known until then. Raises RenderingFailed.
    """
    renderer = Renderer(folders)
    try:
        return [script for script, sample in samples if _lacks(renderer, sample)]
    finally:
        renderer.close()


def _lacks(renderer: Renderer, sample: str) -> bool:
    page = compose({"header": {"name": sample}, "sections": {}}, "")
    return renderer.render(page).missing is not None
