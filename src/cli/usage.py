"""Command lines that cannot be used, in our own words: what, which value, and what can be used."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

import click
from click.exceptions import NoSuchCommand, NoSuchOption

_NO_NUMBER = re.compile(r"'(.*)' is not a valid [a-z ]+\.", re.DOTALL)
_OUT_OF_RANGE = re.compile(r"(\S+) is not in the range .+\.")
_NO_CHOICE = re.compile(r"'(.*)' is not (?:one of )?'.+\.", re.DOTALL)


def describe(error: click.UsageError) -> str:
    """`Invalid --port "x": use a whole number from 0 to 65535. See `resumes up --help``."""
    message = " ".join(_message(error).split())  # choices come on lines of their own
    if error.ctx is None:
        return message
    stop = "" if message.endswith((".", "?")) else "."
    return f"{message}{stop} See `{error.ctx.command_path} --help`"


def _message(error: click.UsageError) -> str:
    match error:
        case NoSuchOption():
            return f"{error.message} {_way_on(error)}".rstrip()
        case NoSuchCommand():
            return f"{error.message} {_did_you_mean(_near_commands(error))}".rstrip()
        case click.BadParameter() if not isinstance(error, click.MissingParameter):
            return _explain(error)
    return error.format_message()


def _way_on(error: NoSuchOption) -> str:
    """What to do instead: an option that is no flag here may be a setting."""
    from resumes.settings import ENV_PREFIX, Settings

    name = error.option_name.lstrip("-").replace("-", "_")
    if name in Settings.model_fields:
        variable = f"{ENV_PREFIX}{name.upper()}"
        return f"It is a setting: {variable} in the environment, or `{name}` in config.toml."
    return _did_you_mean(error.possibilities or ())


def _near_commands(error: NoSuchCommand) -> Sequence[str]:
    # Groups that import late tell click of no command.
    if error.ctx is None or not isinstance(error.ctx.command, click.Group):
        return ()
    return get_close_matches(error.command_name, error.ctx.command.list_commands(error.ctx))


def _did_you_mean(nearest_first: Sequence[str]) -> str:
    return f"Did you mean '{nearest_first[0]}'?" if nearest_first else ""


def _explain(error: click.BadParameter) -> str:
    name = _name(error)
    kind = error.param.type if error.param is not None else None
    for pattern in (_NO_NUMBER, _OUT_OF_RANGE, _NO_CHOICE):
        found = pattern.fullmatch(error.message)
        usable = _usable(kind)
        if found is not None and usable is not None:
            return f'Invalid {name} "{found[1][:80]}": use {usable}'
    return f"Invalid {name}: {error.message[:1].lower()}{error.message[1:]}"


def _name(error: click.BadParameter) -> str:
    """`--port`, or `PATH` for the argument that help shows as `PATH...`."""
    if error.param is None:
        return "value"
    if isinstance(error.param, click.Argument):
        return error.param.human_readable_name.strip("[].")
    return max(error.param.opts, key=len)


def _usable(kind: object) -> str | None:
    """What can be used where a value of this kind is wanted; None for kinds that say it themselves."""
    if isinstance(kind, click.Choice):
        *others, last = map(str, kind.choices)
        return f"{', '.join(others)} or {last}" if others else last
    if isinstance(kind, click.IntRange | click.FloatRange):
        from resumes.text import number_words

        is_whole = isinstance(kind, click.IntRange)
        return number_words(is_whole=is_whole, minimum=kind.min, maximum=kind.max)
    if kind is click.INT:
        return "a whole number"
    return None
