"""The folders that the importer takes files out of."""

import os
from collections.abc import Iterable, Iterator, Set
from pathlib import Path

from resumes import watched_folder
from resumes.file_names import EXTENSIONS, OWN, is_hidden, is_outcome
from resumes.health.findings import MAX_NAMED, Finding, notice
from resumes.health.installation import Installation
from resumes.health.passed_over import PassedOver, find_passed_over
from resumes.health.permissions import remedy_for
from resumes.store import importers
from resumes.store.accounts import NAME, find_deleted
from resumes.store.engine import Store
from resumes.store.importers import SeenImporter
from resumes.text import counted, escaped


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
