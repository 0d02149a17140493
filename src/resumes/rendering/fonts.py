"""Find the fonts for PDFs, notice when they change, and name the packages of missing fonts."""

import contextlib
import hashlib
import os
import re
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent
SYSTEM_FONTS: Final = tuple(
    Path(folder)
    for folder in (
        "/usr/share/fonts", "/usr/local/share/fonts", "/System/Library/Fonts", "/Library/Fonts",
    )
)  # fmt: skip
VERSION_INTERVAL_S: Final = 60.0
"""The time until newly installed fonts are noticed."""

_known: dict[tuple[tuple[str, int], ...], tuple[float, bytes]] = {}


def font_folders(home: Path) -> list[Path]:
    """Return the folders of additional fonts, the user's first. They need not exist."""
    return [home / "fonts", *SYSTEM_FONTS]


def fallbacks(language: str) -> list[str]:
    """Return the fonts for characters that the resume's own fonts lack. The language's font comes
    first, since Chinese, Japanese and Korean fonts draw the same characters differently."""
    first = {"ja": "JP", "ko": "KR"}.get(language, "SC")
    cjk = [first, *(other for other in ("JP", "SC", "KR", "TC") if other != first)]
    return [
        "Open Sans", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari",
        *(f"Noto Sans CJK {area}" for area in cjk), "DejaVu Sans", "Noto Emoji",
    ]  # fmt: skip


def version(folders: Sequence[Path]) -> bytes:
    """Return a digest that changes with the code, the template, the libraries and the fonts."""
    key = tuple((str(folder), _changed_ns(folder)) for folder in folders)
    now = time.monotonic()
    made_at, known = _known.get(key, (-VERSION_INTERVAL_S, b""))
    if now - made_at >= VERSION_INTERVAL_S:
        known = _version(folders)
        _known.clear()
        _known[key] = now, known
    return known


def _changed_ns(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def _version(folders: Sequence[Path]) -> bytes:
    packages = [metadata.version(name) for name in ("resume-service", "typst", "python-docx")]
    whole = hashlib.sha256(repr(packages).encode())
    for path in sorted(FOLDER.glob("*.*")):
        whole.update(path.read_bytes())
    for folder in (FOLDER / "fonts", *folders):
        seen = set[str]()
        for place, inner, names in os.walk(folder, followlinks=True):  # like Typst
            if (real := os.path.realpath(place)) in seen:
                inner.clear()
                continue
            seen.add(real)
            inner.sort()
            for name in sorted(names):
                if name.lower().endswith((".ttf", ".otf", ".ttc", ".otc")):
                    # Ignore a dangling link: Typst does not use it.
                    with contextlib.suppress(OSError):
                        size_bytes = os.stat(os.path.join(place, name)).st_size  # noqa: PTH116, PTH118
                        whole.update(f"{name} {size_bytes}\n".encode(errors="surrogateescape"))
    return whole.digest()


CJK_PACKAGE: Final = "fonts-noto-cjk"
OTHER_PACKAGE: Final = "fonts-noto-core"
EMOJI_PACKAGE: Final = "fonts-noto-color-emoji"

_EMOJI: Final = re.compile(r"[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]")

_OTHERS: Final = frozenset(
    {
        "ARMENIAN", "BENGALI", "ETHIOPIC", "GEORGIAN", "GUJARATI", "GURMUKHI", "KANNADA", "KHMER",
        "LAO", "MALAYALAM", "MONGOLIAN", "MYANMAR", "ORIYA", "SINHALA", "TAMIL", "TELUGU", "THAI",
        "TIBETAN",
    }
)  # fmt: skip
"""The first words of the Unicode names of letters that need OTHER_PACKAGE. The service includes
fonts for all scripts that are neither here nor in `_CJK`."""


class Script(NamedTuple):
    """A script for which the service includes no font, and the Debian package of such a font."""

    name: str
    """The name as it is used in a sentence: `in Japanese`."""
    package: str


JAPANESE: Final = Script("Japanese", CJK_PACKAGE)
HAN: Final = Script("Chinese/Japanese", CJK_PACKAGE)
_CJK: Final = {
    "HIRAGANA": JAPANESE,
    "KATAKANA": JAPANESE,
    "HANGUL": Script("Korean", CJK_PACKAGE),
    "BOPOMOFO": HAN,
    "CJK": HAN,
}


def find_scripts(text: str) -> dict[Script, Counter[str]]:
    """Return the scripts for which the service includes no font, with their letters."""
    found: dict[Script, Counter[str]] = defaultdict(Counter)
    for char in text:
        if char.isascii():
            continue
        word = unicodedata.name(char, "").partition(" ")[0]
        if word in _CJK:
            found[_CJK[word]][char] += 1
        elif word in _OTHERS:
            found[Script(word.capitalize(), OTHER_PACKAGE)][char] += 1
    if JAPANESE in found and HAN in found:
        found[JAPANESE] += found.pop(HAN)
    return dict(found)


def font_packages(text: str) -> str:
    """Return the Debian packages that most likely have fonts for the text: `a and b`."""
    packages = {script.package for script in find_scripts(text)}
    if _EMOJI.search(text):
        packages.add(EMOJI_PACKAGE)
    return " and ".join(sorted(packages or {OTHER_PACKAGE}))
