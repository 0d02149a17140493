"""What a check found."""

import re
import shlex
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resumes.text import escaped

if TYPE_CHECKING:  # a command that only names another one should not wait for these
    from resumes.settings import Settings
    from resumes.store.store import Store

MAX_NAMED = 10
"""Things that a finding names one by one; it counts the others."""


class State(StrEnum):
    """How a finding is meant, from best to worst."""

    WELL = "well"
    NOTICE = "notice"
    """Everything works, and somebody has something to do."""

    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. `remedy` None: all is well.

    `command` is the line of the remedy that can be typed as it is; None when the remedy is no
    such line. `is_notice` means that nothing is broken all the same. `about` tells it from the
    others of its subject, at the next look too: an account, a folder, the id of a key.
    """

    subject: str
    text: str
    remedy: str | None = None
    command: str | None = None
    is_notice: bool = False
    about: str = ""

    @property
    def state(self) -> State:
        """Whether this is well, worth a thought, or wrong."""
        if self.remedy is None:
            return State.WELL
        return State.NOTICE if self.is_notice else State.WRONG


def notice(
    subject: str, text: str, remedy: str, command: str | None = None, *, about: str = ""
) -> Finding:
    """A finding that somebody should act upon, while nothing is broken."""
    return Finding(subject, text, remedy, command, is_notice=True, about=about)


def as_json(finding: Finding) -> dict[str, Any]:
    """The finding as `--json` prints it. `remedy` null: all is well; `ok` is false only if broken."""
    return {
        "subject": finding.subject,
        "ok": finding.state is not State.WRONG,
        "text": finding.text,
        "remedy": finding.remedy,
    }


_COMMAND = re.compile(r"`resumes (?!-)([^`]+)`")
"""A command as messages name it, without the flags that lead to an installation."""


@dataclass(frozen=True, slots=True)
class Installation:
    """How to come by an installation's settings and store, and how its commands are typed.

    `settings` and `store` raise the ResumesErrors of those who load and open them. `store` may
    be a store that stays open after its block. `command_line` quotes words for a shell.
    """

    settings: "Callable[[], Settings]"
    store: "Callable[[], AbstractContextManager[Store]]"
    command_line: Callable[..., str]

    def start_line(self) -> str:
        """The command that starts an importer on the home's inbox."""
        return self.command_line("up")

    def watches(self, root: str | None) -> bool:
        """Whether the folder is the home's inbox, which None stands for too.

        No command is named for another one: whose it is cannot be known from here, and whoever
        watched it would import its files into this store.
        """
        return root in (None, escaped(str(Path(self.settings().inbox).resolve())))

    def how_to_watch(self, root: str | None) -> str:
        """How to come by an importer for files of the folder, as the end of a sentence."""
        if self.watches(root):
            return f"`{self.start_line()}` starts one"
        return (
            f"start the one of {root} again, or `{self.start_line()}` if that folder has become "
            f"{self.settings().inbox}"
        )

    def typeable(self, text: str) -> str:
        """The text with this installation's flags in the commands that it names."""
        program = self.command_line().rstrip()
        return _COMMAND.sub(lambda found: f"`{program} {found[1]}`", text)


def installation_of(store: "Store", settings: "Settings", program: str) -> Installation:
    """The installation of a store that is open. `program` is how commands begin, quoted."""

    def command_line(*words: str) -> str:
        return f"{program} {shlex.join(words)}"

    return Installation(lambda: settings, lambda: nullcontext(store), command_line)
