"""The installation that is looked at."""

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


@dataclass(frozen=True, slots=True)
class Installation:
    """How to come by an installation's settings and store, and how its commands are typed.

    `settings` and `store` raise the ResumesErrors of those who load and open them. `store` may
    be a store that stays open after its block. `command_line` quotes words for a shell.
    """

    settings: "Callable[[], Settings]"
    store: "Callable[[], AbstractContextManager[Store]]"
    command_line: Callable[..., str]

    def start_line(self, root: str | None) -> str:
        """The command that starts an importer on the folder; on the home's inbox if it is None."""
        inbox = escaped(str(Path(self.settings().inbox).resolve()))
        words = ("up",) if root in (None, inbox) else ("watch", root)
        return self.command_line(*words)


def installation_of(store: "Store", settings: "Settings", program: str) -> Installation:
    """The installation of a store that is open. `program` is how commands begin, quoted."""

    def command_line(*words: str) -> str:
        return f"{program} {shlex.join(words)}"

    return Installation(lambda: settings, lambda: nullcontext(store), command_line)
