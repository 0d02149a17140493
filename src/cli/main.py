"""Define the `resumes` command: its options, its table of commands, and its error handling.

`resumes --help` and completion must be fast, and the store alone takes a third of a second to
import. So this module lists the commands by name and summary, and imports a command's module only
when needed. Modules of commands have all imports at the top. Modules that this module imports are
loaded by every run, so they import at the top only what the help needs, and the rest in functions.
"""

import os
import pkgutil
import sys
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import click

from cli import errors
from cli.errors import ExitCode
from cli.groups import CommandGroup, store_options
from cli.session import Session
from cli.signals import ignore_hangup_without_terminal

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

STREAMS = ("stdin", "stdout", "stderr")

SECTIONS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "Get started": {
        "demo": ("cli.commands.demo:demo", "Try the service with sample files."),
        "up": ("cli.commands.up:up", "Run the API and the importer."),
        "tui": ("cli.commands.tui:tui", "Open the terminal UI."),
    },
    "Resumes": {
        "import": ("cli.commands.import_:import_", "Import files and folders."),
        "validate": ("cli.commands.import_:validate", "Check files without importing them."),
        "list": ("cli.commands.resumes:list_", "List an account's resumes."),
        "show": ("cli.commands.resumes:show", "Show a resume."),
        "export": ("cli.commands.resumes:export", "Export resumes to files or to standard output."),
        "edit": ("cli.commands.edit:edit", "Edit a resume in your editor."),
        "delete": (
            "cli.commands.resumes:delete",
            "Delete a resume, or all resumes with a label, from a search or before a date.",
        ),
        "forget": (
            "cli.commands.forget:forget",
            "Erase a person from the store and the watched folders, for good.",
        ),
        "label": ("cli.commands.labels:label", "Change the label of resumes."),
        "labels": ("cli.commands.labels:labels", "List an account's labels."),
        "imports": (
            "cli.commands.imports:imports",
            "List, retry, release and dismiss files from watched folders.",
        ),
    },
    "Accounts": {
        "accounts": ("cli.commands.accounts:accounts", "Create and manage accounts."),
        "keys": ("cli.commands.keys:keys", "Create and revoke API keys."),
        "plans": ("cli.commands.plans:plans", "Show and change plans."),
        "expire": (
            "cli.commands.expire:expire",
            "Erase resumes that are older than their plan allows.",
        ),
    },
    "Operations": {
        "serve": ("cli.commands.serve:serve", "Run only the API."),
        "watch": ("cli.commands.watch:watch", "Run only the importer."),
        "db": ("cli.commands.db:database", "Copy, back up, restore and check the store."),
        "doctor": ("cli.commands.doctor:doctor", "Check the installation."),
        "completion": ("cli.commands.completion:completion", "Print a shell's completion script."),
    },
}
"""The commands by heading, in the order of the help. Each name has a location and a summary, which
is the first sentence of the command's help."""

COMMANDS: Final = {name: place for part in SECTIONS.values() for name, place in part.items()}


class Resumes(CommandGroup):
    """The top-level command, which imports a command when it is run, not when it is listed.

    It reports every error as one line and an exit code.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = COMMANDS  # type: ignore[assignment]  # click only reads the names

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command with this name, or return None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        found = pkgutil.resolve_name(COMMANDS[cmd_name][0])
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings, without importing them."""
        column = max(map(len, COMMANDS))
        for heading, places in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(column), summary) for name, (_, summary) in places.items()]
                )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Return the commands and the group's options, without importing the commands."""
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=summary)
            for name, (_, summary) in COMMANDS.items()
            if name.startswith(incomplete)
        ] + click.Command.shell_complete(self, ctx, incomplete)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command, report a failure, and exit with a code from `cli.errors`."""
        session = Session()
        kwargs |= {"standalone_mode": False, "obj": session}
        sys.exit(errors.run(lambda: super(Resumes, self).main(*args, **kwargs), session))

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the command line. If the reader of the help has exited, exit with READER_GONE."""
        try:
            return super().make_context(*args, **kwargs)
        except BrokenPipeError:
            raise click.exceptions.Exit(ExitCode.READER_GONE) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the given command. If the reader of its output, such as `head`, has exited, return
        READER_GONE instead of click's exit code."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return ExitCode.READER_GONE


@click.group(
    cls=Resumes,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=store_options(hidden=False),
)
@click.version_option(package_name="resume-service", message="%(prog)s %(version)s")
def resumes() -> None:
    """Import, store and serve resumes from a resume analyzer.

    To try the service with sample files, run `resumes demo`.
    """


def refuse_closed_output() -> None:
    """End the process if standard output is closed. Replace closed standard input or error.

    Otherwise, the store could be opened as file descriptor 1 and receive the output, and a new key
    would be lost.
    """
    closed = [number for number, stream in enumerate(STREAMS) if getattr(sys, stream) is None]
    while closed and os.open(os.devnull, os.O_RDWR) < max(closed):
        pass
    if sys.stdin is None:  # use an empty stream
        sys.stdin = os.fdopen(0, encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")
    if sys.stdout is None:
        sys.stderr.write(
            "Error: Standard output is closed. Redirect it to /dev/null if it is not needed\n"
        )
        sys.exit(ExitCode.FAILED)


def keep_interrupts() -> None:
    """Make Ctrl-C end the program even where Python ignores exceptions.

    KeyboardInterrupt can be raised in a weak reference's callback or in `__del__`, where Python
    only prints it and continues. It is raised again at the next call or return after the callback;
    if it was raised later, a short command might already have ended.
    """
    report = sys.unraisablehook

    def interrupt_again(dropped: "sys.UnraisableHookArgs") -> None:
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            sys.setprofile(interrupt)
        else:
            report(dropped)

    def interrupt(frame: FrameType, event: str, arg: object) -> None:
        if frame.f_code is not interrupt_again.__code__:  # Python would ignore it there too
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.unraisablehook = interrupt_again


def main() -> None:
    """Run the console script and end the process."""
    if os.getpid() == 1:
        from cli import pid1

        pid1.run_in_child()
    ignore_hangup_without_terminal()
    refuse_closed_output()
    keep_interrupts()
    for stream in (sys.stdout, sys.stderr):
        # Escape characters that the terminal's encoding lacks, instead of failing.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # typeshed: any TextIO
    resumes(prog_name="resumes")
