"""The folders that the importer takes files out of."""

import os
from collections.abc import Iterator, Set
from pathlib import Path

from resumes.health.findings import Finding
from resumes.health.installation import Installation
from resumes.store.accounts import NAME
from resumes.text import counted

SUBJECT = "inbox"
MANY = 10


def iter_inbox_findings(
    installation: Installation, inbox: Path, accounts: Set[str]
) -> Iterator[Finding]:
    """Whether the importer can take files out of the inbox and put them away.

    `accounts` are the names of all there are.
    """
    if not inbox.is_dir():
        yield Finding(SUBJECT, f"{inbox} is not there yet; `resumes up` makes it")
        return
    try:
        folders = [inbox, *sorted(path for path in inbox.iterdir() if path.is_dir())]
    except OSError as error:
        text, remedy = f"{inbox} cannot be read: {error.strerror}", _chown()
        yield Finding(SUBJECT, text, remedy, about=str(inbox))
        return
    closed = [path for path in folders if not os.access(path, os.R_OK | os.W_OK | os.X_OK)]
    for path in closed[:MANY]:
        text, remedy = f"{path} cannot be written", _chown()
        yield Finding(SUBJECT, text, remedy, about=str(path))
    strange = [
        path.name for path in folders[1:] if path.name[0] not in "._" and path.name not in accounts
    ]
    for name in strange[:MANY]:
        yield _strange(installation, name)
    if not closed and not strange:
        yield Finding(SUBJECT, f"{inbox}, {counted(len(folders), 'folder')}, all writable")


def _strange(installation: Installation, name: str) -> Finding:
    # A name that no account can have leaves nothing but to rename the folder.
    can_be = NAME.fullmatch(name) is not None
    return Finding(
        SUBJECT,
        f'the folder "{name}" names no account, so its files wait',
        f"resumes accounts create {name}, or rename the folder",
        installation.command_line("accounts", "create", name) if can_be else None,
        about=name,
    )


def _chown() -> str:
    return f"chown it to user {os.getuid()}"
