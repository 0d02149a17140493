"""Findings of checks, owners of paths, and an installation's commands as a user types them."""

import os
import pwd
import re
import shlex
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resumes.watched_folder import shown_root

if TYPE_CHECKING:  # a command that only names another one should not wait for these
    from resumes.settings import Settings
    from resumes.store.store import Store

MAX_NAMED = 10
"""The maximum number of things that a finding names; others are counted."""


class Severity(StrEnum):
    """How bad a finding is, from best to worst."""

    OK = "ok"
    WARNING = "warning"
    """Everything works, but the operator should do something."""

    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. `remedy` is None if all is well.

    `command` is the line of the remedy that can be typed as it is, or None. `is_warning` means that
    nothing is broken in spite of the remedy. `about` distinguishes the findings of one subject, the
    same in each check: an account, a folder, the id of a key.
    """

    subject: str
    text: str
    remedy: str | None = None
    command: str | None = None
    is_warning: bool = False
    about: str = ""
    is_idle: bool = False
    """Whether it is about something that is not running and need not be: neither wrong nor ok."""

    @property
    def severity(self) -> Severity:
        """Return how bad it is."""
        if self.remedy is None:
            return Severity.OK
        return Severity.WARNING if self.is_warning else Severity.ERROR


def warning(
    subject: str, text: str, remedy: str, command: str | None = None, *, about: str = ""
) -> Finding:
    """Return a finding that the operator should act on, although nothing is broken."""
    return Finding(subject, text, remedy, command, is_warning=True, about=about)


def as_json(finding: Finding) -> dict[str, Any]:
    """Return the finding in the form that `--json` prints. `ok` is false only if something is broken."""
    return {
        "subject": finding.subject,
        "ok": finding.severity is not Severity.ERROR,
        "text": finding.text,
        "remedy": finding.remedy,
    }


_COMMAND = re.compile(r"`resumes (?!-)([^`]+)`")
"""A command in a message, without the flags that select an installation."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An installation: functions that return its settings, its store and its command lines.

    `settings` and `store` raise the ResumesErrors of loading and opening them. `store` may return a
    store that stays open after its block. `command_line` quotes words for a shell.
    """

    settings: "Callable[[], Settings]"
    store: "Callable[[], AbstractContextManager[Store]]"
    command_line: Callable[..., str]

    def watches(self, root: str | None) -> bool:
        """Return whether the folder is the home's inbox; None stands for the inbox.

        No command is named for another folder: it may be another store's, and watching it would import
        its files into this one.
        """
        return root in (None, shown_root(os.path.realpath(self.settings().inbox)))

    def how_to_watch(self, root: str | None) -> str:
        """Return how to start an importer for files of the folder, as the end of a sentence."""
        if self.watches(root):
            return f"start one with `{self.command_line('up')}`"
        return (
            f"restart the importer for {root}, or run `{self.command_line('up')}` if that folder has been moved to "
            f"{self.settings().inbox}"
        )

    def remedy(self, sentence: str, *words: str) -> tuple[str, str]:
        """Return a remedy that ends in a command, and the command, as a `Finding` takes them."""
        command = self.command_line(*words)
        return f"{sentence}: {command}", command

    def typeable(self, text: str) -> str:
        """Return the text with this installation's flags in the commands that it names."""
        program = self.command_line().rstrip()
        return _COMMAND.sub(lambda found: f"`{program} {found[1]}`", text)


def installation_of(store: "Store", settings: "Settings", program: str) -> Installation:
    """Return the installation of an open store. `program` is how commands begin, quoted."""

    def command_line(*words: str) -> str:
        return f"{program} {shlex.join(words)}"

    return Installation(lambda: settings, lambda: nullcontext(store), command_line)


def remedy_for(path: Path, user_id: int | None = None) -> str:
    """Return how this user, or `user_id`, can be given access to the file or folder.

    A user who does not own it is more likely the wrong user than the owner is; only a folder may have
    been created by another user for this one.
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
        return shlex.join(["chmod", "u+rwX", str(path)])
    return "Find out why its file system is read-only: `mount` shows how it is mounted"


def user_name(user_id: int) -> str:
    """Return the name of the user, or the number if there is no name."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)
