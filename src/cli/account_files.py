"""`resumes accounts export` and `import`: an account as a file that can be carried elsewhere."""

import contextlib
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from cli.candidates import account_names, plan_names
from cli.commands import command
from cli.output import put_json, say
from cli.session import Session, pass_session
from cli.signals import sigterm_as_interrupt
from cli.steps import counting
from cli.text import safe_text
from resumes.errors import InvalidArgument
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.store.account_archive.restore import ImportedAccount

FILE = click.Path(dir_okay=False, readable=False, path_type=Path, allow_dash=True)


@command()
@click.argument("name", shell_complete=account_names)
@click.argument("file", type=FILE, default="-")
@click.option("--with-keys", is_flag=True, help="Its keys too, as their SHA-256.")
@click.option("--overwrite", is_flag=True, help="Replace FILE, if it is an account export.")
@pass_session
def export(session: Session, name: str, file: Path, with_keys: bool, overwrite: bool) -> None:
    """Write the account NAME whole, as NDJSON, to FILE or standard output.

    Its resumes as they are stored, its history of imports, and with --with-keys its keys, which
    count then wherever it is imported. What comes in meanwhile is left out.

    FILE is a file that is not there yet, or a pipe or a device, which is written to.
    """
    from resumes.store import accounts
    from resumes.store.account_archive import export

    opened = _output(file, overwrite=overwrite)
    with sigterm_as_interrupt(), session.store() as store:
        account = accounts.get_account(store, name)
        with counting("resumes", account.resume_count) as count, opened() as out:
            out.writelines(
                export.iter_lines(
                    store,
                    account,
                    with_keys=with_keys,
                    on_progress=lambda done: count("wrote", done),
                )
            )
            out.flush()
    where = "" if str(file) == "-" else f" to {safe_text(str(file))}"
    say(f'Exported the account "{account.name}"{where}.')


@command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--name", metavar="NEW", help="What it is called here.")
@click.option("--plan", metavar="PLAN", shell_complete=plan_names, help="The plan it is on here.")
@pass_session
def import_(session: Session, file: Path, name: str | None, plan: str | None) -> None:
    """Make an account of FILE, which `accounts export` wrote.

    It is there whole or not at all: the file is checked first, and the account opened last. What was
    cut off is imported anew by the same command.
    """
    from resumes.store.account_archive.file_format import Kind
    from resumes.store.account_archive.restore import import_account

    with _opened(file) as source, session.store() as store, counting("rows") as count:
        imported = import_account(store, source, name=name, plan=plan, on_progress=count)
    account = imported.account
    if session.as_json:
        put_json(as_json(imported))
        return
    held = counted(account.resume_count, "resume")
    say(f'Account "{account.name}" is there, on the plan {account.plan}, with {held}.')
    if account.is_over:
        say(f"It keeps them all, though its plan allows {account.max_resumes:,}.")
    if not imported.counts[Kind.KEY]:
        say(f"A key for its programs: {session.command_line('keys', 'create', account.name)}")


def as_json(imported: "ImportedAccount") -> dict[str, Any]:
    """What has come in, as `--json` prints it: the account, and its rows by kind."""
    account = imported.account
    return {
        "id": account.id,
        "name": account.name,
        "plan": account.plan,
        "createdAt": account.created_at,
        "resumes": account.resume_count,
        "maxResumes": account.max_resumes,
        "rows": {kind.value: count for kind, count in imported.counts.items()},
    }


def _output(file: Path, *, overwrite: bool) -> Callable[[], AbstractContextManager[BinaryIO]]:
    """Return what opens the output. Raises Conflict for a file that stays as it is."""
    from resumes.output_files import OutputFile
    from resumes.store.account_archive.file_format import is_account_file

    if str(file) == "-" or _is_standard_output(file):
        return lambda: contextlib.nullcontext(sys.stdout.buffer)
    if overwrite:
        remedy = "--overwrite replaces account exports alone. Name another file"
        return OutputFile(file, remedy=remedy, may_replace=is_account_file).open
    remedy = "name another file, or replace an earlier export with --overwrite"
    return OutputFile(file, remedy=remedy).open


def _is_standard_output(file: Path) -> bool:
    """Return whether the file is another name of standard output, such as /dev/stdout."""
    try:
        return os.path.samestat(file.stat(), os.fstat(1))
    except OSError:
        return False


def _opened(file: Path) -> BinaryIO:
    try:
        source = file.open("rb")
    except OSError as error:
        raise InvalidArgument(f"Cannot read {file}: {error.strerror}") from error
    if not source.seekable():
        source.close()
        raise InvalidArgument(f"Cannot read {file}: it is read twice, so it has to be a file")
    return source
