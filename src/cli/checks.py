"""What `resumes doctor` looks at. Each check says what it found and, if it is wrong, the remedy."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cli.findings import Finding
from cli.importers import iter_importer_findings
from cli.session import Session
from resumes.errors import ResumesError
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.settings import Settings
    from resumes.store import Store

LEAST_FREE_BYTES = 500 * 1024 * 1024
MANY = 10


def iter_findings(session: Session) -> Iterator[Finding]:
    """All checks, in the order in which one builds on the other."""
    try:
        settings = session.settings()
    except ResumesError as error:
        yield Finding("settings", error.message, "Correct the setting that is named")
        return
    yield Finding("settings", "can be used")
    yield check_home(settings.home)
    yield check_disk(settings.home)
    yield check_sqlite()
    yield from _iter_store_findings(session, settings)


def check_home(home: Path) -> Finding:
    """Whether the home is a folder of ours alone that can be written."""
    if not home.is_dir():
        return Finding("home", f"{home} is not there", "`resumes up` makes it")
    if not os.access(home, os.W_OK | os.X_OK):
        return Finding("home", f"{home} cannot be written", f"chown it to user {os.getuid()}")
    if home.stat().st_mode & 0o007:
        return Finding("home", f"{home} is open to every user", f"chmod o-rwx {home}")
    return Finding("home", str(home))


def check_disk(home: Path) -> Finding:
    """Whether there is room to go on for a while."""
    place = next(path for path in (home, *home.absolute().parents) if path.exists())
    free = shutil.disk_usage(place).free
    text = f"{free / 1024**3:,.1f} GiB free"
    if free < LEAST_FREE_BYTES:
        return Finding("disk", text, "Make room: below 0.5 GiB the importer may have to stop")
    return Finding("disk", text)


def check_sqlite() -> Finding:
    """Whether the SQLite library is one that keeps what it was given."""
    from resumes.store.driver import WAL_RESET_FIXED, dbapi

    text = f"version {dbapi.sqlite_version}"
    if dbapi.sqlite_version_info < WAL_RESET_FIXED:
        return Finding(
            "SQLite", f"{text} has the WAL-reset bug", "Install the package pysqlite3 0.6.1"
        )
    return Finding("SQLite", text)


def _iter_store_findings(session: Session, settings: "Settings") -> Iterator[Finding]:
    try:
        store = session.store()
    except ResumesError as error:
        yield _store_finding(error)
        return
    with store:
        yield Finding("store", settings.database_url)
        try:
            yield check_counters(store)
            yield from iter_inbox_findings(store, settings.inbox)
            yield from iter_importer_findings(session, store)
        except ResumesError as error:
            yield _store_finding(error)


def _store_finding(error: ResumesError) -> Finding:
    """The error in two: the store's messages say what is wrong, and then mostly what to do."""
    text, _, remedy = error.message.partition(". ")
    return Finding("store", text, remedy or "Close other programs that use it, then try again")


def check_counters(store: "Store") -> Finding:
    """Whether every account's counter is the number of its resumes, which the quota rests on."""
    from resumes.store import accounts

    wrong = accounts.check_counters(store)
    if not wrong:
        return Finding("counters", "equal the number of resumes in every account")
    named = ", ".join(f"{one.account} ({one.resume_count} for {one.rows})" for one in wrong[:MANY])
    return Finding("counters", f"wrong in {named}", "Please report this: it is a defect of ours")


def iter_inbox_findings(store: "Store", inbox: Path) -> Iterator[Finding]:
    """Whether the importer can take files out of the inbox and put them away."""
    from resumes.store import accounts

    if not inbox.is_dir():
        yield Finding("inbox", f"{inbox} is not there yet; `resumes up` makes it")
        return
    known = {account.name for account in accounts.list_accounts(store)}
    folders = [inbox, *sorted(path for path in inbox.iterdir() if path.is_dir())]
    closed = [path for path in folders if not os.access(path, os.R_OK | os.W_OK | os.X_OK)]
    for path in closed[:MANY]:
        yield Finding("inbox", f"{path} cannot be written", f"chown it to user {os.getuid()}")
    strange = [
        path.name for path in folders[1:] if path.name[0] not in "._" and path.name not in known
    ]
    for name in strange[:MANY]:
        yield Finding(
            "inbox",
            f'the folder "{name}" names no account, so its files wait',
            f"resumes accounts create {name}, or rename the folder",
        )
    if not closed and not strange:
        yield Finding("inbox", f"{inbox}, {counted(len(folders), 'folder')}, all writable")
