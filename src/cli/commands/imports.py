"""`resumes imports`: list and show imported files; retry, dismiss or release them."""

import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import click
from click.decorators import FC

from cli.errors import ExitCode
from cli.groups import Seconds, account_option, group
from cli.output import Column, instant, put, put_fields, put_json, put_table, safe_text, say
from cli.session import Session, pass_session
from importer.filing import load_report, report_path
from resumes.clock import timestamp
from resumes.errors import InvalidArgument, NotFound
from resumes.import_reasons import Reason, find_hint
from resumes.store import (
    Store,
    accounts,
    import_history,
    import_ledger,
    import_requests,
    stored_resumes,
)
from resumes.store.identifiers import RESUME_ID
from resumes.store.import_history import FileRow
from resumes.store.import_ledger import MAX_PROBLEMS, SOURCE_BYTES, FileOutcome
from resumes.store.import_requests import RequestKind
from resumes.text import counted
from resumes.watched_folder import describe_root, find_dismissed, find_filed, find_roots, list_roots


def _issues(found: Any) -> list[dict[str, str]]:
    return [{name: str(issue.get(name)) for name in ("path", "message")} for issue in _dicts(found)]


def _warnings(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the report's warnings. In a bundle, their paths begin with the resume's position."""
    of_items = (
        {**issue, "path": f"{item.get('place')}: {issue['path']}"}
        for item in _dicts(report.get("items"))
        for issue in _issues(item.get("warnings"))
    )
    return [*_issues(report.get("warnings")), *itertools.islice(of_items, MAX_PROBLEMS)]


def _skipped(report: Mapping[str, Any]) -> list[dict[str, str]]:
    names = ("member", "reason", "message")
    members = _dicts(report.get("skipped"))
    return [{name: str(member.get(name)) for name in names} for member in members]


def _dicts(found: Any) -> list[dict[str, Any]]:
    # A user may have edited the report.
    return [item for item in (found if isinstance(found, list) else ()) if isinstance(item, dict)]


def _reason(row: FileRow) -> str:
    """Return the reason, or no text if it only repeats the outcome."""
    return "" if row.reason in (None, row.outcome) else row.reason


def _why(row: FileRow) -> str:
    """Return the reason or, for a file that is done, the number of warnings."""
    warnings = counted(row.warnings, "warning") if row.warnings else ""
    return _reason(row) or warnings or "-"


COLUMNS = (
    Column("id", lambda row: row.claim_id),
    Column("outcome", lambda row: row.outcome),
    Column("reason", _why),
    Column("file", lambda row: row.name, is_flexible=True),
)
NOT_FOUND = "file is missing"

ISSUE_COLUMNS = (
    Column("kind", itemgetter("kind")),
    Column("field", itemgetter("path")),
    Column("message", itemgetter("message"), is_flexible=True),
)

PROBLEM_COLUMNS = (
    Column("item", lambda problem: str(problem.item), is_number=True),
    Column("place", lambda problem: problem.place),
    Column("reason", lambda problem: problem.reason or "-"),
    Column("message", lambda problem: problem.message or "-", is_flexible=True),
)


def put_file(
    row: FileRow,
    details: Mapping[str, Any],
    location: Path | None,
    report: Path | None,
    roots: Sequence[Path],
) -> None:
    """Print all details of the file, including the problems in it.

    `details` is what `--json` prints. `location` is the file's current path, or None if the file is
    missing. `roots` are the watched folders on this machine that may contain it.
    """
    folder, path = describe_root(row) or "", NOT_FOUND if roots else ""
    if location is not None:
        root = next(root for root in roots if location.is_relative_to(root))
        folder, path = str(root), str(location.relative_to(root))
    skipped = row.items.skipped if row.items else 0
    pending = (request := details["request"]) and (
        f"{request['action']}, since {instant(request['requestedAt'])} UTC"
    )
    fields = [
        ("file", row.name),
        ("folder", folder),
        ("path", path),
        ("account", row.account),
        ("outcome", row.outcome),
        ("reason", _reason(row)),
        ("message", row.message or ""),
        ("to do", details["hint"] or ""),
        ("report", "" if report is None else str(report)),
        ("resume", details["resumeId"] or ""),
        ("replaced", ", ".join(details["replaced"])),
        ("field", row.path or ""),
        ("byte offset", "" if row.byte_offset is None else str(row.byte_offset)),
        ("resumes", row.items.counts if row.items else ""),
        ("warnings", f"{row.warnings:,}" if row.warnings else ""),
        ("skipped", counted(skipped, "member") if skipped else ""),
        ("analyzed", f"in {row.analysis.took_s:g} s" if row.analysis else ""),
        ("analyzer said", row.analysis.said if row.analysis else ""),
        ("pending", pending or ""),
        ("size", counted(row.size_bytes, "byte")),
        ("picked up", f"{instant(row.claimed_at)} UTC"),
        ("finished", f"{instant(row.finished_at)} UTC"),
        ("id", row.claim_id),
    ]
    put_fields([(name, value) for name, value in fields if value])
    issues = [
        {"kind": kind, **issue}
        for kind, found in (("error", "issues"), ("warning", "warnings"))
        for issue in details[found]
    ]
    issues += [{"kind": "skipped", "path": file["member"], **file} for file in details["skipped"]]
    if issues:
        put()
        put_table(ISSUE_COLUMNS, issues)
    if problems := row.items and row.items.problems:
        put()
        put_table(PROBLEM_COLUMNS, problems)
        if len(problems) == MAX_PROBLEMS:
            say(
                f"Only the first {MAX_PROBLEMS} are kept; the report next to the file may list more."
            )


def readable(source: bytes) -> str:
    """Return the bytes as text, with bytes that are not UTF-8 as `\\xff`."""
    return source.decode("utf-8", "backslashreplace")


def as_json(row: FileRow) -> dict[str, Any]:
    """Return the file's row as `--json` prints it, with null for missing values."""
    return {
        "id": row.claim_id,
        "account": row.account,
        "root": row.root,
        "name": row.name,
        "outcome": row.outcome,
        "reason": row.reason,
        "message": row.message,
        "path": row.path,
        "byteOffset": row.byte_offset,
        "items": None if row.items is None else row.items.as_json(),
        "warnings": row.warnings,
        "analysis": None if row.analysis is None else row.analysis.as_json(),
        "sizeBytes": row.size_bytes,
        "claimedAt": row.claimed_at,
        "finishedAt": row.finished_at,
    }


def reason_option(sentence: str) -> Callable[[FC], FC]:
    """Return the option `--reason REASON` with this help text."""
    return click.option(
        "--reason",
        metavar="REASON",
        type=click.Choice([reason.value for reason in Reason]),
        help=sentence,
    )


OUTCOMES = ("held", "failed", "duplicate", "done")
MAX_LISTED = 1_000
"""The maximum number of files to read from the ledger at a time."""


@group()
def imports() -> None:
    """List, retry, release and dismiss files from watched folders."""


@imports.command("list")
@account_option("List only files that belong to this account.")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="List only files with this outcome.")
@reason_option("List only files that have this reason code.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, MAX_LISTED),
    default=20,
    show_default=True,
    help="Maximum number of files.",
)
@click.option("--before", metavar="ID", help="List only files older than the file with this ID.")
@click.option(
    "--failed-first",
    is_flag=True,
    help="Sort the list by outcome, in the order failed, held, duplicate, done.",
)
@pass_session
def list_(
    session: Session,
    account: str | None,
    outcome: str | None,
    reason: str | None,
    limit: int,
    before: str | None,
    failed_first: bool,
) -> None:
    """List files from watched folders, newest first.

    With --failed-first, files that need attention come first. The terminal UI also uses this order by
    default. With --failed-first, the value of --before has the form OUTCOME:ID. The command prints the
    value for the next page at the end of the list.
    """
    with session.store() as store:
        filters: dict[str, Any] = {
            "account_id": None if account is None else accounts.get_account(store, account).id,
            "outcome": None if outcome is None else FileOutcome(outcome),
            "reason": reason,
            "limit": limit,
        }
        if failed_first:
            files, last = import_history.list_by_outcome(store, after=before, **filters)
        else:
            if before is not None and not RESUME_ID.fullmatch(before):
                problem = f'Invalid ID "{before[:80]}"'
                raise InvalidArgument(f"{problem}: use the ID of a file, 24 hexadecimal digits")
            files = import_history.list_files(store, before=before, **filters)
            last = files[-1].claim_id if len(files) >= limit else None
    if session.as_json:
        put_json({"files": [as_json(row) for row in files], "before": last})
        return
    if files:
        put_table(COLUMNS, files)
    else:
        is_part = account or outcome or reason or before
        say(
            "No matching files."
            if is_part
            else "No files have been imported from a watched folder yet."
        )
    if last is not None:
        say(f"More: add --before {last}")


def find_file(session: Session, store: Store, claim_id: str, account_id: str | None) -> FileRow:
    """Return the file with this ID, or the file that the resume with this ID was imported from.

    Raises NotFound, whose message contains the path of a dismissed file.
    """
    try:
        return import_history.get_file(store, claim_id, account_id=account_id)
    except NotFound as error:
        not_found = error
    if not RESUME_ID.fullmatch(claim_id):
        raise not_found
    owners = [account_id] if account_id else [info.id for info in accounts.list_accounts(store)]
    sources = ((owner, import_ledger.find_claim(store, owner, claim_id)) for owner in owners)
    owner, source = next(((owner, found) for owner, found in sources if found), (None, claim_id))
    try:
        file = import_history.get_file(store, source, account_id=owner)
    except NotFound:
        path = find_dismissed(source, list_roots(session.settings().inbox))
        if path is not None or owner is not None:
            where = "no longer where it was put" if path is None else f"still at {path}"
            raise NotFound(f"The file was dismissed. It is {where}") from None
        for candidate in owners:
            with suppress(NotFound):
                stored_resumes.get_entry(store, candidate, claim_id)
                not_found = NotFound(f"Resume {claim_id} did not come from a file that is listed")
        raise not_found from None
    if owner is None:  # the file does not belong to the requested account
        raise not_found
    return file


@imports.command()
@click.argument("claim_id", metavar="ID")
@account_option(
    "Account that owns the file; required if several accounts have a file with this ID."
)
@click.option(
    "--source",
    "is_source",
    is_flag=True,
    help="Print only the beginning of the file, or what the analyzer wrote.",
)
@pass_session
def show(session: Session, claim_id: str, account: str | None, is_source: bool) -> None:
    """Show a file's outcome, the reason for it, and the file's current folder.

    ID is the ID of the file, or the ID of a resume that was imported from the file.
    """
    with session.store() as store:
        account_id = None if account is None else accounts.get_account(store, account).id
        row = find_file(session, store, claim_id, account_id)
        request = import_requests.find_request(store, row.account_id, row.claim_id)
        source = import_history.find_source(store, row) if is_source else None
        if is_source and source is None:
            raise NotFound(f"No source is kept for {row.claim_id} (outcome: {row.outcome})")
        items = import_ledger.find_items(store, row.account_id, row.claim_id, limit=2)
        replaced = import_ledger.list_replaced(store, row.account_id, row.claim_id)
    inbox = session.settings().inbox
    roots = find_roots(row, inbox)
    location = find_filed(row, inbox)
    path = None if location is None else report_path(location)
    report = {} if path is None else load_report(path)
    hint = row.reason and find_hint(row.reason, row.claim_id)
    details = as_json(row) | {
        # The ID is only shown for a file with one resume, whether it is stored or a duplicate.
        "resumeId": items[0].resume_id if len(items) == 1 and row.items is None else None,
        "replaced": replaced,
        "hint": hint and session.installation().typeable(hint),
        "issues": _issues(report.get("issues")),
        "warnings": _warnings(report),
        "skipped": _skipped(report),
        "filedAs": None if location is None else str(location),
        "request": request and {"action": request.action, "requestedAt": request.requested_at},
    }
    if session.as_json:
        put_json(details if source is None else details | {"source": readable(source)})
    elif source is not None:
        for line in readable(source).removesuffix("\n").split("\n"):
            put(safe_text(line))
        if len(source) == SOURCE_BYTES:
            say("Only the first 64 KiB is kept.")
    else:
        put_file(row, details, location, path if report else None, roots)


POLL_INTERVAL_S = 0.1


def wait_for_outcomes(
    session: Session, store: Store, action: RequestKind, files: Sequence[FileRow], wait_s: float
) -> ExitCode:
    """Wait up to `wait_s` seconds until each file has a new outcome, then print the outcomes.

    Return FAILED unless all files were processed and none failed.
    """
    until = time.monotonic() + wait_s
    while True:
        now = [
            import_history.get_file(store, old.claim_id, account_id=old.account_id) for old in files
        ]
        # The ledger's row of a bundle changes after each part. While the request is pending, the
        # outcome may be the result of an earlier request.
        ended = [
            new
            for old, new in zip(files, now, strict=True)
            if old.finished_at != new.finished_at
            and not new.is_under_way
            and import_requests.find_request(store, new.account_id, new.claim_id) is None
        ]
        late = len(files) - len(ended)
        if not late or time.monotonic() >= until:
            break
        time.sleep(POLL_INTERVAL_S)
    if session.as_json:
        put_json({"action": action, "asked": len(files), "files": list(map(as_json, ended))})
    elif ended:
        put_table(COLUMNS, ended)
    if late:
        say(f"{counted(late, 'file')} not processed yet; still queued.")
    has_failed = any(file.outcome is FileOutcome.FAILED for file in ended)
    return ExitCode.FAILED if late or has_failed else ExitCode.DONE


@dataclass(frozen=True, slots=True)
class FileSelection:
    """A selection of files by ID, or of all files, optionally with a reason and of one account."""

    claim_ids: tuple[str, ...]
    account: str | None
    is_all: bool
    reason: str | None = None

    def __post_init__(self) -> None:
        """Raise UsageError unless the files are selected in exactly one way."""
        chooses_many = self.is_all or self.reason is not None
        if self.claim_ids and chooses_many:
            raise click.UsageError("File IDs cannot be combined with --all or --reason")
        if not self.claim_ids and not chooses_many and self.account is None:
            raise click.UsageError("Give one or more file IDs, or use --account or --all")

    def apply(
        self,
        session: Session,
        store: Store,
        to_files: Callable[[Store, Sequence[FileRow]], object],
        to_all: Callable[..., int],
    ) -> tuple[list[FileRow], int]:
        """Call `to_files` with the files that have the IDs or, without IDs, `to_all`.

        Return the files that have the IDs, and the number of files affected. Raises NotFound.
        """
        account_id = None if self.account is None else accounts.get_account(store, self.account).id
        if not self.claim_ids:
            return [], to_all(store, account_id=account_id, reason=self.reason)
        files = [
            find_file(session, store, claim_id, account_id)
            for claim_id in dict.fromkeys(self.claim_ids)
        ]
        to_files(store, files)
        return files, len(files)


ACCOUNT = account_option(
    "Account that owns the files. If you give no IDs, the command selects all eligible files "
    "of this account."
)
WAIT = click.option(
    "--wait",
    "wait_s",
    metavar="S",
    type=Seconds(),
    help="Wait up to this many seconds for the result. Requires IDs.",
)


@imports.command()
@click.argument("claim_ids", metavar="[ID]...", nargs=-1)
@ACCOUNT
@reason_option("Select all files that failed for this reason.")
@click.option("--all", "is_all", is_flag=True, help="Select all failed files.")
@WAIT
@pass_session
def retry(session: Session, /, wait_s: float | None, **chosen: Any) -> ExitCode:
    """Retry failed files.

    Before you retry a file, correct the file without moving it. The importer imports the file from its
    current folder, and the file keeps its ID. If an ID belongs to a held file, the command releases that
    file.
    """
    return _run(session, FileSelection(**chosen), RequestKind.RETRY, wait_s)


@imports.command()
@click.argument("claim_ids", metavar="[ID]...", nargs=-1)
@ACCOUNT
@reason_option("Select all files that failed for this reason.")
@click.option("--all", "is_all", is_flag=True, help="Select all failed files.")
@pass_session
def dismiss(session: Session, /, **chosen: Any) -> None:
    """Remove failed files from the list.

    If a file was rejected correctly, dismiss the file so that it is no longer listed as failed. The
    command does not move or delete any files. You can also dismiss a held file that no longer exists in
    its folder.
    """
    choice = FileSelection(**chosen)
    with session.store() as store:
        _, count = choice.apply(
            session, store, import_requests.dismiss_files, import_requests.dismiss_all_files
        )
    sentence = (
        f"Dismissed {counted(count, 'file')}: off the list, not deleted."
        if count
        else "Nothing to dismiss."
    )
    session.answer({"dismissed": count}, sentence)


@imports.command()
@click.argument("claim_ids", metavar="[ID]...", nargs=-1)
@ACCOUNT
@click.option("--all", "is_all", is_flag=True, help="Select all held files.")
@WAIT
@pass_session
def release(session: Session, /, wait_s: float | None, **chosen: Any) -> ExitCode:
    """Try to import held files immediately.

    The importer automatically imports held files in order of arrival as soon as the account is no longer
    full. If a file would still exceed the plan's limit, this file and all later files stay held.
    """
    return _run(session, FileSelection(**chosen), RequestKind.RELEASE, wait_s)


def _run(
    session: Session, choice: FileSelection, action: RequestKind, wait_s: float | None
) -> ExitCode:
    if wait_s is not None and not choice.claim_ids:
        raise click.UsageError("--wait requires file IDs")
    with session.store() as store:
        now = timestamp(store.clock())
        files, count = choice.apply(
            session,
            store,
            functools.partial(import_requests.request_files, action=action),
            functools.partial(import_requests.request_all_files, action=action),
        )
        if wait_s is not None:
            return wait_for_outcomes(session, store, action, files, wait_s)
        sentence, is_watched = import_requests.describe_queued(
            store,
            count,
            action,
            since=now,
            how_to_watch=lambda root: session.installation().how_to_watch(root),
        )
    answer = {"action": action, "asked": count, "isWatched": is_watched}
    session.answer(answer, safe_text(sentence))
    return ExitCode.DONE
