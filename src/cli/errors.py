"""Report each error of a command as one line on standard error, and return an exit code."""

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
    """The result of a command, for scripts."""

    DONE = 0
    """Everything was done; held and duplicate files count as done."""

    FAILED = 1
    """Something failed: a file, an item, or the command itself."""

    USAGE = 2
    """The command line or a setting is invalid, such as a path that does not exist."""

    UNAVAILABLE = 3
    """The store or the network is unavailable."""

    INTERRUPTED = 130
    """The command was interrupted with Ctrl-C. Shells use the same code: 128 + SIGINT."""

    READER_GONE = 141
    """The reader of standard output has exited. Shells use the same code: 128 + SIGPIPE."""


EXIT_CODES: Mapping[ErrorCode, ExitCode] = {
    ErrorCode.INVALID_JSON: ExitCode.FAILED,
    ErrorCode.INVALID_RESUME: ExitCode.FAILED,
    ErrorCode.COVER_LETTER: ExitCode.FAILED,
    ErrorCode.TOO_LARGE: ExitCode.FAILED,
    ErrorCode.INVALID_ARGUMENT: ExitCode.USAGE,
    ErrorCode.INVALID_KEY: ExitCode.FAILED,
    ErrorCode.QUOTA_REACHED: ExitCode.FAILED,
    ErrorCode.FORGOTTEN: ExitCode.FAILED,
    ErrorCode.BUSINESS_PLAN_REQUIRED: ExitCode.FAILED,
    ErrorCode.NOT_FOUND: ExitCode.FAILED,
    ErrorCode.CONFLICT: ExitCode.FAILED,
    ErrorCode.IDEMPOTENCY_MISMATCH: ExitCode.FAILED,
    ErrorCode.RESUME_CHANGED: ExitCode.FAILED,
    ErrorCode.STORE_UNAVAILABLE: ExitCode.UNAVAILABLE,
    ErrorCode.OUTCOME_UNKNOWN: ExitCode.UNAVAILABLE,
    ErrorCode.STATEMENT_REFUSED: ExitCode.FAILED,
    ErrorCode.STORE_INCOMPATIBLE: ExitCode.UNAVAILABLE,
}
"""The exit code for every error code; a test checks that none is missing."""


REMOVED: Mapping[str, str] = {
    "resumes keys import": "create a key with `resumes keys create`, and give the new key to the client.",
    "resumes plans set --per-minute": "use the setting rate_per_minute.",
    "resumes plans set --per-hour": "use the setting rate_per_hour.",
    "resumes plans set --per-day": "use the setting rate_per_day.",
    "resumes tui --web": "use ssh, or a web terminal of your own (docs/terminal.md).",
}
"""Removed options and commands, and their replacements."""


LONG_WORD = re.compile(r"(\S{160})\S+")
"""A word to cut in usage errors, because click repeats input of any length."""


def describe(error: click.UsageError) -> str:
    """Return click's message on one line, followed by `See `resumes up --help``, for example."""
    # click puts choices on separate lines.
    message = LONG_WORD.sub(r"\1…", " ".join(error.format_message().split()))
    if error.ctx is None:
        return message
    if isinstance(error, NoSuchOption) and (instead := _find_instead(error.ctx, error.option_name)):
        message = f"{error.message} {instead}"
    if isinstance(error, NoSuchOption | NoSuchCommand):
        name = error.option_name if isinstance(error, NoSuchOption) else error.command_name
        called = f"{error.ctx.command_path} {name}"
        if instead := REMOVED.get(called):
            # Repeat the full command: `import` alone could mean `resumes import`.
            words = called.partition(" ")[2] if isinstance(error, NoSuchCommand) else name
            message = f"`{words}` was removed: {instead}"
    stop = "" if message.endswith((".", "?", ")")) else "."
    return f"{message}{stop} See `{error.ctx.command_path} --help`"


def _find_instead(context: click.Context, option: str) -> str | None:
    """Return how to set the value if it is an argument or a setting, not an option of this command."""
    from resumes.settings import ENV_PREFIX, Settings

    name = option.lstrip("-").replace("-", "_")
    if name == "account":  # Commands without this option do not use the setting either.
        names = [parameter.name for parameter in context.command.params]
        is_argument = "account" in names or ("name" in names and "accounts" in context.command_path)
        return "Pass the account's name without an option." if is_argument else None
    if name not in Settings.model_fields:
        return None
    variable = f"{ENV_PREFIX}{name.upper()}"
    return f"This is a setting: use {variable} in the environment, or `{name}` in config.toml."


class Failed(click.ClickException):
    """The command failed for the reason in the message. Exit code 1."""

    exit_code = ExitCode.FAILED


def run(call: Callable[[], object], session: Session) -> int:
    """Run the call, report a failure, and return the exit code.

    Commands in messages get the flags of the session's home and store. The traceback of an
    unexpected failure goes to a file in that home, if it exists.
    """
    try:
        result = call()
        sys.stdout.flush()
    except BrokenPipeError:
        code: int = ExitCode.READER_GONE
    except click.Abort as error:
        # click raises the same exception for Ctrl-C and for the end of input during a question.
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            code = ExitCode.INTERRUPTED
        else:
            code = _report("No answer; nothing was done", ExitCode.FAILED)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = ExitCode.USAGE
    except click.exceptions.Exit as error:
        # This comes from a command that the terminal UI invokes; click handles the others.
        code = error.exit_code
    except click.UsageError as error:
        code = _report(describe(error), error.exit_code)
    except click.ClickException as error:
        code = _report(error.format_message(), error.exit_code)
    except ResumesError as error:
        code = _report(session.installation().typeable(error.message), EXIT_CODES[error.code])
    except OSError as error:
        code = _report_refusal(error)
    except MemoryError:
        code = _report_refusal(OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)))
    except RuntimeError as error:
        # Python raises this error if the system cannot start a thread.
        is_of_thread = str(error) == "can't start new thread"
        refusal = OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        code = _report_refusal(refusal) if is_of_thread else _report_internal(session)
    except Exception:  # noqa: BLE001 - users must never see a traceback
        code = _report_internal(session)
    else:
        code = result if isinstance(result, int) else ExitCode.DONE
    _drop_unwritten_output()
    return code


OUTPUT_ERRNOS = frozenset(
    {errno.EBADF, errno.ECONNRESET, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.ENXIO}
)
"""Errors without a path that come from writing to standard output or standard error."""

REMEDIES = {
    errno.EAGAIN: "Cannot start another process or thread ({}). Stop other processes, or raise the limit: `ulimit -u`, "
    "TasksMax of systemd, or the container's limit on processes",
    errno.ENOMEM: "Out of memory ({}). Stop other programs, or raise the memory limit",
    errno.EMFILE: "Too many open files ({}). Raise the limit: `ulimit -n`, or LimitNOFILE of systemd",
    errno.ENFILE: "Too many open files on this machine ({}). Raise the limit: `sysctl fs.file-max`",
}
"""Messages for exhausted resources, by errno."""


def _report_refusal(error: OSError) -> int:
    if os.environ.get("RESUMES_DEBUG") == "1":
        import traceback

        say(traceback.format_exc())
    return _report(describe_refusal(error), ExitCode.FAILED)


def describe_refusal(error: OSError) -> str:
    """Return a message about the system's error, with a remedy if one is known."""
    reason = error.strerror or str(error)
    name = error.filename
    if reason.startswith("No usable temporary directory"):
        return "No temporary folder: this needs a writable /tmp or TMPDIR"
    if name is not None:
        return f"Cannot use {os.fsdecode(name)}: {reason}"
    # Only a BlockingIOError from a stream has characters_written.
    if error.errno in OUTPUT_ERRNOS or hasattr(error, "characters_written"):
        return f"Cannot write the output: {reason}"
    if error.errno in REMEDIES:
        return REMEDIES[error.errno].format(reason)
    return f"The system refused a request: {reason}. Set RESUMES_DEBUG=1 to see which one"


def _report(message: str, code: int) -> int:
    # If standard error is closed too, only the exit code reports the error.
    with contextlib.suppress(OSError):
        say(f"Error: {safe_text(message)}", level="error")
    return int(code)


def _report_internal(session: Session) -> int:
    import traceback

    failure_id = os.urandom(4).hex()
    report = traceback.format_exc()
    if os.environ.get("RESUMES_DEBUG") == "1":
        say(report)
        return _report(f"Internal error {failure_id}", ExitCode.FAILED)
    place = "set RESUMES_DEBUG=1 to see details"
    with contextlib.suppress(OSError, ResumesError):
        folder = session.settings().home / "logs"
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"error-{failure_id}.txt"
        # A traceback's last line may contain data, so only the owner may read the file.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report)
        place = f"details are in {path}"
    return _report(f"Internal error {failure_id}: {place}. Please report it", ExitCode.FAILED)


def _drop_unwritten_output() -> None:
    """Drop buffered output that cannot be written: at exit Python would report it and change the
    exit code."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
