"""The figures that the pages give are those in force."""

import inspect
from pathlib import Path
from typing import Final

import pytest

from cli.commands.resumes import CATCH_UP_TIMEOUT_S, EXPORT_CATCH_UP_TIMEOUT_S, SEARCH_TIMEOUT_S
from importer import hook, reader, watcher
from importer.hook import Hook
from importer.options import Options
from resumes.filesystems import DISK_FLOOR_BYTES
from resumes.health import store_checks
from resumes.rendering import child, fonts, page, renderer
from resumes.rendering.words import WORDS
from resumes.search.query import MAX_QUERY_CHARS, MAX_TERMS
from resumes.settings import Settings
from resumes.store import idempotency, search
from resumes.store.background import RETRY_S
from resumes.store.import_ledger import SOURCE_BYTES
from resumes.store.postgresql.writer import PROOF_TIMEOUT_S, THREADS
from resumes.store.stored_resumes import DEFAULT_LIMIT, MAX_LIMIT
from server import (
    connections,
    deadlines,
    health,
    rate_limits,
    rendering_route,
    request,
    routes,
    service,
)
from tui.screens.accounts import AccountsScreen
from tui.screens.base import ListScreen
from tui.screens.health import HealthScreen
from tui.screens.resume_views import PAGE_SIZE
from tui.widgets.paged_list import MAX_RELOADED_PAGES

pytestmark = pytest.mark.docs

SETTINGS: Final = Settings()
TIMEOUT: Final = f"{SETTINGS.client_timeout_s:g} s (`client_timeout_s`)"
OPTIONS: Final = Options()
WORKER: Final = store_checks.CONNECTIONS_OF_A_WORKER
OTHERS: Final = store_checks.CONNECTIONS_OF_OTHERS
HOOK: Final = {name: one.default for name, one in inspect.signature(Hook).parameters.items()}


def duration(seconds: float) -> str:
    """A duration as the pages have it."""
    words = {1.0: "one second", 2.0: "two seconds", 5.0: "five seconds", 60.0: "minute"}
    return words.get(seconds, f"{seconds:g} seconds")


def as_word(number: float) -> str:
    return {0.01: "hundredth", 0.75: "three quarters"}[number]


def size(size_bytes: int) -> str:
    """A size as the pages have it."""
    mib = size_bytes / 1024**2
    return f"{mib:g} MiB" if mib >= 1 else f"{mib * 1024:g} KiB"


SENTENCES: Final = {
    "api.md": [
        f"is valid for {idempotency.KEPT.total_seconds() / 3_600:g} hours after the create",
        f"if the first request does not finish within {routes.KEY_DEADLINE_S:g} seconds",
        f"`limit` sets the page size, from 1 to {MAX_LIMIT} ({DEFAULT_LIMIT} by default)",
        f"the request waited for {as_word(rendering_route.WAIT_SHARE)} of `pdf_timeout_s`",
        f"may make {SETTINGS.rate_per_minute} requests a minute, "
        f"{SETTINGS.rate_per_hour:,} an hour and {SETTINGS.rate_per_day:,} a day",
        f"more than {rate_limits.MIN_REMAINING:,} tokens are left, the number may be "
        f"too low by up to {rate_limits.BATCH_TOKENS} for each additional worker. The number is exact if the key has not been used in the last {as_word(rate_limits.FREQUENT_S)} of a",
        f"| request line | {size(request.TARGET_BYTES + 16)} |",
        f"| request headers | {size(request.HEAD_BYTES)}, {request.MAX_FIELDS} fields |",
        f"| resume | {size(SETTINGS.max_body_bytes)} (`max_body_bytes`) |",
        f"| TLS handshake | {TIMEOUT} |",
        f"the first byte of a later request | {TIMEOUT} |",
        f"| pause before the next part of the body | {TIMEOUT} |",
        f"| whole body | {SETTINGS.client_timeout_s:g} s, plus one second for each "
        f"{size(deadlines.BODY_BYTES_PER_S)} received |",
        f"less than {size(deadlines.READ_BYTES_PER_S)} a second | {TIMEOUT} |",
        f"| idle connection | {deadlines.KEEP_ALIVE_S} s |",
        f"| open connections | {SETTINGS.max_connections:,} per worker (`max_connections`), or fewer if",
        f"| bodies in memory | {size(connections.BODY_MEMORY_BYTES)} per worker |",
        f"If {connections.REFUSED_AT_ONCE} connections beyond the limit are already open, the service closes",
        f"waits {deadlines.STOP_S:g} s for the rest of each incomplete request",
    ],
    "importing.md": [
        f"the other resumes are still imported | `max_body_bytes` ({size(OPTIONS.limits.max_bytes)}) |",
        f"skipped members are not decompressed | `max_file_bytes` ({size(OPTIONS.limits.max_file_bytes)}) |",
        f"| resumes in a bundle | {OPTIONS.limits.max_parts:,} |",
        f"| members in a zip | {OPTIONS.limits.max_members:,} |",
        f"unchanged for `--settle` seconds ({OPTIONS.settle_s:g} by default)",
        f"unchanged for {reader.MAX_SETTLE_TIMES} \N{MULTIPLICATION SIGN} `--settle` seconds or for one {duration(reader.MIN_OPEN_S)}, whichever is longer",
        f"keeps trying for {reader.MAX_SETTLE_TIMES} \N{MULTIPLICATION SIGN} `--settle` seconds "
        f"(one {duration(reader.MAX_SETTLE_TIMES * OPTIONS.settle_s)} by default)",
        f"process has a file open, it waits until the file has been unchanged for {duration(reader.UNKNOWN_WRITER_SETTLE_S)}",
        f"If {OPTIONS.tuning.helper_from:,} or more files are waiting, the importer automatically starts a second",
        f"if a system limit was the reason, otherwise every {watcher.MAX_LIFETIME_S / 60:g} minutes |",
        f"no file has been processed for {duration(HOOK['quiet_s'])}, or after",
        f"or after {duration(HOOK['longest_s'])} if files keep arriving",
        f"a comma-separated list of up to {hook.MAX_ACCOUNTS:,} accounts",
        f"up to {hook.MAX_FILES:,} files, or fewer if their names are very long",
        f"(up to {hook.KEPT_BYTES // 1024} KiB of each stream, and up to {hook.MAX_LOGGED_LINES} lines in total)",
        f"running after {HOOK['timeout_s']:g} seconds, the importer kills",
        f"the command has {duration(HOOK['stop_wait_s'])} to finish",
    ],
    "pdf.md": [
        f"Translations exist for {len(WORDS)} languages",
        f"darkened to a contrast ratio of {page.CONTRAST:g} to 1",
        f"detects new fonts within a {duration(fonts.VERSION_INTERVAL_S)}",
        "`{}` and `{}`, and on macOS also `{}` and `{}`".format(*fonts.SYSTEM_FONTS),
        f"| {page.MAX_CHARS:,} characters; each text field counts as {page.CHARS_PER_TEXT} characters more than its length |",
        f"| time to generate one PDF | {renderer.TIMEOUT_S:g} seconds; over HTTP, `pdf_timeout_s`",
        f"| memory of the renderer | {size(child.MAX_MEMORY_BYTES)} |",
        f"| {as_word(rendering_route.WAIT_SHARE)} of `pdf_timeout_s` |",
        f"exits after it has been idle for a {duration(renderer.IDLE_S)}",
    ],
    "terminal.md": [
        f"rows are refreshed every {duration(ListScreen.REFRESH_S)}; accounts and findings are refreshed "
        f"every {duration(AccountsScreen.REFRESH_S)}",
        f"findings are refreshed every {duration(HealthScreen.REFRESH_S)}",
        f"more than {MAX_RELOADED_PAGES * PAGE_SIZE:,} rows down",
    ],
    "operations.md": [
        f"if its event loop is blocked for {service.SILENT_CHECKS / service.CHECKS_PER_S:g} s",
        f"cannot be read within {health.PROBE_S:g} seconds",
        f"does not reach the disk within {health.PROBE_S:g} seconds",
        f"less than {size(DISK_FLOOR_BYTES)} is free, create requests are",
        f"at most once a {duration(health.CACHE_S).removeprefix('one ')}",
        f"opens up to {WORKER} connections ({THREADS} for writes",
        f"a terminal UI each open up to {THREADS} connections for writes and a few for reads",
        f"may take up to {PROOF_TIMEOUT_S:g} more seconds, until its outcome is known",
        f"Allow {WORKER} connections for each worker and about {OTHERS} for everything else",
        f"after {search.TIMEOUT_S * 1_000:g} ms ({SEARCH_TIMEOUT_S:g} s for `resumes list`)",
        f"for up to {CATCH_UP_TIMEOUT_S:g} and {EXPORT_CATCH_UP_TIMEOUT_S:g} seconds",
        f"retries the update every {RETRY_S:g} seconds",
    ],
    "finding.md": [
        f"up to {MAX_TERMS} words and phrases, and {MAX_QUERY_CHARS} characters",
        f"`list` for up to {CATCH_UP_TIMEOUT_S:g} seconds, `export` for up to "
        f"{EXPORT_CATCH_UP_TIMEOUT_S:g} seconds",
    ],
    "guides/three-machines.md": [f"plan for {3 * (2 * WORKER + OTHERS)} connections"],
    "security.md": [f"the first {SOURCE_BYTES // 1024} KiB of each failed, held or duplicate file"],
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_page_gives_the_figures_that_are_in_force(repository: Path, name: str) -> None:
    text = " ".join((repository / "docs" / name).read_text(encoding="utf-8").split())
    assert [sentence for sentence in SENTENCES[name] if sentence not in text] == []
