"""What `resumes doctor` and the Health screen look at: all checks, in order."""

import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from resumes.errors import InvalidArgument, ResumesError, StoreUnavailable
from resumes.filesystems import SHARED, find_kind
from resumes.health import store_checks
from resumes.health.findings import MAX_NAMED, Finding, Installation, notice
from resumes.health.fonts import iter_font_findings
from resumes.health.import_checks import (
    check_owner,
    check_requests,
    iter_file_findings,
    iter_importer_findings,
    iter_inbox_findings,
    iter_unknown_accounts,
    oldest_request_age_s,
)
from resumes.health.metrics import SlowAnswers
from resumes.health.store_checks import (
    check_size,
    iter_key_findings,
    iter_quota_findings,
    iter_server_findings,
    read_facts,
    remedy_for,
)
from resumes.settings import Settings
from resumes.store import accounts, plans
from resumes.store.accounts import ResumeCounter
from resumes.store.addresses import (
    Address,
    PostgresAddress,
    SqliteAddress,
    find_without_secrets,
    parse_address,
)
from resumes.store.sqlite.store import refuse_mount_point, refuse_second_name, refuse_special_files
from resumes.store.store import Store
from resumes.store.transfer.marks import read_marks

LEAST_FREE_BYTES = 500 * 1024 * 1024


def iter_findings(installation: Installation, slow: SlowAnswers | None = None) -> Iterator[Finding]:
    """All checks, in the order in which one builds on the other.

    `slow` keeps from one look to the next what takes long; without it everything is asked now.
    Commands that are named lead to this installation.
    """
    for finding in _iter_findings(installation, slow or SlowAnswers()):
        yield typeable(installation, finding)


def typeable(installation: Installation, finding: Finding) -> Finding:
    """The finding with the installation's flags in the commands that its sentences name."""
    remedy = None if finding.remedy is None else installation.typeable(finding.remedy)
    return replace(finding, text=installation.typeable(finding.text), remedy=remedy)


def _iter_findings(installation: Installation, slow: SlowAnswers) -> Iterator[Finding]:
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
        strays = store_checks.find_strays(address.path)
        if strays is not None:
            yield strays
        if strays is not None and not address.path.exists():
            return
        try:
            refuse_special_files(address.path)
            refuse_mount_point(address.path)
            refuse_second_name(address.path)
        except StoreUnavailable as error:
            yield check_error(error)  # nobody opens it, and who has it open writes nothing
            return
    yield from _iter_store_findings(installation, settings, slow)


def check_home(installation: Installation, home: Path) -> Finding:
    """Whether the home is a folder of ours alone that can be written."""
    try:
        is_there = home.is_dir()
    except PermissionError:
        return Finding("home", f"{home} cannot be seen by this user", remedy_for(home))
    if not is_there:
        command = installation.command_line("up")
        return Finding("home", f"{home} is not there", "`resumes up` makes it", command)
    if not os.access(home, os.W_OK | os.X_OK):
        return Finding("home", f"{home} cannot be written", remedy_for(home))
    if home.stat().st_mode & 0o007:
        command = shlex.join(["chmod", "o-rwx", str(home)])
        return Finding("home", f"{home} is open to every user", f"chmod o-rwx {home}", command)
    return Finding("home", str(home))


def check_disk(home: Path) -> Finding:
    """Whether there is room to go on for a while."""
    place = next(path for path in (home, *home.absolute().parents) if _is_there(path))
    free = shutil.disk_usage(place).free
    text = f"{free / 1024**3:,.1f} GiB free"
    if free < LEAST_FREE_BYTES:
        return Finding("disk", text, "Make room: below 0.5 GiB the importer may have to stop")
    return Finding("disk", text)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return False


def check_sqlite(path: Path, *, mountinfo: str | None = None) -> Finding:
    """Whether the SQLite library, and where the file lies, keep what they were given."""
    # The library is loaded only where it is used.
    from resumes.store.sqlite import driver

    text = f"version {driver.dbapi.sqlite_version}"
    if driver.dbapi.sqlite_version_info < driver.WAL_RESET_FIXED:
        return Finding(
            "SQLite", f"{text} has the WAL-reset bug", "Install the package pysqlite3 0.6.1"
        )
    kind = find_kind(path.parent, mountinfo)
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
        yield _refused(settings, error)
        return
    with opened as store:
        try:
            yield check_marks(settings, store)
            yield from _iter_inner_findings(installation, settings, store, slow)
        except ResumesError as error:
            yield _refused(settings, error)


def _refused(settings: Settings, error: ResumesError) -> Finding:
    address = _find_address(settings)
    if isinstance(address, SqliteAddress):
        refusal = store_checks.find_refusal(address.path)
        if refusal is not None:
            return refusal
    return check_error(error, has_server=isinstance(address, PostgresAddress))


def check_marks(settings: Settings, store: Store) -> Finding:
    """Whether the store takes writes: not once it was copied elsewhere, nor while it is filled."""
    label = find_without_secrets(settings.database_url) or store.label
    with store.read() as connection:
        marks = read_marks(connection)
    if marks.moving_to:
        return Finding(
            "store",
            f"{label} is closed: it is being moved to {marks.moving_to}, or was, and takes no writes",
            "Use that one, by the setting `database`, RESUMES_DATABASE or --database; or take this "
            "one back, without what came to that one since: `resumes db reopen`",
        )
    if marks.filled_from:
        return Finding(
            "store",
            f"{label} is still being filled from {marks.filled_from}, and takes no writes",
            "Let `resumes db copy` or `resumes db restore` end; if it was broken off, begin it again",
        )
    return Finding("store", label)


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
    yield check_size(store.measure())
    yield check_counters(slow.wrong_counters.get(store))
    known = accounts.list_accounts(store)
    yield from iter_quota_findings(installation, known, plans.list_plans(store))
    yield from iter_key_findings(installation, store)
    other = check_owner(installation, store, settings.inbox)
    if other is not None:
        yield other
    else:
        names = {account.name for account in known}
        yield from iter_inbox_findings(installation, settings.inbox, names)
    account_ids = {account.id for account in known}
    yield from iter_unknown_accounts(store, settings.home, settings.inbox, account_ids)
    yield from iter_file_findings(installation, slow.file_tallies.get(store))
    yield check_requests(oldest_request_age_s(store))
    yield from iter_importer_findings(installation, store)
    yield from iter_font_findings(slow.names.get(store), settings.home)


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
    named = ", ".join(
        f"{one.account} ({one.resume_count} for {one.rows})" for one in wrong[:MAX_NAMED]
    )
    return Finding("counters", f"wrong in {named}", "Please report this: it is a defect of ours")
