"""What a PDF is called, and what its bytes depend on beside the resume."""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from resumes.rendering.anonymity import alias_of
from resumes.rendering.page import Choice
from resumes.store.listing import Entry

FOLDER: Final = Path(__file__).parent
SYSTEM_FONTS: Final = tuple(
    Path(folder)
    for folder in (
        "/usr/share/fonts", "/usr/local/share/fonts", "/System/Library/Fonts", "/Library/Fonts",
    )
)  # fmt: skip
VERSION_INTERVAL_S: Final = 60.0
"""How soon fonts that were installed are noticed."""

_CJK: Final = re.compile(
    r"[\u1100-\u11ff\u2e80-\u312f\u3130-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"
    r"\U00020000-\U0003ffff]"
)
_EMOJI: Final = re.compile(r"[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]")

_known: dict[tuple[tuple[str, int], ...], tuple[float, bytes]] = {}


def font_folders(home: Path) -> list[Path]:
    """Return the folders whose fonts are used beside those of the package, the user's first. They
    need not be there."""
    return [home / "fonts", *SYSTEM_FONTS]


def font_package(text: str) -> str:
    """Return the Debian package whose fonts have the characters of a text that no font here has."""
    if _CJK.search(text):
        return "fonts-noto-cjk"
    return "fonts-noto-color-emoji" if _EMOJI.search(text) else "fonts-noto-core"


def file_name(entry: Entry, choice: Choice) -> str:
    """Return the name for downloads that the list shows; an anonymous one names nobody."""
    if choice.is_anonymous:
        return f"{alias_of(entry.id).replace(' ', '')}Resume.pdf"
    return entry.filename


def version(folders: Sequence[Path]) -> bytes:
    """Return what changes when the same resume would be drawn otherwise: template, model, fonts."""
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
    packages = [metadata.version(name) for name in ("resume-service", "typst")]
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
                    # One that is a link to nothing is one that nobody draws with.
                    with contextlib.suppress(OSError):
                        size_bytes = os.stat(os.path.join(place, name)).st_size  # noqa: PTH116, PTH118
                        whole.update(f"{name} {size_bytes}\n".encode(errors="surrogateescape"))
    return whole.digest()
