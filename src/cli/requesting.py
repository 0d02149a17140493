"""`resumes imports retry` and `release`: asking the importer for files that it put away."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from cli.candidates import account_option, held_ids, retriable_ids
from cli.commands import command
from cli.exits import ExitCode
from cli.output import put_json, say
from cli.reasons import ReasonType
from cli.session import Session, pass_session
from cli.text import safe_text
from cli.waiting import tell_outcomes, wait_for
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.import_ledger import FileRow
    from resumes.store.import_requests import Action


@dataclass(frozen=True, slots=True)
class Choice:
    """Which files are meant: those of these ids, or all of a reason or any; of an account or any."""

    claim_ids: tuple[str, ...]
    account: str | None
    is_all: bool
    reason: str | None = None

    def check(self) -> None:
        """Raises UsageError unless the files were chosen in one way."""
        chooses_many = self.is_all or self.reason is not None
        if self.claim_ids and chooses_many:
            raise click.UsageError("Name files by ID or choose many of them, not both")
        if not self.claim_ids and not chooses_many and self.account is None:
            raise click.UsageError("Name files by ID, or choose them with --account or --all")


ACCOUNT = account_option("All of this account; with IDs, whose they are.")
WAIT = click.option(
    "--wait",
    "wait_s",
    metavar="S",
    type=click.FloatRange(0, 3_600),
    help="With IDs: seconds to wait for what becomes of the files.",
)


@command()
@click.argument("claim_ids", metavar="[ID]...", nargs=-1, shell_complete=retriable_ids)
@ACCOUNT
@click.option("--reason", metavar="REASON", type=ReasonType(), help="All that failed for it.")
@click.option("--all", "is_all", is_flag=True, help="All that failed.")
@WAIT
@click.pass_context
@pass_session
def retry(
    session: Session,
    context: click.Context,
    /,
    claim_ids: tuple[str, ...],
    account: str | None,
    reason: str | None,
    is_all: bool,
    wait_s: float | None,
) -> None:
    """Ask the importer to try failed files again.

    They are taken from where they were put away, under the ids that they have. A held file is
    released.
    """
    from resumes.store.import_requests import Action

    choice = Choice(claim_ids, account, is_all, reason)
    context.exit(_run(session, choice, Action.RETRY, wait_s))


@command()
@click.argument("claim_ids", metavar="[ID]...", nargs=-1, shell_complete=held_ids)
@ACCOUNT
@click.option("--all", "is_all", is_flag=True, help="All that are held.")
@WAIT
@click.pass_context
@pass_session
def release(
    session: Session,
    context: click.Context,
    /,
    claim_ids: tuple[str, ...],
    account: str | None,
    is_all: bool,
    wait_s: float | None,
) -> None:
    """Ask the importer to let held files in.

    As far as the plan has room; what has none is held again.
    """
    from resumes.store.import_requests import Action

    choice = Choice(claim_ids, account, is_all)
    context.exit(_run(session, choice, Action.RELEASE, wait_s))


def _run(session: Session, choice: Choice, action: "Action", wait_s: float | None) -> ExitCode:
    choice.check()
    if wait_s is not None and not choice.claim_ids:
        raise click.UsageError("--wait needs the IDs of the files")
    with session.store() as store:
        if not choice.claim_ids:
            _tell(session, store, action, _ask_many(store, choice, action))
            return ExitCode.DONE
        files = _ask(store, choice, action)
        if wait_s is None:
            _tell(session, store, action, len(files))
            return ExitCode.DONE
        return tell_outcomes(session, action, files, wait_for(store, files, wait_s))


def _ask(store: "Store", choice: Choice, action: "Action") -> "list[FileRow]":
    from resumes.store import import_ledger, import_requests

    account_id = _find_account_id(store, choice)
    claim_ids = dict.fromkeys(choice.claim_ids)
    files = [import_ledger.get_file(store, one, account_id=account_id) for one in claim_ids]
    import_requests.request_files(store, files, action)
    return files


def _ask_many(store: "Store", choice: Choice, action: "Action") -> int:
    from resumes.store import import_requests

    account_id = _find_account_id(store, choice)
    return import_requests.request_all_files(
        store, action, account_id=account_id, reason=choice.reason
    )


def _find_account_id(store: "Store", choice: Choice) -> str | None:
    from resumes.store import accounts

    return None if choice.account is None else accounts.get_account(store, choice.account).id


def _tell(session: Session, store: "Store", action: "Action", count: int) -> None:
    from resumes.store import import_requests

    unwatched = import_requests.list_unwatched_roots(store) if count else []
    if session.as_json:
        put_json({"action": action, "asked": count, "isWatched": not unwatched})
    elif not count:
        say(f"There is nothing to {action}.")
    elif unwatched:
        say(f"Asked for {counted(count, 'file')}. {_missing(session, unwatched)}")
    else:
        them = "it" if count == 1 else "them"
        say(f"Asked for {counted(count, 'file')}; the importer takes {them} up within a second.")


def _missing(session: Session, unwatched: Sequence[str | None]) -> str:
    how_to_watch = session.installation().how_to_watch
    ways = ", ".join(how_to_watch(root) for root in unwatched[:3])
    return safe_text(f"No importer watches their folder: {ways}.")
