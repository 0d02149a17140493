"""Check the store: its file and size, its PostgreSQL server, counters, keys and quotas."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import text

from resumes.clock import later
from resumes.errors import InvalidArgument, ResumesError
from resumes.filesystems import SHARED, find_kind
from resumes.health.findings import MAX_NAMED, Finding, Installation, remedy_for, user_name, warning
from resumes.output_files import SIDE_FILES
from resumes.settings import Settings
from resumes.store import api_keys
from resumes.store.accounts import AccountInfo
from resumes.store.addresses import find_without_secrets
from resumes.store.api_keys import KeyState
from resumes.store.locks import PROC, find_holders, name_processes
from resumes.store.plans import PlanInfo
from resumes.store.retention import Due
from resumes.store.search_index import IndexedCount
from resumes.store.sqlite.driver import dbapi
from resumes.store.store import Size, Store, read_fact
from resumes.text import counted, in_bytes

# Checks of the store's file before it is opened.


def check_sqlite(path: Path, *, mountinfo: str | None = None) -> Finding:
    """Check that the file system of the path is safe for SQLite."""
    kind = find_kind(path.parent, mountinfo)
    if kind in SHARED:
        return warning(
            "SQLite",
            f"{path} is on {kind}, {SHARED[kind]}",
            "Make sure that no other system opens the file. A local disk is "
            "safer, or a volume if this is a container",
        )
    return Finding("SQLite", f"version {dbapi.sqlite_version}")


def find_refusal(path: Path) -> Finding | None:
    """Find a file of the store that this user may not read or write."""
    for file in (path.with_name(path.name + ending) for ending in ("", *SIDE_FILES)):
        try:
            file.lstat()
        except FileNotFoundError:
            continue
        except OSError:
            return Finding("store", f"this user cannot access {file}", remedy_for(path.parent))
        if not os.access(file, os.R_OK | os.W_OK):
            owner = user_name(file.lstat().st_uid)
            text = f"this user does not have permission to open {file} (owner: {owner})"
            return Finding("store", text, remedy_for(file))
    return None


def find_old_files_in_use(path: Path) -> Finding | None:
    """Find processes that still have a removed or replaced file of the store open.

    Processes of other users cannot be examined.
    """
    current = None
    with suppress(OSError):
        current = path.stat()
    pids: Iterable[int] = find_holders(path.with_name(f"{path.name}.lock"))
    if not pids and current is None:  # the lock file may have been removed too
        with suppress(OSError):
            pids = [int(process.name) for process in PROC.iterdir() if process.name.isdigit()]
    found = [pid for pid in pids if _has_old_file_open(pid, path, current)]
    if not found:
        return None
    return Finding(
        "store",
        f"{path} was {'removed' if current is None else 'replaced'} while it was in use (process "
        f"{name_processes(found)}); programs that had it open can no longer read or write",
        "Stop everything that uses the store, put the file back or restore a backup, then start it again",
    )


def _has_old_file_open(pid: int, path: Path, current: os.stat_result | None) -> bool:
    names = {f"{path}{suffix}{gone}" for suffix in ("", "-wal") for gone in ("", " (deleted)")}
    has_one = False
    with suppress(OSError):
        for descriptor in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                has_one |= str(descriptor.readlink()) in names
                if current is not None and os.path.samestat(descriptor.stat(), current):
                    return False
    return has_one


# Checks of the open store.


def check_error(error: ResumesError, *, has_server: bool = False) -> Finding:
    """Convert the store's error to a finding. Its message usually ends with a remedy."""
    text, _, remedy = error.message.partition(". ")
    if not remedy and isinstance(error, InvalidArgument):
        remedy = "Correct the address: the setting `database`, RESUMES_DATABASE or --database"
    elif not remedy and has_server:
        remedy = "Check that the server is running, and that the host, database, user and password are correct"
    return Finding("store", text, remedy or "Close other programs that use it, then try again")


def check_closed(settings: Settings, store: Store) -> Finding:
    """Check that the store accepts writes, as it does unless it is being or has been moved."""
    label = find_without_secrets(settings.database_url) or store.label
    with store.session() as session:
        closed_for = read_fact(session, "closed_for")
    if closed_for:
        return Finding(
            "store",
            f"{label} is read-only: it is being moved to {closed_for}, or has been moved",
            "Use the new store, with the setting `database`, RESUMES_DATABASE or --database. Or make this one "
            "writable again, without the resumes that were added to the new one since: `resumes db reopen`",
        )
    return Finding("store", label)


LARGE_LOG_BYTES: Final = 256 * 1024 * 1024
"""Four times the size to which the store truncates its log. A larger log means that something has
prevented this for a long time."""


def check_size(size: Size) -> Finding:
    """Check that the log, which every reader must search, is short enough."""
    if size.log_bytes is None:
        return Finding("size", in_bytes(size.data_bytes))
    text = f"{in_bytes(size.data_bytes)} (+ {in_bytes(size.log_bytes)} write-ahead log)"
    if size.log_bytes < LARGE_LOG_BYTES:
        return Finding("size", text)
    return warning(
        "size",
        text,
        "Stop programs that have been reading the database for a long time, such as a shell or a "
        "backup; the next writes then shorten the log",
    )


def check_counters(wrong: Sequence[Any]) -> Finding:
    """Check that the counters, on which quotas depend, equal the accounts' numbers of resumes."""
    if not wrong:
        return Finding("counters", "match the number of resumes in every account")
    named = ", ".join(
        f"{counter.account} ({counter.resume_count} instead of {counter.rows})"
        for counter in wrong[:MAX_NAMED]
    )
    return Finding("counters", f"wrong in {named}", "This is a bug: please report it")


MAX_UNINDEXED: Final = 1_000
"""The number of resumes that may be missing from the index, since new resumes are indexed later."""


def find_index_lag(count: IndexedCount) -> Finding | None:
    """Find out whether many resumes are missing from the search index."""
    if count.resumes - count.indexed <= MAX_UNINDEXED:
        return None
    return warning(
        "search",
        f"{count.indexed:,} of {counted(count.resumes, 'resume')} are in the search index; searches do not find the others yet",
        "Wait: the others are added while `resumes up` or another service runs",
    )


# Checks of a PostgreSQL server.

CONNECTIONS_OF_A_WORKER: Final = 9
"""The maximum number of connections of an API process: several that write, one that reads for
requests, and two that watch."""

CONNECTIONS_OF_OTHERS: Final = 20
"""The number of connections of the workers' supervisor, an importer with its helper process, a
terminal UI and commands."""


class ServerFacts(NamedTuple):
    """Settings of a server. A setting that the server does not have is None."""

    server_version: str | None
    synchronous_commit: str | None
    fsync: str | None
    full_page_writes: str | None
    free_connections: int | None
    """The number of connections that are not reserved."""

    is_standby: bool = False


# Other servers also use PostgreSQL's protocol. With `true`, they return null for missing settings.
_FACTS: Final = text("""
    SELECT current_setting('server_version', true), current_setting('synchronous_commit', true),
        current_setting('fsync', true), current_setting('full_page_writes', true),
        CAST(current_setting('max_connections', true) AS integer)
            - COALESCE(CAST(current_setting('superuser_reserved_connections', true) AS integer), 0)
            - COALESCE(CAST(current_setting('reserved_connections', true) AS integer), 0),
        pg_is_in_recovery()
""")


def read_server_facts(store: Store) -> ServerFacts:
    """Return the settings of the store's server. Raises StoreError."""
    with store.read() as connection:
        return ServerFacts(*connection.execute(_FACTS).one())


def iter_server_findings(facts: ServerFacts, *, workers: int) -> Iterator[Finding]:
    """Check the settings of a server. `workers` is the number of API processes on this machine."""
    yield Finding("server", f"version {facts.server_version or 'unknown'}")
    if facts.is_standby:
        yield Finding(
            "server",
            "is a read-only standby",
            "Use the address of the primary, or of all servers followed by ?target_session_attrs=read-write",
            about="standby",
        )
    for name, loss in (
        ("synchronous_commit", "if the server crashes, acknowledged resumes can be lost"),
        ("fsync", "if the server's machine crashes, the store can be lost"),
        ("full_page_writes", "if the server's machine crashes, the store can be lost"),
    ):
        if getattr(facts, name) == "off":
            yield warning("server", f"{name} is off: {loss}", f"Set {name} to on", about=name)
    needed = workers * CONNECTIONS_OF_A_WORKER + CONNECTIONS_OF_OTHERS
    if facts.free_connections is not None and facts.free_connections < needed:
        yield warning(
            "server",
            f"accepts {counted(facts.free_connections, 'connection')}, but this machine alone may need {needed}",
            f"Set max_connections to at least {needed + 20} per machine that uses the server, start "
            "fewer workers, or use a connection pooler",
            about="max_connections",
        )


# Checks of keys and quotas.

READING_TIME: Final = timedelta(minutes=10)
"""The time that a new key can be on the screen before it is marked as shown."""


def iter_key_findings(installation: Installation, store: Store) -> Iterator[Finding]:
    """Find the keys that were created but never shown, so that no client can use them."""
    active = [key for key in api_keys.list_keys(store) if key.state is KeyState.ACTIVE]
    made_before = later(store.clock(), -READING_TIME)
    unseen = [key for key in active if key.shown_at is None and key.created_at < made_before]
    for key in unseen[:MAX_NAMED]:
        remedy = installation.remedy("Revoke it and create another", "keys", "revoke", key.id)
        text = f"{key.id} of {key.account} was never shown, so nobody can use it"
        yield warning("keys", text, *remedy, about=key.id)
    if len(unseen) > MAX_NAMED:
        text = f"never shown: {counted(len(unseen) - MAX_NAMED, 'more key')}"
        remedy = installation.remedy("See all", "keys", "list")
        yield warning("keys", text, *remedy, about="more")
    if not unseen:
        yield Finding("keys", counted(len(active), "active key"))


def iter_quota_findings(
    installation: Installation, known: Sequence[AccountInfo], plans: Sequence[PlanInfo]
) -> Iterator[Finding]:
    """Find the accounts that can store no more resumes, and name the first ones."""
    full = [account for account in known if account.free_places == 0]
    for account in full[:MAX_NAMED]:
        yield _check_full_account(installation, account, plans)
    if len(full) > MAX_NAMED:
        text = counted(len(full) - MAX_NAMED, "more full account")
        remedy = installation.remedy("See all", "accounts", "list")
        yield warning("quota", text, *remedy, about="more")
    if not full:
        yield Finding("quota", "every account has room for more resumes")


def find_expiry(
    installation: Installation, plans: Iterable[PlanInfo], due: Sequence[Due]
) -> Finding | None:
    """Report resumes that their plan no longer keeps. Return None if all plans keep everything."""
    if all(plan.keep_days is None for plan in plans):
        return None
    overdue = sum(some.overdue for some in due)
    number = counted(sum(some.resumes for some in due), "resume")
    if overdue:
        remedy = installation.remedy(
            "Start a service, which erases them within the hour, or erase them now", "expire"
        )
        text = f"{number} older than the plan allows, {overdue:,} for more than a day"
        return warning("expiry", text, *remedy)
    return Finding(
        "expiry",
        f"{number} due, to be erased within the hour"
        if due
        else "no resume is older than its plan allows",
    )


MAX_DAYS: Final = 5


def find_erased(times: Sequence[str]) -> Finding | None:
    """Report the number of erased persons. `times` is the result of `forgotten.list_times`."""
    if not times:
        return None
    days = [f"{count:,} on {day}" for day, count in Counter(time[:10] for time in times).items()]
    more = f" and {len(days) - MAX_DAYS:,} more days" if days[MAX_DAYS:] else ""
    return Finding(
        "erased",
        f"{counted(len(times), 'person')} ({', '.join(days[:MAX_DAYS])}{more}); backups that were made before "
        "still contain them",
    )


def remedy_for_full(
    installation: Installation, account: AccountInfo, plans: Sequence[PlanInfo]
) -> tuple[str, str]:
    """Return how to make room in a full account, in the form of `Installation.remedy`.

    Suggest the smallest plan that has room and takes nothing away from the account: neither API
    listing nor days for which resumes are kept. If there is none, suggest a larger limit for the plan."""
    needed = max(account.resume_count, account.max_resumes or 0)
    for plan in plans:
        has_room = plan.max_resumes is None or plan.max_resumes > needed
        if has_room and not (account.loses_listing(plan) or account.loses_days(plan)):
            words = ["accounts", "set-plan", account.name, plan.name]
            return installation.remedy("Delete resumes, or move it to a larger plan", *words)
    return installation.remedy("Delete resumes, or raise the limit of its plan", "plans", "list")


def _check_full_account(
    installation: Installation, account: AccountInfo, plans: Sequence[PlanInfo]
) -> Finding:
    remedy = remedy_for_full(installation, account, plans)
    return warning(
        "quota",
        f"{account.name} is full ({account.resume_count:,} of {account.max_resumes or 0:,}, plan "
        f"{account.plan}): new resumes are refused and files are held",
        *remedy,
        about=account.name,
    )
