"""Files that were put away and are not done, and requests for them."""

import heapq
import os
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from resumes import watched_folder, watched_names
from resumes.clock import timestamp
from resumes.durations import span
from resumes.health.findings import MAX_NAMED, Finding, Installation, notice
from resumes.health.store_checks import remedy_for
from resumes.store import import_ledger, import_requests, importers
from resumes.store.accounts import NAME, find_deleted
from resumes.store.import_ledger import FileCount, FileOutcome
from resumes.store.importers import SeenImporter, State
from resumes.store.store import Store
from resumes.text import counted, escaped
from resumes.watched_names import EXTENSIONS, OWN, is_hidden, is_outcome

MOST_NAMES: Final = 20_000
EXAMPLES: Final = 3

UNDER_WAY_S: Final = 3_600
"""So long a file may keep the name that it has while it is written."""


class PassedOver(NamedTuple):
    """How many files of a folder are passed over. `folder` is its name, empty for the inbox itself.

    `examples` are the first by name, each with the reason.
    """

    folder: str
    files: int
    examples: list[tuple[str, str]]


def find_passed_over(
    inbox: Path,
    *,
    now_s: Callable[[], float] = time.time,
    most_names: int = MOST_NAMES,
    examples: int = EXAMPLES,
) -> list[PassedOver]:
    """The folders of the inbox that have such files, by name; what cannot be listed is left out.

    Hidden files are never meant to be taken, and are not among them. Not more than `most_names`
    are looked at, since it comes again and again while somebody watches.
    """
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for folder, name, entry in islice(_iter_entries(inbox, most_names), most_names):
        why = _find_reason(entry, is_of_nobody=not folder, now_s=now_s)
        if why is not None:
            counts[folder] += 1
            found[folder] = heapq.nsmallest(examples, [*found[folder], (name, why)])
    return [PassedOver(folder, counts[folder], found[folder]) for folder in sorted(found)]


def _iter_entries(inbox: Path, most_names: int) -> Iterator[tuple[str, str, os.DirEntry[str]]]:
    """The account's folder, the name below it, and the entry, of all that an importer looks at."""
    waiting = [("", "", str(inbox))]
    while waiting:
        folder, below, path = waiting.pop()
        for entry in _list(path, most_names):
            if not folder and watched_names.is_outcome(entry.name):
                continue
            name = f"{below}{entry.name}"
            if not _is_plain_folder(entry):
                yield folder, name, entry
            elif folder:
                waiting.append((folder, f"{name}/", entry.path))
            else:
                waiting.append((entry.name, "", entry.path))


def _list(path: str, most_names: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return list(islice(entries, most_names))
    except OSError:
        return []


def _is_plain_folder(entry: os.DirEntry[str]) -> bool:
    return (
        entry.is_dir(follow_symlinks=False)
        and not watched_names.is_passed_over(entry.name)
        and watched_names.find_extension(entry.name) is None
    )


def _find_reason(
    entry: os.DirEntry[str], *, is_of_nobody: bool, now_s: Callable[[], float]
) -> str | None:
    """Why the entry is passed over; None when it is not, or is meant to be."""
    if watched_names.is_hidden(entry.name):
        return None
    if entry.is_symlink():
        return "a link"
    if watched_names.is_temporary(entry.name):
        return "a temporary name" if _age_s(entry, now_s) > UNDER_WAY_S else None
    if not entry.is_file(follow_symlinks=False):
        return "no file"
    if watched_names.find_extension(entry.name) is None:
        return "its ending"
    return "in no account's folder" if is_of_nobody else None


def _age_s(entry: os.DirEntry[str], now_s: Callable[[], float]) -> float:
    try:
        return now_s() - entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


REQUESTS = "requests"
SLOW_S = 60.0
"""An importer that is live takes requests up within seconds."""


def count_by_outcome(tallies: Sequence[FileCount]) -> dict[FileOutcome, int]:
    """How many files came to each outcome, whatever the reason."""
    counts = dict.fromkeys(FileOutcome, 0)
    for tally in tallies:
        counts[tally.outcome] += tally.files
    return counts


def iter_file_findings(
    installation: Installation, tallies: Sequence[FileCount]
) -> Iterator[Finding]:
    """Whether files failed or are held."""
    counts = count_by_outcome(tallies)
    if counts[FileOutcome.FAILED]:
        yield _failed(installation, counts[FileOutcome.FAILED])
    if counts[FileOutcome.HELD]:
        yield _held(installation, counts[FileOutcome.HELD])
    if not counts[FileOutcome.FAILED] and not counts[FileOutcome.HELD]:
        yield Finding("files", "none has failed and none is held")


def _failed(installation: Installation, count: int) -> Finding:
    command = installation.command_line("imports", "list", "--outcome", "failed")
    return notice(
        "files",
        f"{counted(count, 'file')} failed and {'waits' if count == 1 else 'wait'} to be mended",
        f"See why: {command}",
        command,
        about=FileOutcome.FAILED,
    )


def _held(installation: Installation, count: int) -> Finding:
    command = installation.command_line("imports", "list", "--outcome", "held")
    return notice(
        "files",
        f"{counted(count, 'file')} {'is' if count == 1 else 'are'} held until the plan has room",
        f"Make room in the account; the importer then lets them in by itself. Whose they are: "
        f"{command}",
        command,
        about=FileOutcome.HELD,
    )


def oldest_request_age_s(store: Store) -> float | None:
    """For how many seconds the oldest request waits for an importer; None when none does."""
    since = import_requests.find_oldest(store)
    if since is None:
        return None
    now = datetime.fromisoformat(timestamp(store.clock()))
    return max(0.0, (now - datetime.fromisoformat(since)).total_seconds())


def check_requests(age_s: float | None) -> Finding:
    """Whether what was asked of the importers is taken up soon."""
    if age_s is None:
        return Finding(REQUESTS, "none waits for an importer")
    text = f"the oldest waits for {span(age_s)}"
    if age_s < SLOW_S:
        return Finding(REQUESTS, text)
    return notice(
        REQUESTS,
        text,
        "Look whether an importer watches the file's folder; the log of one that does says what it "
        "is busy with",
    )


REMEMBERED_H = importers.REMEMBERED.total_seconds() / 3_600
HELD_FILES = 100
"""Of the files that are held, so many are asked for their folders, the newest."""


def iter_importer_findings(
    installation: Installation, store: Store, *, host: str | None = None
) -> Iterator[Finding]:
    """How each importer fares, and whether files wait that none will take up.

    `host` is the name of this machine, asked of the system unless it is given.
    """
    seen = importers.list_importers(store)
    watched = {one.importer.root for one in seen if one.is_live}
    for one in seen:
        if one.is_live:
            yield _live(one)
        elif one.importer.root in watched:
            yield Finding("importer", f"{_silence(one)}; another one watches it", about=_about(one))
        elif _is_of_here(installation, store, one, host or socket.gethostname()):
            command = installation.start_line()
            remedy = f"If it has ended: {command}"
            yield Finding("importer", _silence(one), remedy, command, about=_about(one))
        else:
            yield _silent_elsewhere(one)
    waiting = list(_iter_waiting(installation, store, is_any_live=bool(watched)))
    yield from waiting
    if not seen and not waiting:
        yield Finding("importer", f"none is running; `{installation.start_line()}` starts one")


def _live(seen: SeenImporter) -> Finding:
    importer = seen.importer
    said = ". ".join(finding.sentence.rstrip(".") for finding in importer.findings)
    text = f"watches {importer.root} (process {importer.pid} on {importer.host})"
    if importer.waiting:
        text += f", {counted(importer.waiting, 'file')} waiting"
    if importer.state is State.DEGRADED:
        remedy = said or "It is not well; its log says more"
        return Finding("importer", text, remedy, about=importer.id)
    return Finding("importer", f"{text}. {said}" if said else text, about=importer.id)


def _about(seen: SeenImporter) -> str:
    return seen.importer.id


def _silence(seen: SeenImporter) -> str:
    importer = seen.importer
    return (
        f"process {importer.pid} on {importer.host}, which watched {importer.root}, "
        f"has said nothing for {span(seen.age_s)}"
    )


def _is_of_here(installation: Installation, store: Store, seen: SeenImporter, host: str) -> bool:
    """Whether `up` here would watch what the importer watched. The store in a file is of one
    machine, though its name may have changed, as a container's does."""
    is_this_machine = store.path is not None or seen.importer.host == host
    return is_this_machine and installation.watches(seen.importer.root)


def _silent_elsewhere(seen: SeenImporter) -> Finding:
    return notice(
        "importer",
        _silence(seen),
        "If it should run, start it again where it ran. If it is gone for good there is nothing to "
        f"do: it is forgotten after {REMEMBERED_H:.0f} hours without a word",
        about=_about(seen),
    )


def _iter_waiting(
    installation: Installation, store: Store, *, is_any_live: bool
) -> Iterator[Finding]:
    for root in import_requests.list_unwatched_roots(store):
        where = "" if root is None else f" of {root}"
        text = f"files{where} were asked for again, and no importer takes them up"
        yield _missing(installation, root, text)
    held = [] if is_any_live else _list_held_roots(store)
    for root in sorted(held, key=lambda root: (not installation.watches(root), root or ""))[:1]:
        text = "files are held, and no importer is running to let them in"
        yield _missing(installation, root, text)


def _list_held_roots(store: Store) -> set[str | None]:
    files = import_ledger.list_files(store, outcome=FileOutcome.HELD, limit=HELD_FILES)
    return {file.root for file in files}


def _missing(installation: Installation, root: str | None, text: str) -> Finding:
    if installation.watches(root):
        command = installation.start_line()
        return Finding("importer", text, f"Start one: {command}", command, about=text)
    how = installation.how_to_watch(root)
    return notice("importer", text, f"{how[0].upper()}{how[1:]}", about=text)


def iter_inbox_findings(
    installation: Installation, inbox: Path, accounts: Set[str]
) -> Iterator[Finding]:
    """Whether the importer can take files out of the inbox and put them away.

    `accounts` are the names of all there are.
    """
    if not inbox.is_dir():
        yield Finding("inbox", f"{inbox} is not there yet; `resumes up` makes it")
        return
    try:
        folders = [inbox, *sorted(path for path in inbox.iterdir() if _is_folder(path))]
    except OSError as error:
        text = f"{inbox} cannot be read: {error.strerror}"
        yield Finding("inbox", text, remedy_for(inbox), about=str(inbox))
        return
    closed = [path for path in folders if not os.access(path, os.R_OK | os.W_OK | os.X_OK)]
    for path in closed[:MAX_NAMED]:
        yield Finding("inbox", f"{path} cannot be written", remedy_for(path), about=str(path))
    names = [path.name for path in folders[1:]]
    strange = [name for name in names if not _is_ours(name) and name not in accounts]
    for name in strange[:MAX_NAMED]:
        yield _strange(installation, name, accounts)
    if not closed and not strange:
        yield Finding("inbox", f"{inbox}, {counted(len(folders), 'folder')}, all writable")
    for passed_over in find_passed_over(inbox)[:MAX_NAMED]:
        yield _passed_over(inbox, passed_over)


def check_owner(installation: Installation, store: Store, inbox: Path) -> Finding | None:
    """Return the finding on an inbox that belongs to another store; None if it does not."""
    try:
        other = watched_folder.find_other(inbox, watched_folder.owner_of(store))
    except OSError as error:
        path = inbox / OWN
        is_strange = isinstance(error, NotADirectoryError | IsADirectoryError)
        remedy = "Remove it; the next importer makes it anew" if is_strange else remedy_for(path)
        return Finding("inbox", f"{path} cannot be read: {error.strerror}", remedy, about=OWN)
    if other is None:
        return None
    text = f"{watched_folder.describe_other(inbox, other)}: no importer of this one takes its files"
    command = installation.command_line("watch", str(inbox), "--adopt", "--once")
    return Finding("inbox", text, watched_folder.remedy_for_other(inbox), command, about=OWN)


def iter_unknown_accounts(
    store: Store, home: Path, inbox: Path, account_ids: Set[str]
) -> Iterator[Finding]:
    """Find files that wait for accounts that the store neither has nor has deleted.

    They are looked for in the store's own of these folders: the inbox, those that the home remembers,
    and those of importers that the store remembers. `account_ids` are those of all accounts. What an
    importer says itself is left to it.
    """
    seen = importers.list_importers(store)
    owner = watched_folder.owner_of(store)
    others = [*watched_folder.list_watched(home), *(Path(one.importer.root) for one in seen)]
    for root in dict.fromkeys([inbox.resolve(), *others]):
        if not _is_said(root, seen) and _may_be_of(owner, root):
            yield from _iter_unknown(store, root, account_ids)


def _is_said(root: Path, seen: Iterable[SeenImporter]) -> bool:
    return any(
        finding.key == watched_folder.UNKNOWN_ACCOUNTS
        for one in seen
        if one.is_live and one.importer.root == escaped(str(root))
        for finding in one.importer.findings
    )


def _may_be_of(owner: watched_folder.Owner, root: Path) -> bool:
    try:
        return watched_folder.find_other(root, owner) is None
    except OSError:
        return False


def _iter_unknown(store: Store, root: Path, account_ids: Set[str]) -> Iterator[Finding]:
    waiting = {
        (str(root / folder), account_id): files
        for (folder, account_id), files in watched_folder.count_waiting(root).items()
    }
    strangers = {account_id for _, account_id in waiting} - account_ids
    unknown = strangers - find_deleted(store, strangers) if strangers else strangers
    text = watched_folder.describe_unknown(waiting, unknown)
    if text is not None:
        about = f"{watched_folder.UNKNOWN_ACCOUNTS} in {root}"
        yield Finding("inbox", text, watched_folder.UNKNOWN_REMEDY, about=about)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_ours(name: str) -> bool:
    return is_outcome(name) or is_hidden(name)


def _strange(installation: Installation, name: str, accounts: Set[str]) -> Finding:
    # A name that no account can have leaves nothing but to rename the folder.
    can_be = NAME.fullmatch(name) is not None
    command = installation.command_line("accounts", "create", name) if can_be else None
    if command is not None:
        remedy = f"{command}, or rename the folder"
    elif name.lower() in accounts:
        remedy = f'Rename the folder to "{name.lower()}", or move its files there'
    else:
        remedy = "Rename the folder: accounts have names of a-z, 0-9 and dashes, such as ana-2"
    text = f'the folder "{escaped(name)}" names no account, so its files wait'
    return Finding("inbox", text, remedy, command, about=name)


def _passed_over(inbox: Path, found: PassedOver) -> Finding:
    named = ", ".join(f'"{escaped(name)}" ({why})' for name, why in found.examples)
    more = found.files - len(found.examples)
    endings = ", ".join(ending for ending in EXTENSIONS if ending.count(".") == 1)
    return notice(
        "inbox",
        f"no importer takes {counted(found.files, 'file')} in {inbox / found.folder}: {named}"
        + (f", and {more:,} more" if more else ""),
        f"Remove, rename or move what should be taken: files of account folders, no links, that "
        f"end in {endings}",
        about=f"passed over in {found.folder}",
    )
