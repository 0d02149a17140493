"""What the page of the API gives as figures is what is in force."""

from pathlib import Path
from typing import Final

import pytest

from resumes.settings import Settings
from resumes.store import idempotency
from resumes.store.stored_resumes import DEFAULT_LIMIT, MAX_LIMIT
from server import connections, deadlines, pdf_route, rate_limits, request, routes

pytestmark = pytest.mark.docs

SETTINGS: Final = Settings()


def in_words(number: float) -> str:
    """A number as the page has it."""
    return {0.01: "hundredth", 8: "eight", 1_000: "thousand"}.get(number, f"{number:,}")


def binary(size_bytes: int) -> str:
    """A size as the page has it."""
    mib = size_bytes / 1024**2
    return f"{mib:g} MiB" if mib >= 1 else f"{mib * 1024:g} KiB"


TIMEOUT: Final = f"{SETTINGS.client_timeout_s:g} s (`client_timeout_s`)"

SENTENCES: Final = {
    "api.md": [
        f"is valid for {idempotency.KEPT.total_seconds() / 3_600:g} hours from the create",
        f"waits for the first, up to {routes.KEY_DEADLINE_S:g} seconds, then gets 409",
        f"`limit` is 1 to {MAX_LIMIT}, {DEFAULT_LIMIT} by default",
        f"already has {in_words(pdf_route.MAX_WAITING)} PDFs being generated or waiting",
        f"may then make {SETTINGS.rate_per_minute} requests a minute, "
        f"{SETTINGS.rate_per_hour:,} an hour and {SETTINGS.rate_per_day:,} a day",
        f"more than a {in_words(rate_limits.LEFT)} tokens left, it may be too low by up to "
        f"{rate_limits.AHEAD} for each other worker, for a {in_words(rate_limits.AHEAD_S)} of a",
        f"| request line | {binary(request.TARGET_BYTES + 16)} |",
        f"| request headers | {binary(request.HEAD_BYTES)}, {request.MAX_FIELDS} fields |",
        f"| resume | {binary(SETTINGS.max_body_bytes)} (`max_body_bytes`) |",
        f"| TLS handshake | {TIMEOUT} |",
        f"the first byte of a later request | {TIMEOUT} |",
        f"| body without progress | {TIMEOUT} |",
        f"| whole body | {SETTINGS.client_timeout_s:g} s, plus one second for each "
        f"{binary(deadlines.BODY_BYTES_PER_S)} received |",
        f"| response that is not read | {TIMEOUT} |",
        f"| idle connection | {deadlines.KEEP_ALIVE_S} s |",
        f"| open connections | {SETTINGS.max_connections:,} per worker (`max_connections`) |",
        f"| {binary(SETTINGS.body_memory_bytes)} per worker (`body_memory_bytes`) |",
        f"while {connections.REFUSED_AT_ONCE} such connections are open, any others are closed",
        f"waits {deadlines.STOP_S:g} s for incomplete ones",
    ],
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_page_gives_the_figures_that_are_in_force(repository: Path, name: str) -> None:
    text = " ".join((repository / "docs" / name).read_text(encoding="utf-8").split())
    assert [sentence for sentence in SENTENCES[name] if sentence not in text] == []
