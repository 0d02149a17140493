"""The fonts of PDFs: where they are, which scripts need more, and when they change."""

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
"""How soon newly installed fonts are noticed."""

_known: dict[tuple[tuple[str, int], ...], tuple[float, bytes]] = {}


def font_folders(home: Path) -> list[Path]:
    """Return the folders whose fonts are used in addition to those of the package, the user's first. They
    need not exist."""
    return [home / "fonts", *SYSTEM_FONTS]


def fallbacks(language: str) -> list[str]:
    """Return the fonts for characters that the resume's own lack. Chinese, Japanese and Korean share
    characters and draw them differently, so the font of the language comes first."""
    first = {"ja": "JP", "ko": "KR"}.get(language, "SC")
    cjk = [first, *(other for other in ("JP", "SC", "KR", "TC") if other != first)]
    return [
        "Open Sans", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari",
        *(f"Noto Sans CJK {area}" for area in cjk), "DejaVu Sans", "Noto Emoji",
    ]  # fmt: skip


def version(folders: Sequence[Path]) -> bytes:
    """Return bytes that change when the same resume would be drawn differently: template, model, fonts."""
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
        for place, inner, names in os.walk(folder, followlinks=True):  # as Typst goes
            if (real := os.path.realpath(place)) in seen:
                inner.clear()
                continue
            seen.add(real)
            inner.sort()
            for name in sorted(names):
                if name.lower().endswith((".ttf", ".otf", ".ttc", ".otc")):
                    # A dangling link is not used for drawing.
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
"""Scripts by the beginning of their letters' Unicode names. The package has fonts for all others."""


class Script(NamedTuple):
    """A script that the fonts of the package lack, and the Debian package of a font that has it."""

    name: str
    """The name for a sentence: `in Japanese`."""
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
    """Return the scripts that need a font in addition to those of the package, with their letters."""
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
    """Return the Debian packages that most likely have fonts for the text, as `a and b`."""
    packages = {script.package for script in find_scripts(text)}
    if _EMOJI.search(text):
        packages.add(EMOJI_PACKAGE)
    return " and ".join(sorted(packages or {OTHER_PACKAGE}))
