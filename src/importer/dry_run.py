"""A dry run: what would happen to the files in the inbox if they were imported now.

The verdicts come from the functions of the import. No file, folder or row is changed.
"""

import dataclasses
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from importer import files, inbox, outcomes
from importer.analyses import find_fault
from importer.claims import Claim
from importer.files import escaped
from importer.filing import folder_of
from importer.inbox import Seen
from importer.intake import claim_of
from importer.job import Cause, Departure, ReadFile
from importer.notices import FileReport, Remark, Summary, as_report, unowned, untaken
from importer.options import Options
from importer.outcomes import Result
from importer.reader import inspect
from importer.slices import Bundle, open_bundle
from resumes import watched_folder
from resumes.analyzer import Resume, parse
from resumes.errors import QuotaReached
from resumes.import_reasons import Reason
from resumes.store import Store, accounts
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Duplicate, NewResume, Rehearsal
from resumes.store.import_ledger import FileOutcome
from resumes.watched_names import (
    SkipReason,
    find_extension,
    is_document,
    is_hidden_or_temporary,
    is_system_folder,
)

UNKNOWN = b'{"header": {}, "sections": {}}'
"""Stands for the resume that the analyzer would make of a document."""


class Ignored(NamedTuple):
    """A file that is not imported. `name` is its path below ROOT, escaped."""

    name: str
    why: SkipReason


def find_why(path: str, *, analyzes: bool = False) -> SkipReason | None:
    """Return why the path's name or kind prevents its import; None if they do not. With `analyzes`,
    documents are imported."""
    name = os.path.basename(path)  # noqa: PTH119  (text, as names are)
    if is_system_folder(name):
        return SkipReason.SYSTEM
    if is_hidden_or_temporary(name):
        return SkipReason.HIDDEN
    # A link to a folder has no ending. Path's methods would raise in an unsearchable folder.
    if os.path.islink(path):  # noqa: PTH114
        return SkipReason.LINK
    if find_extension(name) is None and not (analyzes and is_document(name)):
        return SkipReason.ENDING
    return None if os.path.isfile(path) else SkipReason.NO_FILE  # noqa: PTH113


class RehearsedAccount:
    """An account as the files so far would leave it."""

    def __init__(self, store: Store, info: AccountInfo, *, holds_files: bool = False) -> None:
        self._rehearsal = Rehearsal(store, info.id)
        self._full = QuotaReached(max_resumes=info.max_resumes or 0).message
        self.holds_files = holds_files
        """Whether new files queue behind held ones."""

    def decide(self, verdict: Resume | Result, digest: bytes) -> Result:
        """Return the result of one resume, and count it."""
        if isinstance(verdict, Result):
            return verdict
        queue = self._full if self.holds_files else None
        outcome = self._rehearsal.create(NewResume(verdict, digest=digest), queue=queue)
        result = outcomes.result_of(outcome, verdict.warnings)
        if isinstance(outcome, Duplicate) and not outcome.id:
            message = "Another of these files has the same content"
            return Result(FileOutcome.DUPLICATE, Reason.DUPLICATE, message)
        return result._replace(resume_id=result.resume_id or None, replaced=())

    def hold(self) -> Result:
        """Return the result of a held file."""
        return outcomes.held(self._full)


def rehearse(
    store: Store,
    root: Path,
    options: Options,
    *,
    on_file: Callable[[FileReport], None],
    on_ignored: Callable[[Ignored], None] = lambda ignored: None,
    remark: Remark,
) -> Summary:
    """Report what would happen to each file, or why it would not be imported; return the counts."""
    summary = Summary()
    options = dataclasses.replace(options, settle_s=0)
    analyzes = options.analyzer is not None

    def ignore(seen: Seen, why: SkipReason) -> None:
        summary.ignored += 1
        on_ignored(Ignored(escaped(seen.name), why))

    by_folder = accounts.by_folder(accounts.list_open(store))
    held = {account_id for _, account_id in watched_folder.count_held(root)}
    rehearsed: dict[str, RehearsedAccount] = {}
    bundles: list[tuple[Claim, RehearsedAccount]] = []

    def tell(claim: Claim, result: Result) -> None:
        summary.count(result.outcome)
        if result.outcome is FileOutcome.HELD:  # later files queue behind it
            rehearsed[claim.account_id].holds_files = True
        report = as_report(claim, result, f"{root}/{folder_of(claim, result)}")
        if result.outcome is FileOutcome.DONE and is_document(claim.source):
            report = report._replace(message="It would be analyzed")
        on_file(report)

    for below in inbox.find_inboxes(root):
        unlisted: dict[str, str] = {}
        by_age = _scan(root, below, analyzes, ignore, unlisted.__setitem__)
        for notice in unlisted.items():
            remark(*notice)
        info = by_folder.get(below or options.account or "")
        if info is None:
            summary.waiting += len(by_age)
            if by_age:
                remark(f"unowned {below}", unowned(below, options.account))
            continue
        # One account may own both its folder and the files directly in ROOT.
        if (account := rehearsed.get(info.id)) is None:
            account = RehearsedAccount(store, info, holds_files=info.id in held)
            rehearsed[info.id] = account
        summary.stuck += bool(unlisted)
        for seen in by_age:
            claim = claim_of(seen, info, "", store.clock())
            if not os.access(claim.folder(str(root)), os.W_OK, effective_ids=True):
                summary.waiting += 1
                summary.stuck += 1
                remark(f"unread {info.id}", untaken(claim.name, os.strerror(errno.EACCES)))
                continue
            result = _judge(claim, claim.path(str(root)), account, options)
            if isinstance(result, SkipReason):
                ignore(seen, result)
            elif isinstance(result, ReadFile):
                bundles.append((claim, account))
            elif result is not None:
                tell(claim, result)
    # Bundles come last whatever their age, since the others are imported while bundles settle.
    for claim, account in bundles:
        if (end := _unpack(claim, claim.path(str(root)), account, options)) is not None:
            tell(claim, end)
    return summary


def _scan(
    root: Path,
    below: str,
    analyzes: bool,
    ignore: Callable[[Seen, SkipReason], None],
    remark: Remark,
) -> list[Seen]:
    """Return the files of an inbox to import, oldest first."""
    by_age: list[tuple[int, Seen]] = []
    for seen in sorted(inbox.iter_inbox(root, below, analyzes=analyzes, remark=remark)):
        if seen.signature is not None:
            by_age.append((seen.signature.mtime_ns, seen))
        elif (why := find_why(f"{root}/{seen.name}", analyzes=analyzes)) is not None:
            ignore(seen, why)
    return [seen for _, seen in sorted(by_age)]


def _judge(
    claim: Claim, path: str, account: RehearsedAccount, options: Options
) -> Result | SkipReason | ReadFile | None:
    """Return the result of the file, or why it would not be imported; the read file if it is a
    bundle; None if it is gone, or being written to."""
    try:
        with os.fdopen(files.open_file(path), "rb") as file:
            if is_document(claim.source):
                content = files.read_file(file.fileno(), options.max_file_bytes)
                refused = find_fault(claim.base, content, options.limits)
                return account.decide(refused or parse(UNKNOWN), files.digest(content.body))
            found = inspect(claim, file.fileno(), None, options)
        if isinstance(found, Departure):
            return SkipReason.REPORT if found.cause is Cause.REPORT else None
        if found.verdict is not None and found.digest is not None:
            return account.decide(found.verdict, found.digest)
        return found
    except FileNotFoundError:
        return None
    except OSError as error:
        return outcomes.unreadable(error)


def _unpack(claim: Claim, path: str, account: RehearsedAccount, options: Options) -> Result | None:
    """Return the result of a bundle; None if it is gone."""
    if account.holds_files:  # the bundle is unpacked when its turn comes
        return account.hold()
    try:
        bundle, _ = open_bundle(files.open_file(path), claim, options)
    except FileNotFoundError:
        return None
    except OSError as error:
        return outcomes.unreadable(error)
    if not isinstance(bundle, Bundle):
        return bundle
    while portions := bundle.next_slice():
        for portion in portions:
            digest = files.digest(portion.part.body)
            bundle.conclude(portion, account.decide(portion.verdict, digest))
    return bundle.sum_up()
