"""How a command fails: every error becomes one line on standard error and an exit code."""

import contextlib
import errno
import logging
import os
import re
import secrets
import sys
import traceback
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

import click
from click.exceptions import NoSuchCommand, NoSuchOption

from cli.exits import EXIT_CODES, ExitCode
from cli.output import safe_text, say
from resumes.errors import ResumesError

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
            return _explain_usage(error)
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


def _explain_usage(error: click.BadParameter) -> str:
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


class Failed(click.ClickException):
    """The command did not do what was asked; the message says why. Exit code 1."""

    exit_code = ExitCode.FAILED


class ReaderGone(Exception):
    """Nobody reads standard output any more, `head` for instance, which has what it wanted.

    In place of BrokenPipeError, which click would end the process for in its own way.
    """


def run(call: Callable[[], object], *, log_folder: Callable[[], Path | None]) -> int:
    """The exit code of the call, after its failure, if any, was told.

    `log_folder` is asked for a place for the traceback of an unexpected failure; None has none.
    """
    try:
        result = call()
        sys.stdout.flush()
    except (ReaderGone, BrokenPipeError):
        code: int = ExitCode.READER_GONE
    except click.Abort as error:
        code = _interrupted(error)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = ExitCode.USAGE
    except click.UsageError as error:
        code = _tell(describe(error), error.exit_code)
    except click.ClickException as error:
        code = _tell(error.format_message(), error.exit_code)
    except ResumesError as error:
        code = _tell(error.message, EXIT_CODES[error.code])
    except OSError as error:
        code = _tell(_explain(error), ExitCode.FAILED)
    except Exception:  # noqa: BLE001 - the edge: whatever nobody foresaw must not reach the user as a traceback
        code = _tell_internal(log_folder)
    else:
        code = result if isinstance(result, int) else ExitCode.DONE
    _drop_unwritten_output()
    return code


def _interrupted(error: click.Abort) -> int:
    # click wraps Ctrl-C, and the end of input at a question, in the same exception.
    if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    return _tell("Nobody answered; nothing was done", ExitCode.FAILED)


def _explain(error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.filename is None:
        return f"Cannot write the output: {reason}"
    return f"Cannot use {os.fsdecode(error.filename)}: {reason}"


def _tell(message: str, code: int) -> int:
    # Where standard error is gone too, the exit code has to do.
    with contextlib.suppress(OSError):
        say(f"Error: {safe_text(message)}", level=logging.ERROR)
    return int(code)


def _tell_internal(log_folder: Callable[[], Path | None]) -> int:
    failure_id = secrets.token_hex(4)
    report = traceback.format_exc()
    if os.environ.get("RESUMES_DEBUG") == "1":
        say(report)
        return _tell(f"Internal error {failure_id}", ExitCode.FAILED)
    written = _write_report(log_folder(), failure_id, report)
    place = f"the details are in {written}" if written else "RESUMES_DEBUG=1 shows the details"
    return _tell(f"Internal error {failure_id}: {place}. Please report it", ExitCode.FAILED)


def _write_report(folder: Path | None, failure_id: str, report: str) -> Path | None:
    if folder is None:
        return None
    path = folder / f"error-{failure_id}.txt"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        # Values can stand in a traceback's last line: for the owner's eyes only.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report)
    except OSError:
        return None
    return path


def _drop_unwritten_output() -> None:
    """What standard output still holds and cannot be written is let go, or Python, ending, would
    complain and change the exit code."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
