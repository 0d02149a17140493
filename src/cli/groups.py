"""Define what commands share: common flags, shared options, and confirmation before a loss."""

import math
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click
from click.decorators import FC

from cli.errors import ExitCode
from cli.output import say
from cli.session import Session
from resumes.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

PORT = click.IntRange(0, 65_535)
"""A port to listen on; 0 means any free port."""


class Seconds(click.FloatRange):
    """A number of seconds, up to an hour."""

    def __init__(self) -> None:
        super().__init__(0, 3_600)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, but reject NaN, which passes click's range check."""
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return seconds


LOG_FORMAT = click.option(
    "--log-format", type=click.Choice(["text", "json"]), help="Log format. [default: text]"
)
"""The option for commands that run services."""

ACCESS_LOG = click.option(
    "--access-log/--no-access-log",
    default=None,
    help="Log every request. [default: only with --log-format json]",
)

YES = click.option(
    "--yes",
    is_flag=True,
    help="Skip the confirmation. This option is required if standard input is not a terminal.",
)
"""The option for commands that delete data. Without it, they call `confirm`."""


def account_option(
    sentence: str = "Account to use; optional if there is only one account.",
) -> Callable[[FC], FC]:
    """Return the option `--account NAME` with this help text."""
    return click.option("--account", metavar="NAME", help=sentence)


def label_option(sentence: str) -> Callable[[FC], FC]:
    """Return the option `--label NAME` with this help text."""
    return click.option("--label", metavar="NAME", help=sentence, callback=_checked_label)


def _checked_label(
    context: click.Context, option: click.Parameter, value: str | None
) -> str | None:
    from resumes.store.labels import check_label

    return None if value is None else check_label(value)


def confirm(question: str) -> None:
    """Return if the user confirms; otherwise, print that nothing was done and end the command.

    Raises InvalidArgument if there is no terminal to ask on.
    """
    if not sys.stdin.isatty():
        raise InvalidArgument("Cannot ask for confirmation without a terminal: use --yes")
    if not click.confirm(question, err=True):
        say("Canceled: nothing was done.")
        raise click.exceptions.Exit(ExitCode.FAILED)


class NewPath(click.Path):
    """A path to write to, which must not be empty: `Path("")` is the current folder."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "str | bytes | os.PathLike[str]":
        """Return the path."""
        if not value:
            self.fail("The path is empty: use ./ for the current folder.", param, ctx)
        return super().convert(value, param, ctx)


class FileOrFolder(NewPath):
    """A file or folder that exists or can be created."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "Path":
        """Return its path. `pathlib` is imported only when needed."""
        from pathlib import Path

        return Path(os.fsdecode(super().convert(value, param, ctx)))


class Folder(FileOrFolder):
    """A folder that exists or can be created."""

    def __init__(self) -> None:
        super().__init__(file_okay=False)


def _store_flag(context: click.Context, option: click.Parameter, value: Any) -> None:
    # A flag may come before or after the command. The later one is parsed last and wins.
    session = context.find_object(Session)
    if value is not None and session is not None:
        setattr(session, option.human_readable_name, value)


_NOTED: Final[Mapping[str, Any]] = {"expose_value": False, "callback": _store_flag}


def store_options(*, hidden: bool) -> list[click.Parameter]:
    """Return `--home` and `--database`."""
    return [
        click.Option(
            ["--home"],
            type=Folder(),
            metavar="DIR",
            help="Folder that contains the store, the inbox and config.toml.",
            hidden=hidden,
            **_NOTED,
        ),
        click.Option(
            ["--database"],
            metavar="URL",
            help="Address of a store to use instead of the one in the home folder: sqlite:///PATH or "
            "postgresql://USER@HOST/NAME. Other users of this machine can see the address. If the "
            "address contains a password, use the environment variable RESUMES_DATABASE instead.",
            hidden=hidden,
            **_NOTED,
        ),
    ]


class Command(click.Command):
    """A command with `--json`, `--home` and `--database`, unless it defines them itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        taken = {flag for param in self.params for flag in param.opts}
        as_json = click.Option(
            ["--json", "as_json"], is_flag=True, default=None, help="Print JSON.", **_NOTED
        )
        # Hide the store's options here, because the help shows them before the command.
        common = [*store_options(hidden=True), as_json]
        self.params.extend(option for option in common if taken.isdisjoint(option.opts))


class CommandGroup(Command, click.Group):
    """A group of commands that accepts their options `--json`, `--home` and `--database` too."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of definition."""
        return list(self.commands)


def command(name: str | None = None) -> Callable[[Callable[..., Any]], Command]:
    """Turn a function into a command with this name; the default is the function's name."""
    return click.command(name, cls=Command)


def group(name: str | None = None) -> Callable[[Callable[..., Any]], CommandGroup]:
    """Turn a function into a command group with this name; the default is the function's name."""
    return click.group(name, cls=CommandGroup)
