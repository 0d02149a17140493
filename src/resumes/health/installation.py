"""The installation that is looked at."""

import re
import shlex
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from resumes.text import escaped

if TYPE_CHECKING:  # a command that only names another one should not wait for these
    from resumes.settings import Settings
    from resumes.store.engine import Store


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
