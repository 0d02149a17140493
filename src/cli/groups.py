"""What commands share: the flags that all of them take, options of several, the question before a loss."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from cli.errors import ExitCode
from cli.output import say
from cli.session import Session
from resumes.errors import InvalidArgument

PORT = click.IntRange(0, 65_535)
"""A port to listen on; 0 takes a free one."""

LOG_FORMAT = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    help="Log format. [default: text]",
)
"""For commands that run services."""

ACCESS_LOG = click.option(
    "--access-log/--no-access-log",
    default=None,
    help="Log each request. [default: only with --log-format json]",
)

YES = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
"""For commands that `confirm` what cannot be undone."""


def can_ask() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin.isatty()


def confirm(question: str) -> None:
    """Return after a yes; after a no, say that nothing was done and end the command.

    Raises InvalidArgument without a terminal to ask on.
    """
    if not can_ask():
        raise InvalidArgument("Cannot ask for confirmation without a terminal: use --yes")
    if not click.confirm(question, err=True):
        say("Canceled: nothing was deleted.")
        raise click.exceptions.Exit(ExitCode.FAILED)


def _note(context: click.Context, option: click.Parameter, value: Any) -> None:
    # Each may stand before or after the command. A flag after it is parsed later, and wins.
    session = context.find_object(Session)
    if value is not None and session is not None:
        setattr(session, option.human_readable_name, value)


def _iter_common(own: Iterable[click.Parameter]) -> Iterator[click.Option]:
    """Yield the flags that every command takes, except those that it defines itself."""
    taken = {flag for param in own for flag in param.opts}
    noted: dict[str, Any] = {"expose_value": False, "callback": _note}
    hidden = noted | {"hidden": True}  # help shows them before the command
    folder = click.Path(path_type=Path, file_okay=False)
    for option in (
        click.Option(["--home"], type=folder, **hidden),
        click.Option(["--database"], **hidden),
        click.Option(
            ["--json", "as_json"], is_flag=True, default=None, help="Print JSON.", **noted
        ),
    ):
        if not taken.intersection(option.opts):
            yield option


class Command(click.Command):
    """A command that takes `--json`, `--home` and `--database`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend([*_iter_common(self.params)])


class CommandGroup(Command, click.Group):
    """A group of commands, which takes `--json`, `--home` and `--database` for them."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of definition, which is the order of use."""
        return list(self.commands)


def command(name: str | None = None) -> Callable[[Callable[..., Any]], Command]:
    """Make a function a command, called as the function is unless named."""
    return click.command(name, cls=Command)


def group(name: str | None = None) -> Callable[[Callable[..., Any]], CommandGroup]:
    """Make a function a group of commands, called as the function is unless named."""
    return click.group(name, cls=CommandGroup)
