"""What the pages of the importer and of PDFs give as figures is what is in force."""

import inspect
from pathlib import Path
from typing import Final

import pytest

from importer import batch, hook, watcher
from importer.hook import Hook
from importer.options import Options
from resumes.rendering import child, fonts, page, renderer
from server import pdf_route

pytestmark = pytest.mark.docs

OPTIONS: Final = Options()
HOOK: Final = {name: one.default for name, one in inspect.signature(Hook).parameters.items()}


def in_words(seconds: float) -> str:
    """A duration as the pages have it."""
    words = {1.0: "one second", 2.0: "two seconds", 60.0: "minute"}
    return words.get(seconds, f"{seconds:g} seconds")


def mebibytes(size_bytes: int) -> str:
    return f"{size_bytes / 1024**2:g} MiB"


SENTENCES: Final = {
    "importing.md": [
        f"rejected alone | `max_body_bytes` ({mebibytes(OPTIONS.limits.max_bytes)}) |",
        f"it decompresses to | `max_file_bytes` ({mebibytes(OPTIONS.limits.max_file_bytes)}) |",
        f"| resumes in a file | {OPTIONS.limits.max_parts:,} |",
        f"| members in a zip | {OPTIONS.limits.max_members:,} |",
        f"unchanged for `--settle` seconds ({OPTIONS.settle_s:g})",
        f"unchanged for {batch.MAX_SETTLE_TIMES} \N{MULTIPLICATION SIGN} `--settle`, at least one {in_words(batch.MIN_OPEN_S)}",
        f"retried for {batch.MAX_SETTLE_TIMES} \N{MULTIPLICATION SIGN} `--settle`, by default "
        f"one {in_words(batch.MAX_SETTLE_TIMES * OPTIONS.settle_s)}",
        f"cannot tell, {in_words(batch.UNPROVED_S)} without changes is enough",
        f"A backlog of {OPTIONS.tuning.helper_from:,} files automatically gets a second process",
        f"if a system limit was the reason, otherwise every {watcher.RENEW_S / 60:g} |",
        f"no file has been finished for {in_words(HOOK['quiet_s'])}, or every",
        f"or every {in_words(HOOK['longest_s'])} while files keep coming",
        f"the names of the accounts, comma-separated; at most {hook.MAX_ACCOUNTS:,}",
        f"After {hook.MAX_FILES:,} files, or very many long names",
        f"({hook.KEPT_BYTES // 1024} KiB of each stream, {hook.MAX_LOGGED_LINES} lines)",
        f"and after {HOOK['timeout_s']:g} seconds it is killed",
        f"an importer that is stopped gives it {in_words(HOOK['stop_wait_s'])}",
    ],
    "pdf.md": [
        f"darkened to a contrast of {page.CONTRAST:g} to 1",
        f"uses new fonts within a {in_words(fonts.VERSION_INTERVAL_S)}",
        f"| {page.MAX_CHARS:,} characters, counting {page.CHARS_PER_TEXT} extra for each text |",
        f"| drawing one PDF | {renderer.TIMEOUT_S:g} s; over HTTP `pdf_timeout_s`",
        f"| memory of the renderer | {mebibytes(child.MAX_MEMORY_BYTES)} |",
        f"being generated or waiting | {pdf_route.MAX_WAITING} |",
        f"and ends after a {in_words(renderer.IDLE_S)} without one",
    ],
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_page_gives_the_figures_that_are_in_force(repository: Path, name: str) -> None:
    text = " ".join((repository / "docs" / name).read_text(encoding="utf-8").split())
    assert [sentence for sentence in SENTENCES[name] if sentence not in text] == []
