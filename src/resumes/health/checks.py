"""Run all checks of `resumes doctor` and the Health screen, and check settings, home and disk."""

import contextlib
import heapq
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from resumes.errors import InvalidArgument, ResumesError, StoreUnavailable
from resumes.external_analyzer import AnalysisFailed, find_program
from resumes.filesystems import free_bytes
from resumes.health import import_checks, store_checks
from resumes.health.findings import Finding, Installation, remedy_for, warning
from resumes.health.metrics import QueryCache
from resumes.rendering import Renderer, RenderingFailed, branding, compose
from resumes.rendering.fonts import HAN, JAPANESE, Script, find_scripts, font_folders, version
from resumes.settings import Settings
from resumes.store import accounts, forgotten, import_history, plans, retention, stored_resumes
from resumes.store.addresses import Address, PostgresAddress, SqliteAddress, parse_address
from resumes.store.search_index import count_indexed
from resumes.store.sqlite.place import refuse_mount_point, refuse_second_name, refuse_special_files
from resumes.store.store import Store
from resumes.text import shell_line

MAX_ACCOUNTS: Final = 50
MAX_RESUMES: Final = 20
"""The number of newest resumes in each large account whose names are checked."""

MAX_SAMPLE_CHARS: Final = 20


def read_names(store: Store) -> Sequence[str]:
    """Return the names and titles of the newest resumes in the largest accounts."""
    known = accounts.list_accounts(store)
    largest = heapq.nlargest(MAX_ACCOUNTS, known, key=lambda account: account.resume_count)
    return [
        f"{entry.name or ''} {entry.title or ''}"
        for account in largest
        if account.resume_count
        for entry in stored_resumes.list_sorted(
            store, account.id, stored_resumes.Sort.NEWEST, limit=MAX_RESUMES
        ).entries
    ]


def iter_font_findings(names: Iterable[str], home: Path) -> Iterator[Finding]:
    """Check that PDFs can show the scripts of these names."""
    samples = _samples(names)
    folders = tuple(font_folders(home))
    try:
        missing = _find_missing(samples, folders, version(folders)) if samples else []
    except RenderingFailed as error:
        yield warning(
            "fonts",
            f"PDFs cannot be generated: {str(error).partition(chr(10))[0]}",
            "Check again when the machine is less busy, or reinstall the service; it generates PDFs with the typst package",
        )
        return
    if not missing:
        yield Finding("fonts", "fonts for the newest resumes are installed")
        return
    *others, last = sorted(script.name for script in missing)
    named = f"{', '.join(others)} and {last}" if others else last
    packages = " and ".join(sorted({script.package for script in missing}))
    yield warning(
        "fonts",
        f"some resumes are in {named}, for which no font is installed: their PDFs show boxes",
        f"Install {packages}, or put a font into {home / 'fonts'}",
    )


def _samples(names: Iterable[str]) -> tuple[tuple[Script, str], ...]:
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
    """Render the samples, and return the scripts that no font supports. Raises RenderingFailed.

    The result is cached until fonts are installed or removed, which changes `fonts`.
    """
    with contextlib.closing(Renderer(folders)) as renderer:
        return [
            script
            for script, sample in samples
            if renderer.render(compose({"header": {"name": sample}, "sections": {}}, "")).missing
            is not None
        ]


MIN_FREE_BYTES = 500 * 1024 * 1024


def iter_findings(installation: Installation, cache: QueryCache | None = None) -> Iterator[Finding]:
    """Run all checks, in the order of their dependencies.

    `cache` keeps the results of slow queries for the next call. Commands in findings have this
    installation's flags. Raises StoreUnavailable for a user without a home.
    """
    for finding in _iter_findings(installation, cache or QueryCache()):
        remedy = finding.remedy and installation.typeable(finding.remedy)
        yield replace(finding, text=installation.typeable(finding.text), remedy=remedy)


def _iter_findings(installation: Installation, cache: QueryCache) -> Iterator[Finding]:
    try:
        settings = installation.settings()
    except InvalidArgument as error:
        yield Finding("settings", error.message, "Correct this setting")
        return
    yield Finding("settings", "valid")
    if settings.analyzer:
        yield check_analyzer(settings.analyzer)
    yield check_home(installation, settings.home)
    yield check_disk(settings.home)
    yield from iter_branding_findings(settings.home)
    address: Address | None = None
    with contextlib.suppress(InvalidArgument):  # opening the store raises the same error
        address = parse_address(settings.database_url)
    path = address.path if isinstance(address, SqliteAddress) else None
    if path is not None:
        yield store_checks.check_sqlite(path)
        old_files = store_checks.find_old_files_in_use(path)
        if old_files is not None:
            yield old_files
            if not path.exists():
                return
        try:  # report a file that must not be opened
            refuse_special_files(path)
            refuse_mount_point(path)
            refuse_second_name(path)
        except StoreUnavailable as error:
            yield store_checks.check_error(error)
            return
    has_server = isinstance(address, PostgresAddress)
    try:
        with installation.store() as store:
            yield store_checks.check_closed(settings, store)
            if has_server:
                yield from store_checks.iter_server_findings(
                    store_checks.read_server_facts(store), workers=settings.workers
                )
            yield from _iter_store_findings(installation, settings, store, cache)
    except ResumesError as error:
        refusal = None if path is None else store_checks.find_refusal(path)
        yield refusal or store_checks.check_error(error, has_server=has_server)


def _iter_store_findings(
    installation: Installation, settings: Settings, store: Store, cache: QueryCache
) -> Iterator[Finding]:
    yield store_checks.check_size(store.measure())
    yield store_checks.check_counters(cache.get(accounts.list_wrong, store))
    if (lag := store_checks.find_index_lag(cache.get(count_indexed, store))) is not None:
        yield lag
    known = accounts.list_accounts(store)
    existing = plans.list_plans(store)
    yield from store_checks.iter_quota_findings(installation, known, existing)
    due = cache.get(retention.list_due, store)
    if (expiry := store_checks.find_expiry(installation, existing, due)) is not None:
        yield expiry
    if (erased := store_checks.find_erased(forgotten.list_times(store))) is not None:
        yield erased
    yield from store_checks.iter_key_findings(installation, store)
    names = {*accounts.by_folder(known)}
    other = import_checks.check_inbox_owner(installation, store, settings.inbox)
    if other is not None:
        yield other
    else:
        yield from import_checks.iter_inbox_findings(installation, settings.inbox, names)
        kept = retention.keep_days_by_folder(store)
        old = import_checks.find_old_done(installation, settings.inbox, kept, store.clock())
        if old is not None:
            yield old
    account_ids = {account.id for account in known}
    yield from import_checks.iter_unknown_account_findings(
        store, settings.home, settings.inbox, account_ids
    )
    yield from import_checks.iter_file_findings(
        installation, cache.get(import_history.count_files, store)
    )
    if (away := import_checks.check_away(installation, store)) is not None:
        yield away
    if settings.analyzer:
        yield import_checks.check_documents(
            settings.inbox, names, cache.get(import_history.list_analysis_s, store)
        )
    yield import_checks.check_requests(import_checks.oldest_request_age_s(store))
    yield from import_checks.iter_importer_findings(installation, store, names)
    yield from iter_font_findings(cache.get(read_names, store), settings.home)


def check_analyzer(command: Sequence[str]) -> Finding:
    """Check that the configured analyzer is a program that this user can run."""
    try:
        return Finding("analyzer", find_program(command))
    except AnalysisFailed as error:
        remedy = "Correct the setting analyzer, or install the program for the service's user"
        return Finding("analyzer", error.message, remedy)


def check_home(installation: Installation, home: Path) -> Finding:
    """Check that the home is a folder that this user can write and other users cannot read."""
    try:
        is_there = home.is_dir()
    except PermissionError:
        return Finding("home", f"this user cannot access {home}", remedy_for(home))
    if not is_there:
        command = installation.command_line("up")
        return Finding("home", f"{home} does not exist", "Create it with `resumes up`", command)
    if not os.access(home, os.W_OK | os.X_OK):
        return Finding("home", f"{home} is not writable", remedy_for(home))
    if home.stat().st_mode & 0o007:
        command = shell_line("chmod", "o-rwx", str(home))
        return Finding("home", f"{home} is accessible to all users", f"chmod o-rwx {home}", command)
    return Finding("home", str(home))


def iter_branding_findings(home: Path) -> Iterator[Finding]:
    """Find broken files in the house styles of accounts."""
    with contextlib.suppress(OSError):
        for folder in sorted((home / branding.FOLDER).iterdir()):
            for problem in branding.load_branding(home, folder.name).problems:
                yield warning(
                    "branding",
                    f"{problem}; files are made without it",
                    "Correct the file: see docs/branding.md",
                    about=problem,
                )


def check_disk(home: Path) -> Finding:
    """Check that the disk of the home has free space, even if the home does not exist yet."""
    place = next(path for path in (home, *home.absolute().parents) if os.access(path, os.F_OK))
    free = free_bytes(place)
    text = f"{free / 1024**3:,.1f} GiB free"
    if free < MIN_FREE_BYTES:
        return Finding(
            "disk", text, "Free up space: with less than 0.5 GiB free, the importer may stop"
        )
    return Finding("disk", text)
