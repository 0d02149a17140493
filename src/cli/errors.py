"""How a command fails: every error becomes one line on standard error and an exit code."""

import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Mapping
from enum import IntEnum

import click
from click.exceptions import NoSuchCommand, NoSuchOption

from cli.output import safe_text, say
from cli.session import Session
from resumes.errors import ErrorCode, ResumesError


class ExitCode(IntEnum):
    """How a command ended, for scripts."""

    DONE = 0
    """Everything was done; files that were held or are duplicates count as done."""

    FAILED = 1
    """Something failed: a file, an item, the one thing that was asked for."""

    USAGE = 2
    """The command line or a setting cannot be used, such as a path that does not exist."""

    UNAVAILABLE = 3
    """The store or the network is unavailable."""

    INTERRUPTED = 130
    """Ctrl-C, as a shell reports it: 128 + SIGINT."""

    READER_GONE = 141
    """Nobody reads standard output any more, as a shell reports it: 128 + SIGPIPE."""


EXIT_CODES: Mapping[ErrorCode, ExitCode] = {
    ErrorCode.INVALID_JSON: ExitCode.FAILED,
    ErrorCode.INVALID_RESUME: ExitCode.FAILED,
    ErrorCode.COVER_LETTER: ExitCode.FAILED,
    ErrorCode.TOO_LARGE: ExitCode.FAILED,
    ErrorCode.INVALID_ARGUMENT: ExitCode.USAGE,
    ErrorCode.INVALID_KEY: ExitCode.FAILED,
    ErrorCode.QUOTA_REACHED: ExitCode.FAILED,
    ErrorCode.BUSINESS_PLAN_REQUIRED: ExitCode.FAILED,
    ErrorCode.NOT_FOUND: ExitCode.FAILED,
    ErrorCode.CONFLICT: ExitCode.FAILED,
    ErrorCode.IDEMPOTENCY_MISMATCH: ExitCode.FAILED,
    ErrorCode.STORE_UNAVAILABLE: ExitCode.UNAVAILABLE,
    ErrorCode.OUTCOME_UNKNOWN: ExitCode.UNAVAILABLE,
    ErrorCode.STATEMENT_REFUSED: ExitCode.FAILED,
    ErrorCode.STORE_INCOMPATIBLE: ExitCode.UNAVAILABLE,
}
"""One for every code; a test walks them all."""


GONE: Mapping[str, str] = {
    "resumes keys import": "create a key with `resumes keys create`, and give the new key to the client.",
    "resumes plans set --per-minute": "use the setting rate_per_minute.",
    "resumes plans set --per-hour": "use the setting rate_per_hour.",
    "resumes plans set --per-day": "use the setting rate_per_day.",
    "resumes tui --web": "use ssh, or a web terminal of your own (docs/terminal.md).",
}
"""Options and commands of earlier releases, and what to use instead."""


LONG_WORD = re.compile(r"(\S{160})\S+")
"""A word of a usage error that is cut: click repeats what was typed, whatever its length."""


def describe(error: click.UsageError) -> str:
    """Return what click says on one line, and where to read more: `… See `resumes up --help``."""
    # Choices come on lines of their own.
    message = LONG_WORD.sub(r"\1…", " ".join(error.format_message().split()))
    if error.ctx is None:
        return message
    if isinstance(error, NoSuchOption) and (setting := _find_setting(error.option_name)):
        message = f"{error.message} {setting}"
    if isinstance(error, NoSuchOption | NoSuchCommand):
        name = error.option_name if isinstance(error, NoSuchOption) else error.command_name
        called = f"{error.ctx.command_path} {name}"
        if instead := GONE.get(called):
            # `import` alone could be `resumes import`.
            words = called.partition(" ")[2] if isinstance(error, NoSuchCommand) else name
            message = f"`{words}` was removed: {instead}"
    stop = "" if message.endswith((".", "?", ")")) else "."
    return f"{message}{stop} See `{error.ctx.command_path} --help`"


def _find_setting(option: str) -> str | None:
    """Return where to set what is not an option here, but a setting."""
    from resumes.settings import ENV_PREFIX, Settings

    name = option.lstrip("-").replace("-", "_")
    if name not in Settings.model_fields:
        return None
    variable = f"{ENV_PREFIX}{name.upper()}"
    return f"This is a setting: use {variable} in the environment, or `{name}` in config.toml."


class Failed(click.ClickException):
    """The command did not do what was asked; the message says why. Exit code 1."""

    exit_code = ExitCode.FAILED


def run(call: Callable[[], object], session: Session) -> int:
    """Run the call, say how it failed, if it did, and return the exit code.

    The commands that a message names lead to the session's home and store. The traceback of an
    unexpected failure goes to a file in that home, if there is one.
    """
    try:
        result = call()
        sys.stdout.flush()
    except BrokenPipeError:
        code: int = ExitCode.READER_GONE
    except click.Abort as error:
        # click wraps Ctrl-C, and the end of input at a question, in the same exception.
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            code = ExitCode.INTERRUPTED
        else:
            code = _tell("No answer; nothing was done", ExitCode.FAILED)
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
        code = _tell(session.installation().typeable(error.message), EXIT_CODES[error.code])
    except OSError as error:
        code = _tell_refusal(error)
    except MemoryError:
        code = _tell_refusal(OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)))
    except RuntimeError as error:
        # Python's words where the system refuses a thread.
        is_of_thread = str(error) == "can't start new thread"
        refusal = OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        code = _tell_refusal(refusal) if is_of_thread else _tell_internal(session)
    except Exception:  # noqa: BLE001 - the edge: whatever nobody foresaw must not reach the user as a traceback
        code = _tell_internal(session)
    else:
        code = result if isinstance(result, int) else ExitCode.DONE
    _drop_unwritten_output()
    return code


OUTPUT_ERRNOS = frozenset(
    {errno.EBADF, errno.ECONNRESET, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.ENXIO}
)
"""Of errors without a path: those of writing to standard output or standard error."""

REMEDIES = {
    errno.EAGAIN: "Cannot start another process or thread ({}). Stop other processes, or raise the limit: `ulimit -u`, "
    "TasksMax of systemd, or the container's limit on processes",
    errno.ENOMEM: "Out of memory ({}). Stop other programs, or raise the memory limit",
    errno.EMFILE: "Too many open files ({}). Raise the limit: `ulimit -n`, or LimitNOFILE of systemd",
    errno.ENFILE: "Too many open files on this machine ({}). Raise the limit: `sysctl fs.file-max`",
}
"""Messages for exhausted resources, by errno."""


def _tell_refusal(error: OSError) -> int:
    if os.environ.get("RESUMES_DEBUG") == "1":
        import traceback

        say(traceback.format_exc())
    return _tell(describe_refusal(error), ExitCode.FAILED)


def describe_refusal(error: OSError) -> str:
    """Return what the system refused, and what to do about it."""
    reason = error.strerror or str(error)
    name = error.filename
    if reason.startswith("No usable temporary directory"):
        return "No temporary folder: this needs a writable /tmp or TMPDIR"
    if name is not None:
        return f"Cannot use {os.fsdecode(name)}: {reason}"
    # Of BlockingIOErrors, only those of streams have this.
    if error.errno in OUTPUT_ERRNOS or hasattr(error, "characters_written"):
        return f"Cannot write the output: {reason}"
    if error.errno in REMEDIES:
        return REMEDIES[error.errno].format(reason)
    return f"The system refused a request: {reason}. Set RESUMES_DEBUG=1 to see which one"


def _tell(message: str, code: int) -> int:
    # Where standard error is gone too, the exit code has to do.
    with contextlib.suppress(OSError):
        say(f"Error: {safe_text(message)}", level="error")
    return int(code)


def _tell_internal(session: Session) -> int:
    import traceback

    failure_id = os.urandom(4).hex()
    report = traceback.format_exc()
    if os.environ.get("RESUMES_DEBUG") == "1":
        say(report)
        return _tell(f"Internal error {failure_id}", ExitCode.FAILED)
    place = "set RESUMES_DEBUG=1 to see details"
    with contextlib.suppress(OSError, ResumesError):
        folder = session.settings().home / "logs"
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"error-{failure_id}.txt"
        # Values can stand in a traceback's last line: for the owner's eyes only.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report)
        place = f"details are in {path}"
    return _tell(f"Internal error {failure_id}: {place}. Please report it", ExitCode.FAILED)


def _drop_unwritten_output() -> None:
    """Drop what cannot be written to standard output: at its end Python would complain, and change
    the exit code."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
