"""Checks that there are fonts for the scripts of resumes."""

import contextlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from resumes.health.findings import Finding, warning
from resumes.rendering import Renderer, RenderingFailed, compose
from resumes.rendering.fonts import HAN, JAPANESE, Script, find_scripts, font_folders, version
from resumes.store import accounts, stored_resumes
from resumes.store.store import Store

SUBJECT: Final = "fonts"

MAX_ACCOUNTS: Final = 50
MAX_RESUMES: Final = 20
"""The names of the newest resumes of the largest accounts are looked at, this many of each."""

MAX_SAMPLE_CHARS: Final = 20


def read_names(store: Store) -> Sequence[str]:
    """Return names and titles of the newest resumes in the largest accounts."""
    known = accounts.list_accounts(store)
    largest = heapq.nlargest(MAX_ACCOUNTS, known, key=lambda account: account.resume_count)
    return [
        f"{entry.name or ''} {entry.title or ''}"
        for account in largest
        if account.resume_count
        for entry in stored_resumes.list_newest(store, account.id, limit=MAX_RESUMES)
    ]


def iter_font_findings(names: Iterable[str], home: Path) -> Iterator[Finding]:
    """Check that PDFs can show the scripts of these names."""
    samples = _samples(names)
    folders = tuple(font_folders(home))
    try:
        missing = _find_missing(samples, folders, version(folders)) if samples else []
    except RenderingFailed as error:
        yield warning(
            SUBJECT,
            f"no PDF can be drawn: {str(error).partition(chr(10))[0]}",
            "Reinstall the service; its package typst draws PDFs",
        )
        return
    if not missing:
        yield Finding(SUBJECT, "there are fonts for the newest resumes")
        return
    *others, last = sorted(script.name for script in missing)
    named = f"{', '.join(others)} and {last}" if others else last
    packages = " and ".join(sorted({script.package for script in missing}))
    yield warning(
        SUBJECT,
        f"some resumes are in {named}, and no font has that: PDFs of them show boxes",
        f"Install {packages}, or put a font into {home / 'fonts'}",
    )


def _samples(names: Iterable[str]) -> tuple[tuple[Script, str], ...]:
    """Return the most common letters of each script."""
    whole: dict[Script, Counter[str]] = defaultdict(Counter)
    for name in names:
        for script, letters in find_scripts(name).items():
            whole[script] += letters
    if JAPANESE in whole and HAN in whole:
        whole[HAN] += whole.pop(JAPANESE)
    return tuple(
        (script, "".join(char for char, _ in letters.most_common(MAX_SAMPLE_CHARS)))
        for script, letters in sorted(whole.items())
    )


@lru_cache(maxsize=8)
def _find_missing(
    samples: tuple[tuple[Script, str], ...], folders: tuple[Path, ...], fonts: bytes
) -> list[Script]:
    """Return the scripts whose samples no font has, by drawing them. Raises RenderingFailed.

    `fonts` changes when fonts are installed or removed: the answer is cached until then.
    """
    with contextlib.closing(Renderer(folders)) as renderer:
        return [
            script
            for script, sample in samples
            if renderer.render(compose({"header": {"name": sample}, "sections": {}}, "")).missing
            is not None
        ]
