"""Define findings, and the remedies and commands that they suggest."""

import os
import pwd
import re
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resumes.text import shell_line
from resumes.watched_folder import shown_root

if TYPE_CHECKING:  # importing these would slow down commands that only name others
    from resumes.settings import Settings
    from resumes.store.store import Store

MAX_NAMED = 10
"""The maximum number of items that a check names. Further items are only counted."""


class Severity(StrEnum):
    """The severity of a finding, from best to worst."""

    OK = "ok"
    WARNING = "warning"
    """Everything works, but the operator should do something."""

    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. `remedy` is None if nothing needs to be done.

    `command` is the command in the remedy, as it can be typed, or None. `is_warning` means that
    nothing is broken although there is a remedy. `about` distinguishes the findings with the same
    subject and does not change between checks: it is an account, a folder or the ID of a key, for
    example.
    """

    subject: str
    text: str
    remedy: str | None = None
    command: str | None = None
    is_warning: bool = False
    about: str = ""
    is_idle: bool = False
    """Whether the subject is not running and need not be, so that it is neither wrong nor ok."""

    @property
    def severity(self) -> Severity:
        """Return the severity, which depends on the remedy."""
        if self.remedy is None:
            return Severity.OK
        return Severity.WARNING if self.is_warning else Severity.ERROR


def warning(
    subject: str, text: str, remedy: str, command: str | None = None, *, about: str = ""
) -> Finding:
    """Return a finding that requires action by the operator, although nothing is broken."""
    return Finding(subject, text, remedy, command, is_warning=True, about=about)


def as_json(finding: Finding) -> dict[str, Any]:
    """Return the finding as `--json` prints it. `ok` is false only if something is broken."""
    return {
        "subject": finding.subject,
        "ok": finding.severity is not Severity.ERROR,
        "text": finding.text,
        "remedy": finding.remedy,
    }


_COMMAND = re.compile(r"`resumes (?!-)([^`]+)`")
"""A command in a message, which lacks the flags that select an installation."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An installation, with functions that return its settings, its store and its command lines.

    `settings` and `store` raise ResumesErrors if they cannot be loaded or opened. `store` may
    return a store that stays open after its `with` block. `command_line` quotes words for a shell.
    """

    settings: "Callable[[], Settings]"
    store: "Callable[[], AbstractContextManager[Store]]"
    command_line: Callable[..., str]

    def watches(self, root: str | None) -> bool:
        """Return whether the folder is the home's inbox. None means the inbox.

        Findings suggest no command for other folders: a folder may belong to another store, and
        watching it would import its files into this store.
        """
        return root in (None, shown_root(os.path.realpath(self.settings().inbox)))

    def how_to_watch(self, root: str | None) -> str:
        """Return the end of a sentence that explains how to start an importer for the folder."""
        if self.watches(root):
            return f"start one with `{self.command_line('up')}`"
        return (
            f"restart the importer for {root}, or run `{self.command_line('up')}` if that folder has been moved to "
            f"{self.settings().inbox}"
        )

    def remedy(self, sentence: str, *words: str) -> tuple[str, str]:
        """Return a remedy that ends with the command, and the command, for a `Finding`."""
        command = self.command_line(*words)
        return f"{sentence}: {command}", command

    def typeable(self, text: str) -> str:
        """Add this installation's flags to the commands in the text."""
        program = self.command_line().rstrip()
        return _COMMAND.sub(lambda found: f"`{program} {found[1]}`", text)


def installation_of(store: "Store", settings: "Settings", program: str) -> Installation:
    """Return the installation of an open store. `program` is the quoted beginning of commands."""

    def command_line(*words: str) -> str:
        return f"{program} {shell_line(*words)}"

    return Installation(lambda: settings, lambda: nullcontext(store), command_line)


def remedy_for(path: Path, user_id: int | None = None) -> str:
    """Return how to give this user, or the user `user_id`, access to the file or folder.

    If the user does not own it, the wrong user is probably running the command. Only a folder may have
    been created by another user for this user.
    """
    user_id = os.getuid() if user_id is None else user_id
    try:
        found = path.stat()
    except OSError:
        return f"Give user {user_name(user_id)} access to its folder"
    if found.st_uid != user_id and user_id != 0:
        remedy = f"Run this as its owner, {user_name(found.st_uid)}"
        is_folder = stat.S_ISDIR(found.st_mode)
        return f"{remedy}, or chown it to {user_name(user_id)}" if is_folder else remedy
    if ~found.st_mode & (stat.S_IRUSR | stat.S_IWUSR):
        return shell_line("chmod", "u+rwX", str(path))
    return "Find out why its file system is read-only: `mount` shows how it is mounted"


def user_name(user_id: int) -> str:
    """Return the name of the user, or the ID if the user has no name."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)
