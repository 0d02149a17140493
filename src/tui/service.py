"""Running the terminal UI: what `resumes tui` calls.

Nothing that this module imports needs the store: the first frame is painted before that.
"""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from resumes.errors import InvalidArgument
from resumes.text import counted
from tui.app import ResumesApp
from tui.ending import ended_by_signals
from tui.held_logs import held_logs
from tui.modes import MODES
from tui.terminal_driver import tolerant
from tui.text import safe_text
from tui.web.child import is_behind_a_page

if TYPE_CHECKING:
    from tui.session import Session

ELSEWHERE: Final = (
    "Elsewhere use `resumes list`, `resumes show` and the other commands, with --json"
)
DUMB: Final = ("", "dumb")
"""Kinds of terminals that can only print line after line."""


def run(
    open_session: "Callable[[], Session]", *, screen: str = "resumes", read_only: bool = False
) -> int:
    """The terminal UI has run to its end; the exit code: 0, or 1 after a crash.

    `open_session` is called in a thread, once the first frame is painted; a ResumesError of it
    is raised here when the terminal is itself again. Raises InvalidArgument for an unknown
    screen, and where there is no terminal to draw on.
    """
    check_screen(screen)
    check_terminal()
    app = ResumesApp(open_session, screen=screen, read_only=read_only)
    app.driver_class = tolerant(app.driver_class)
    with held_logs(), ended_by_signals(app):
        app.run()
    if app.failure is not None:
        raise app.failure
    if kept := app.deletions_left:
        # To standard error: the screen that could have said so is gone.
        titles = ", ".join(f'"{safe_text(title[:80])}"' for title in kept[:5])
        sys.stderr.write(f"{counted(len(kept), 'deletion')} not carried out: {titles} stays.\n")
    return app.return_code or 0


def check_screen(screen: str) -> None:
    """Raises InvalidArgument for a screen that there is not."""
    names = [mode.name for mode in MODES]
    if screen not in names:
        raise InvalidArgument(f'Unknown screen "{screen[:80]}": use {", ".join(names)}')


def check_terminal() -> None:
    """Raises InvalidArgument where nothing can be drawn."""
    if is_behind_a_page():
        return
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise InvalidArgument(f"The terminal UI needs a terminal. {ELSEWHERE}")
    kind = os.environ.get("TERM", "")
    if kind in DUMB:
        raise InvalidArgument(
            f'The terminal UI cannot draw on a terminal of the kind TERM="{kind}". {ELSEWHERE}'
        )
