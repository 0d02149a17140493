"""What `resumes doctor` and the Health screen look at: all checks, in order."""

import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from resumes.errors import InvalidArgument, ResumesError
from resumes.health.files import check_requests, iter_file_findings, oldest_request_age_s
from resumes.health.findings import Finding, notice
from resumes.health.importers import iter_importer_findings
from resumes.health.inboxes import iter_inbox_findings
from resumes.health.installation import Installation
from resumes.health.keys import iter_key_findings
from resumes.health.postgresql import iter_server_findings, read_facts
from resumes.health.quotas import iter_quota_findings
from resumes.health.sizes import check_size
from resumes.health.slow import SlowAnswers
from resumes.mounts import SHARED, find_kind
from resumes.settings import Settings
from resumes.store import accounts, plans
from resumes.store.addresses import (
    Address,
    PostgresAddress,
    SqliteAddress,
    find_without_secrets,
    parse_address,
)
from resumes.store.counters import ResumeCounter
from resumes.store.engine import Store

LEAST_FREE_BYTES = 500 * 1024 * 1024
MANY = 10


def iter_findings(installation: Installation, slow: SlowAnswers | None = None) -> Iterator[Finding]:
    """All checks, in the order in which one builds on the other.

    `slow` keeps from one look to the next what takes long; without it everything is asked now.
    """
    try:
        settings = installation.settings()
    except ResumesError as error:
        yield Finding("settings", error.message, "Correct the setting that is named")
        return
    yield Finding("settings", "can be used")
    yield check_home(installation, settings.home)
    yield check_disk(settings.home)
    if isinstance(address := _find_address(settings), SqliteAddress):
        yield check_sqlite(address.path)
    yield from _iter_store_findings(installation, settings, slow or SlowAnswers())


def check_home(installation: Installation, home: Path) -> Finding:
    """Whether the home is a folder of ours alone that can be written."""
    if not home.is_dir():
        command = installation.command_line("up")
        return Finding("home", f"{home} is not there", "`resumes up` makes it", command)
    if not os.access(home, os.W_OK | os.X_OK):
        return Finding("home", f"{home} cannot be written", f"chown it to user {os.getuid()}")
    if home.stat().st_mode & 0o007:
        command = shlex.join(["chmod", "o-rwx", str(home)])
        return Finding("home", f"{home} is open to every user", f"chmod o-rwx {home}", command)
    return Finding("home", str(home))


def check_disk(home: Path) -> Finding:
    """Whether there is room to go on for a while."""
    place = next(path for path in (home, *home.absolute().parents) if path.exists())
    free = shutil.disk_usage(place).free
    text = f"{free / 1024**3:,.1f} GiB free"
    if free < LEAST_FREE_BYTES:
        return Finding("disk", text, "Make room: below 0.5 GiB the importer may have to stop")
    return Finding("disk", text)


def check_sqlite(path: Path) -> Finding:
    """Whether the SQLite library, and where the file lies, keep what they were given."""
    # The library is loaded only where it is used.
    from resumes.store.sqlite import driver

    text = f"version {driver.dbapi.sqlite_version}"
    if driver.dbapi.sqlite_version_info < driver.WAL_RESET_FIXED:
        return Finding(
            "SQLite", f"{text} has the WAL-reset bug", "Install the package pysqlite3 0.6.1"
        )
    kind = find_kind(path.parent)
    if kind in SHARED:
        return notice(
            "SQLite",
            f"{path} lies on {kind}, {SHARED[kind].nature}",
            "See that nobody else opens the file; a disk of this system is safer, in a container a "
            "volume",
        )
    return Finding("SQLite", text)


def _iter_store_findings(
    installation: Installation, settings: Settings, slow: SlowAnswers
) -> Iterator[Finding]:
    try:
        opened = installation.store()
    except ResumesError as error:
        yield check_error(error, has_server=_has_server(settings))
        return
    with opened as store:
        yield Finding("store", find_without_secrets(settings.database_url) or store.label)
        try:
            yield from _iter_inner_findings(installation, settings, store, slow)
        except ResumesError as error:
            yield check_error(error, has_server=_has_server(settings))


def _has_server(settings: Settings) -> bool:
    return isinstance(_find_address(settings), PostgresAddress)


def _find_address(settings: Settings) -> Address | None:
    """Where the store is; None where the setting is no address."""
    try:
        return parse_address(settings.database_url)
    except InvalidArgument:
        return None


def _iter_inner_findings(
    installation: Installation, settings: Settings, store: Store, slow: SlowAnswers
) -> Iterator[Finding]:
    if _has_server(settings):
        yield from iter_server_findings(read_facts(store), workers=settings.workers)
    yield check_size(store.database.measure())
    yield check_counters(slow.wrong_counters.get(store))
    known = accounts.list_accounts(store)
    yield from iter_quota_findings(installation, known, plans.list_plans(store))
    yield from iter_key_findings(installation, store)
    names = {account.name for account in known}
    yield from iter_inbox_findings(installation, settings.inbox, names)
    yield from iter_file_findings(installation, slow.file_tallies.get(store))
    yield check_requests(oldest_request_age_s(store))
    yield from iter_importer_findings(installation, store)


def check_error(error: ResumesError, *, has_server: bool = False) -> Finding:
    """The error in two: the store's messages say what is wrong, and then mostly what to do."""
    text, _, remedy = error.message.partition(". ")
    return Finding("store", text, remedy or _find_remedy(error, has_server=has_server))


def _find_remedy(error: ResumesError, *, has_server: bool) -> str:
    if isinstance(error, InvalidArgument):
        return "Correct the address: the setting `database`, RESUMES_DATABASE or --database"
    if has_server:
        return "See that the server runs, and that host, database, user and password are right"
    return "Close other programs that use it, then try again"


def check_counters(wrong: Sequence[ResumeCounter]) -> Finding:
    """Whether every account's counter is the number of its resumes, which the quota rests on."""
    if not wrong:
        return Finding("counters", "equal the number of resumes in every account")
    named = ", ".join(f"{one.account} ({one.resume_count} for {one.rows})" for one in wrong[:MANY])
    return Finding("counters", f"wrong in {named}", "Please report this: it is a defect of ours")
