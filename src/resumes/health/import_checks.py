"""Check imports: the inbox and its ignored files, failed and held files, requests and importers."""

import math
import os
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final

from resumes import watched_folder
from resumes.clock import later, timestamp
from resumes.durations import span
from resumes.health.findings import MAX_NAMED, Finding, Installation, remedy_for, warning
from resumes.store import import_history, import_requests, importers
from resumes.store.accounts import NAME, find_deleted
from resumes.store.import_history import FileCount
from resumes.store.import_ledger import FileOutcome
from resumes.store.importers import ImporterState, SeenImporter
from resumes.store.store import Store
from resumes.text import counted, escaped
from resumes.watched_folder import shown_root
from resumes.watched_names import (
    DOCUMENT_ENDINGS,
    ENDINGS,
    OWN,
    find_extension,
    find_filed_extension,
    is_document,
    is_hidden,
    is_hidden_or_temporary,
    is_outcome,
    is_temporary,
)

# Checks of the inbox.


def check_inbox_owner(installation: Installation, store: Store, inbox: Path) -> Finding | None:
    """Find out whether the inbox belongs to another store."""
    try:
        other = watched_folder.find_other(inbox, watched_folder.owner_of(store))
    except OSError as error:
        path = inbox / OWN
        is_strange = isinstance(error, NotADirectoryError | IsADirectoryError)
        remedy = "Remove it; the next importer creates it again" if is_strange else remedy_for(path)
        return Finding("inbox", f"{path} cannot be read: {error.strerror}", remedy, about=OWN)
    if other is None:
        return None
    text = f"{watched_folder.describe_other(inbox, other)}: importers of this store ignore it"
    command = installation.command_line("watch", str(inbox), "--adopt", "--once")
    return Finding("inbox", text, watched_folder.remedy_for_other(inbox), command, about=OWN)


def iter_inbox_findings(
    installation: Installation, inbox: Path, accounts: Set[str]
) -> Iterator[Finding]:
    """Check that the importer can move all files in the inbox, and find the files that it ignores.

    `accounts` are the names and former names of all accounts.
    """
    if not inbox.is_dir():
        yield Finding("inbox", f"{inbox} does not exist yet; `resumes up` creates it")
        return
    try:
        folders = sorted(
            path for path in inbox.iterdir() if not path.is_symlink() and path.is_dir()
        )
    except OSError as error:
        text = f"{inbox} cannot be read: {error.strerror}"
        yield Finding("inbox", text, remedy_for(inbox), about=str(inbox))
        return
    rights = os.R_OK | os.W_OK | os.X_OK
    closed = [path for path in (inbox, *folders) if not os.access(path, rights)]
    for path in closed[:MAX_NAMED]:
        yield Finding("inbox", f"{path} is not writable", remedy_for(path), about=str(path))
    unknown = [
        path.name
        for path in folders
        if not is_outcome(path.name)
        and not is_hidden(path.name)
        and path.name not in accounts
        # A deleted account may leave an empty folder.
        and any(files for _, _, files in os.walk(path))
    ]
    for name in unknown[:MAX_NAMED]:
        yield _check_unknown_folder(installation, name, accounts)
    if not closed and not unknown:
        yield Finding("inbox", f"{inbox}, {counted(len(folders) + 1, 'folder')}, all writable")
    analyzes = bool(installation.settings().analyzer)
    ignored = find_ignored_files(inbox, analyzes=analyzes)
    for folder, files in islice(ignored.items(), MAX_NAMED):
        yield _check_ignored(inbox / folder, files)


def _check_unknown_folder(installation: Installation, name: str, accounts: Set[str]) -> Finding:
    command = None
    if NAME.fullmatch(name) is not None:
        command = installation.command_line("accounts", "create", name)
        remedy = f"{command}, or rename the folder"
    elif name.lower() in accounts:
        remedy = f'Rename the folder to "{name.lower()}", or move its files there'
    else:
        remedy = "Rename the folder: account names, such as ana-2, consist of a-z, 0-9 and -"
    text = f'the folder "{escaped(name)}" does not match any account; its files are waiting'
    return Finding("inbox", text, remedy, command, about=name)


def find_old_done(
    installation: Installation, inbox: Path, by_folder: Mapping[str, int], now_us: int
) -> Finding | None:
    """Find done files that an importer should have deleted.

    `by_folder` maps accounts' folders to the number of days for which their plans keep resumes.
    """
    done = inbox / watched_folder.DONE
    for folder, days in sorted(by_folder.items()):
        # An importer deletes the files of a day when the last resume of that day has expired.
        first_kept = later(now_us, -timedelta(days=days + 1))[:10]
        with suppress(OSError):
            day = min((path.parent.name for path in done.glob(f"*/{folder}")), default=first_kept)
            if day < first_kept:
                return warning(
                    "inbox",
                    f"{done} still has files of {folder} from {day}, but its plan keeps them for {counted(days, 'day')}",
                    f"An importer deletes them: {installation.how_to_watch(None)}",
                    about=watched_folder.DONE,
                )
    return None


MAX_NAMES: Final = 20_000
MAX_EXAMPLES: Final = 3

WRITING_S: Final = 3_600
"""The time for which a file may have a temporary name, since it may still be written."""


def find_ignored_files(
    inbox: Path,
    *,
    analyzes: bool = False,
    now_s: Callable[[], float] = time.time,
    max_names: int = MAX_NAMES,
) -> dict[str, list[tuple[str, str]]]:
    """Return the files that importers ignore by folder, as sorted paths below it with the reasons.

    The folder's name is empty for the inbox itself. With `analyzes`, importers do not ignore files
    for the analyzer. Hidden files, which importers should ignore, and folders that cannot be listed
    are omitted. At most `max_names` files are examined, since the Health screen calls this
    repeatedly.
    """
    ignored: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for folder, name, entry in islice(_iter_entries(inbox, max_names), max_names):
        reason = _find_reason(entry, is_in_account=bool(folder), analyzes=analyzes, now_s=now_s)
        if reason is not None:
            ignored[folder].append((name, reason))
    return {folder: sorted(files) for folder, files in sorted(ignored.items())}


def _iter_entries(inbox: Path, max_names: int) -> Iterator[tuple[str, str, os.DirEntry[str]]]:
    """Yield the account's folder, the path below it, and the entry, for all scanned entries."""
    waiting = [("", "", str(inbox))]
    while waiting:
        folder, below, path = waiting.pop()
        entries: list[os.DirEntry[str]] = []
        with suppress(OSError), os.scandir(path) as scanned:
            entries = list(islice(scanned, max_names))
        for entry in entries:
            name = f"{below}{entry.name}"
            if not folder and is_outcome(name):
                continue
            is_file_name = find_extension(name) is not None or is_hidden_or_temporary(entry.name)
            if not is_file_name and entry.is_dir(follow_symlinks=False):
                waiting.append((folder or name, f"{name}/" if folder else "", entry.path))
            else:
                yield folder, name, entry


def _find_reason(
    entry: os.DirEntry[str], *, is_in_account: bool, analyzes: bool, now_s: Callable[[], float]
) -> str | None:
    """Return why the entry is ignored, or None if it is imported or should be ignored."""
    if is_hidden(entry.name):
        return None
    if entry.is_symlink():
        return "symbolic link"
    if is_temporary(entry.name):
        with suppress(OSError):
            if now_s() - entry.stat(follow_symlinks=False).st_mtime > WRITING_S:
                return "temporary name"
        return None
    if not entry.is_file(follow_symlinks=False):
        return "not a regular file"
    if is_document(entry.name):
        if not analyzes:
            return "no analyzer is set"
    elif find_extension(entry.name) is None:
        return "unsupported file type"
    return None if is_in_account else "not in an account folder"


def _check_ignored(folder: Path, files: Sequence[tuple[str, str]]) -> Finding:
    named = [f'"{escaped(name)}" ({reason})' for name, reason in files[:MAX_EXAMPLES]]
    if len(files) > MAX_EXAMPLES:
        named.append(f"and {len(files) - MAX_EXAMPLES:,} more")
    return warning(
        "inbox",
        f"{counted(len(files), 'file')} in {folder} will not be imported: {', '.join(named)}",
        "Move those that are in no account's folder into one, and convert or delete the others: only "
        f"regular files ending in {ENDINGS} are imported, and with the setting analyzer also those ending in "
        f"{DOCUMENT_ENDINGS}",
        about=f"ignored in {folder}",
    )


def _list_roots(store: Store, home: Path, inbox: Path, seen: Sequence[SeenImporter]) -> list[Path]:
    """Return the inbox, the folders that the home remembers, and the importers' folders, in order.

    Omit folders that belong to another store, or whose owner cannot be read.
    """
    owner = watched_folder.owner_of(store)
    others = [*watched_folder.list_watched(home), *(Path(known.root) for known in seen)]
    roots = []
    for root in dict.fromkeys([Path(os.path.realpath(inbox)), *others]):
        with suppress(OSError):
            if watched_folder.find_other(root, owner) is None:
                roots.append(root)
    return roots


def iter_unknown_account_findings(
    store: Store, home: Path, inbox: Path, account_ids: Set[str]
) -> Iterator[Finding]:
    """Find files that wait for accounts that the store neither contains nor has deleted.

    Search the store's own folders: the inbox, and the folders that the home and the store's
    importers watch or watched. `account_ids` contains the IDs of all accounts. Findings that a live
    importer reports are not repeated.
    """
    seen = importers.list_importers(store)
    reported = {
        known.root
        for known in seen
        for finding in known.findings
        if known.is_live and finding.key == watched_folder.UNKNOWN_ACCOUNTS
    }
    for root in _list_roots(store, home, inbox, seen):
        with suppress(OSError):
            if watched_folder.shown_root(root) in reported:
                continue
            waiting = {
                (str(root / folder), account_id): files
                for (folder, account_id), files in watched_folder.count_held(root).items()
            }
            unknown = {account_id for _, account_id in waiting} - account_ids
            unknown -= find_deleted(store, unknown) if unknown else set()
            text = watched_folder.describe_unknown(waiting, unknown)
            if text is not None:
                about = f"{watched_folder.UNKNOWN_ACCOUNTS} in {root}"
                yield Finding("inbox", text, watched_folder.UNKNOWN_REMEDY, about=about)


# Checks of files, and of requests for files.


def count_by_outcome(files: Sequence[FileCount]) -> dict[FileOutcome, int]:
    """Return the number of files with each outcome."""
    counts = dict.fromkeys(FileOutcome, 0)
    for count in files:
        counts[count.outcome] += count.files
    return counts


def iter_file_findings(
    installation: Installation, file_counts: Sequence[FileCount]
) -> Iterator[Finding]:
    """Report failed and held files."""
    counts = count_by_outcome(file_counts)
    failed, held = counts[FileOutcome.FAILED], counts[FileOutcome.HELD]
    if failed:
        remedy = installation.remedy("See why", "imports", "list", "--outcome", "failed")
        text = f"{counted(failed, 'failed file')} {'needs' if failed == 1 else 'need'} attention"
        yield warning("files", text, *remedy, about=FileOutcome.FAILED)
    if held:
        are = "is" if held == 1 else "are"
        text = f"{counted(held, 'file')} {are} held until the plan has room"
        sentence = "Make room in the account, and held files will be imported automatically. See which account"
        remedy = installation.remedy(sentence, "imports", "list", "--outcome", "held")
        yield warning("files", text, *remedy, about=FileOutcome.HELD)
    if not failed and not held:
        yield Finding("files", "no failed or held files")


MAX_FAILED_FILES: Final = 100
"""The number of newest failed files that are searched for in their folders."""


def find_away(store: Store, inbox: Path) -> dict[str, int]:
    """Count by folder the failed files that are neither in their folder nor recorded there as gone.

    Only watched folders on this machine are searched.
    """
    away: Counter[str] = Counter()
    known: dict[Path, Set[str]] = {}
    files = import_history.list_files(store, outcome=FileOutcome.FAILED, limit=MAX_FAILED_FILES)
    for file in files:
        roots = watched_folder.find_roots(file, inbox)
        its_own = next((root for root in roots if shown_root(root) == file.root), None)
        if file.is_under_way or its_own is None:
            continue
        folders = [root / watched_folder.FAILED / (file.reason or "") for root in roots]
        for folder in folders:
            if folder not in known:
                known[folder] = set()
                with suppress(OSError):
                    known[folder] = frozenset().union(*watched_folder.read_failed(folder))
        is_known = any(file.claim_id[-8:] in known[folder] for folder in folders)
        if not is_known and not os.path.lexists(its_own / file.name):
            away[str(its_own / watched_folder.FAILED / (file.reason or ""))] += 1
    return away


def check_away(installation: Installation, store: Store) -> Finding | None:
    """Report failed files that are not in their folders."""
    away = find_away(store, installation.settings().inbox)
    if not away:
        return None
    count = sum(away.values())
    more = ", …" if len(away) > MAX_NAMED else ""
    text = (
        f"{counted(count, 'failed file')} {'is' if count == 1 else 'are'} not in "
        f"{', '.join(sorted(away)[:MAX_NAMED])}{more}"
    )
    sentence = installation.typeable(
        "Mount the folder's disk or move the folder back if it is missing, or dismiss the files with "
        "`resumes imports dismiss ID`. See which"
    )
    remedy = installation.remedy(sentence, "imports", "list", "--outcome", "failed")
    return warning("files", text, *remedy, about="away")


def check_documents(inbox: Path, accounts: Set[str], took_s: Sequence[float]) -> Finding:
    """Report the number of documents that wait in these accounts' folders.

    `took_s` contains the sorted durations of the newest analyses, which are reported too."""
    waiting = count_unclaimed(inbox, accounts, find_type=is_document, now_s=lambda: math.inf)
    more = "more than " if waiting > MAX_WAITING else ""
    text = f"{more}{counted(min(waiting, MAX_WAITING), 'document')} waiting for the analyzer"
    if took_s:
        text += (
            f"; of the newest {counted(len(took_s), 'document')}, half took at most "
            f"{took_s[len(took_s) // 2]:.1f} s, and all at most {took_s[-1]:.1f} s"
        )
    return Finding("documents", text)


SLOW_S: Final = 60.0
"""The time within which a request should be handled; a live importer needs only a few seconds."""


def oldest_request_age_s(store: Store) -> float | None:
    """Return the age in seconds of the oldest request to an importer, or None if there is none."""
    since = import_requests.find_oldest(store)
    if since is None:
        return None
    now = datetime.fromisoformat(timestamp(store.clock()))
    return max(0.0, (now - datetime.fromisoformat(since)).total_seconds())


def check_requests(age_s: float | None) -> Finding:
    """Check that an importer handles requests in time. `age_s` is the age of the oldest request."""
    if age_s is None:
        return Finding("requests", "none pending")
    text = f"the oldest has been waiting for {span(age_s)}"
    if age_s < SLOW_S:
        return Finding("requests", text)
    return warning(
        "requests",
        text,
        "Check that an importer is watching the file's folder; the importer's log shows what it is working on",
    )


# Checks of importers.

MAX_HELD_FILES: Final = 100
"""The number of newest held files whose folders are examined."""


def iter_importer_findings(
    installation: Installation, store: Store, accounts: Set[str], *, host: str | None = None
) -> Iterator[Finding]:
    """Check each importer, and find files that wait although no importer is running for them.

    `accounts` are the names and former names of all accounts. `host` is the name of this machine;
    the default is the system's host name.
    """
    host = host or socket.gethostname()
    seen = importers.list_importers(store)
    watched = {known.root for known in seen if known.is_live}
    for known in seen:
        if known.is_live:
            yield _check_live(known)
        else:
            # A store in a file belongs to one machine. A container's host name can change.
            is_here = store.path is not None or known.host == host
            yield _check_silent(installation, known, is_here=is_here, watched=watched)
    waiting = [
        *_iter_waiting(installation, store, watched),
        *_iter_dropped(installation, store, accounts, seen),
    ]
    yield from waiting
    if not seen and not waiting:
        text = f"none is running; start one with `{installation.command_line('up')}`"
        yield Finding("importer", text, is_idle=True)


def _check_live(importer: SeenImporter) -> Finding:
    sentences = ". ".join(finding.sentence.rstrip(".") for finding in importer.findings)
    text = f"watches {importer.root} (process {importer.pid} on {importer.host})"
    if importer.waiting:
        text += f", {counted(importer.waiting, 'file')} waiting"
    if importer.state is ImporterState.DEGRADED:
        remedy = sentences or "See its log"
        return Finding("importer", text, remedy, about=importer.id)
    return Finding("importer", f"{text}. {sentences}" if sentences else text, about=importer.id)


def _check_silent(
    installation: Installation, importer: SeenImporter, *, is_here: bool, watched: Set[str]
) -> Finding:
    text = (
        f"process {importer.pid} on {importer.host}, which watched {importer.root}, "
        f"has not responded for {span(importer.age_s)}"
    )
    if importer.root in watched:
        return Finding(
            "importer", f"{text}; another importer is now watching that folder", about=importer.id
        )
    if is_here and installation.watches(importer.root):
        remedy = installation.remedy("If it has stopped, start it again", "up")
        return Finding("importer", text, *remedy, about=importer.id)
    return warning(
        "importer",
        text,
        "If it should be running, start it again on its machine. Otherwise do nothing: it drops off "
        f"this list after {importers.REMEMBERED.total_seconds() / 3_600:.0f} hours",
        about=importer.id,
    )


def _iter_waiting(installation: Installation, store: Store, watched: Set[str]) -> Iterator[Finding]:
    asked = import_requests.list_unwatched_roots(store)
    for root in asked:
        where = "" if root is None else f" in {root}"
        text = f"files{where} are queued, but no importer is running for them"
        yield _check_unwatched(installation, root, text)
    held = import_history.list_files(store, outcome=FileOutcome.HELD, limit=MAX_HELD_FILES)
    if watched:
        # If a folder does not exist, it may have been moved to a watched folder.
        held = [
            file
            for file in held
            if file.root is not None
            and file.root not in {*watched, *asked}
            # Path.is_dir raises if the path from another machine is too long for this machine.
            and os.path.isdir(os.path.join(file.root, watched_folder.HELD))  # noqa: PTH112, PTH118
        ]
    if held:
        # Prefer the home's inbox, since its importer can be started here.
        root = min(
            (file.root for file in held),
            key=lambda root: (not installation.watches(root), root or ""),
        )
        text = "files are held, but no importer is running to import them"
        yield _check_unwatched(installation, root, text)


WAITING_S: Final = 60
"""The time within which a running importer imports a file if possible."""

MAX_WAITING: Final = 1_000
"""The maximum number of waiting files that are counted in a folder, since this runs repeatedly."""


def _iter_dropped(
    installation: Installation, store: Store, accounts: Set[str], seen: Sequence[SeenImporter]
) -> Iterator[Finding]:
    """Find files that were dropped into folders that no importer watches."""
    settings = installation.settings()
    inbox = os.path.realpath(settings.inbox)
    watched = {known.root for known in seen if known.is_live}
    find_type = find_filed_extension if settings.analyzer else find_extension
    for root in _list_roots(store, settings.home, settings.inbox, seen):
        is_inbox = str(root) == inbox
        shown = watched_folder.shown_root(root)
        with suppress(OSError):
            # A path from another machine can lead to a different folder on this machine.
            if shown in watched or not (is_inbox or watched_folder.find_owner(root)):
                continue
            count = count_unclaimed(root, accounts if is_inbox else None, find_type=find_type)
            if count:
                more = "more than " if count > MAX_WAITING else ""
                files = counted(min(count, MAX_WAITING), "file")
                text = (
                    f"{more}{files} in {shown} {'is' if count == 1 else 'are'} waiting, "
                    "but no importer is running there"
                )
                words = ("up",) if is_inbox else ("watch", str(root))
                remedy = installation.remedy("Start one", *words)
                yield Finding("importer", text, *remedy, about=f"waiting in {shown}")


def count_unclaimed(
    root: Path,
    accounts: Set[str] | None,
    *,
    find_type: Callable[[str], object] = find_extension,
    now_s: Callable[[], float] = time.time,
) -> int:
    """Count the files that an importer of the folder would have imported by now.

    Count only files in the folders of these accounts (with None, of all accounts) for whose names
    `find_type` returns a type. Files that changed within WAITING_S may still be written and are not
    counted. At most MAX_WAITING + 1 files are counted.
    """
    changed_before = now_s() - WAITING_S
    waiting = (
        entry
        for folder, name, entry in islice(_iter_entries(root, MAX_NAMES), MAX_NAMES)
        if (accounts is None or folder in accounts)
        and find_type(name)
        and not is_hidden_or_temporary(entry.name)
        and _is_file_from_before(entry, changed_before)
    )
    return sum(1 for _ in islice(waiting, MAX_WAITING + 1))


def _is_file_from_before(entry: os.DirEntry[str], changed_before: float) -> bool:
    with suppress(OSError):
        if entry.is_file(follow_symlinks=False):
            found = entry.stat(follow_symlinks=False)
            # Use the earlier time: files from cameras, archives or other machines can have a future
            # time.
            return min(found.st_mtime, found.st_ctime) <= changed_before
    return False


def _check_unwatched(installation: Installation, root: str | None, text: str) -> Finding:
    if installation.watches(root):
        return Finding("importer", text, *installation.remedy("Start one", "up"), about=text)
    how = installation.how_to_watch(root)
    return warning("importer", text, f"{how[0].upper()}{how[1:]}", about=text)
