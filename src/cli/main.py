"""The `resumes` command: its options, its table of commands, and the edge around them."""

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from cli import errors
from cli.errors import ExitCode
from cli.groups import Chapters, CommandPlace, LazyGroup
from cli.session import Session
from cli.signals import keep_interrupts
from resumes.errors import ResumesError

STREAMS = ("stdin", "stdout", "stderr")

CHAPTERS: Chapters = {
    "Begin": {
        "demo": CommandPlace("cli.commands.demo", "demo", "Try everything in a scratch home."),
        "up": CommandPlace("cli.commands.up", "up", "Run the API and the importer."),
        "tui": CommandPlace("cli.commands.tui", "tui", "Look around in a terminal UI."),
    },
    "Resumes": {
        "import": CommandPlace(
            "cli.commands.import_", "import_", "Import files and folders, in place."
        ),
        "validate": CommandPlace(
            "cli.commands.import_", "validate", "Judge files, without a store."
        ),
        "list": CommandPlace("cli.commands.resumes", "list_", "List an account's resumes."),
        "show": CommandPlace("cli.commands.resumes", "show", "Show a resume."),
        "export": CommandPlace(
            "cli.commands.resumes", "export", "Write resumes to files or one stream."
        ),
        "delete": CommandPlace("cli.commands.resumes", "delete", "Delete a resume."),
        "imports": CommandPlace(
            "cli.commands.imports", "imports", "Look at what became of dropped files."
        ),
    },
    "Accounts": {
        "accounts": CommandPlace("cli.commands.accounts", "accounts", "Make and change accounts."),
        "keys": CommandPlace("cli.commands.keys", "keys", "Make and revoke API keys."),
        "plans": CommandPlace("cli.commands.plans", "plans", "See and set what plans allow."),
    },
    "Run and look after": {
        "serve": CommandPlace("cli.commands.serve", "serve", "Run the API alone."),
        "watch": CommandPlace("cli.commands.watch", "watch", "Run the importer alone."),
        "db": CommandPlace(
            "cli.commands.db", "database", "Look after the store: copies, backups, checks."
        ),
        "doctor": CommandPlace("cli.commands.doctor", "doctor", "Check that all is well."),
        "completion": CommandPlace(
            "cli.completion", "completion", "Print a shell's completion script."
        ),
    },
}


class Resumes(LazyGroup):
    """The command itself: all failures end here, as one line and an exit code."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs, tells what failed, and exits with the code of `cli.errors`."""
        session = Session()
        kwargs |= {"standalone_mode": False, "obj": session}
        code = errors.run(
            lambda: super(Resumes, self).main(*args, **kwargs),
            log_folder=lambda: _log_folder(session),
        )
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command that was named."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise errors.ReaderGone from error


def _log_folder(session: Session) -> Path | None:
    with contextlib.suppress(ResumesError):
        home = session.settings().home
        return home / "logs" if home.is_dir() else None
    return None


@click.group(
    cls=Resumes,
    chapters=CHAPTERS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the store, the inbox and config.toml are.",
)
@click.option(
    "--database",
    metavar="URL",
    help="The store, if elsewhere: sqlite:///PATH or postgresql://USER@HOST/NAME. Other users of the "
    "machine can read it here; one with a password belongs into RESUMES_DATABASE.",
)
@click.version_option(package_name="resume-service", message="%(prog)s %(version)s")
@click.pass_obj
def resumes(session: Session, home: Path | None, database: str | None) -> None:
    """Takes resumes in from a resume analyzer, keeps them, and gives them back.

    New here? `resumes demo` shows everything in a minute.
    """
    session.home = home
    session.database = database


def refuse_closed_output() -> None:
    """Ends the process when standard output is closed, not merely thrown away.

    The store would be opened under its number and take what is printed, a new key would be lost.
    """
    closed = [number for number, stream in enumerate(STREAMS) if getattr(sys, stream) is None]
    while closed and os.open(os.devnull, os.O_RDWR) < max(closed):
        pass
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for good
    if sys.stdout is None:
        sys.stderr.write(
            "Error: Standard output is closed. Send it to /dev/null if it is not wanted\n"
        )
        sys.exit(ExitCode.FAILED)


def main() -> None:
    """The console script. Ends the process."""
    refuse_closed_output()
    keep_interrupts()
    for stream in (sys.stdout, sys.stderr):
        # A terminal of another encoding gets escapes for what it cannot show, not a failure.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # typeshed: any TextIO
    resumes(prog_name="resumes")
