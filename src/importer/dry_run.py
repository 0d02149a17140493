"""A dry run: what would happen to the files in the inbox if they were imported now.

The verdicts come from the functions of the import. No file, folder or row is changed.
"""

import dataclasses
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from importer import files, inbox, outcomes
from importer.analyses import find_fault
from importer.claims import Claim, ClaimIds
from importer.files import escaped
from importer.filing import folder_of
from importer.inbox import Seen
from importer.intake import claim_of
from importer.job import Cause, Departure, ReadFile
from importer.notices import FileReport, Remark, Summary, as_report, unowned, untaken
from importer.options import Options
from importer.outcomes import Result
from importer.pending import Queues, QuotaBacklog
from importer.reader import inspect
from importer.slices import Bundle, open_bundle
from resumes import watched_folder
from resumes.analyzer import Resume, parse
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

    def __init__(self, store: Store, info: AccountInfo) -> None:
        self._rehearsal = Rehearsal(store, info.id)

    def decide(
        self, verdict: Resume | Result, digest: bytes, *, queue: str | None = None
    ) -> Result:
        """Return the result of one resume, which queues behind others with this message; and count it."""
        if isinstance(verdict, Result):
            return verdict
        outcome = self._rehearsal.create(NewResume(verdict, digest=digest), queue=queue)
        result = outcomes.result_of(outcome, verdict.warnings)
        if isinstance(outcome, Duplicate) and not outcome.id:
            message = "Another of these files has the same content"
            return Result(FileOutcome.DUPLICATE, Reason.DUPLICATE, message)
        return result._replace(resume_id=result.resume_id or None, replaced=())


@dataclass
class DryRun:
    """Reports what would happen to each file of ROOT, or why it would not be imported."""

    store: Store
    root: Path
    options: Options
    remark: Remark
    on_file: Callable[[FileReport], None]
    on_ignored: Callable[[Ignored], None] = lambda ignored: None
    _summary: Summary = field(default_factory=Summary)
    _rehearsed: dict[str, RehearsedAccount] = field(default_factory=dict)
    """By account id: one account may own both its folder and the files directly in ROOT."""
    _queues: Queues = field(default_factory=Queues)
    _bundles: list[Claim] = field(default_factory=list)

    def run(self) -> Summary:
        """Report, and return the counts."""
        self.options = dataclasses.replace(self.options, settle_s=0)
        by_folder = accounts.by_folder(accounts.list_open(self.store))
        held = {account_id for _, account_id in watched_folder.count_held(self.root)}
        ids = ClaimIds(self.store.clock)
        for below in inbox.find_inboxes(self.root):
            unlisted: dict[str, str] = {}
            by_age = self._scan(below, unlisted.__setitem__)
            for notice in unlisted.items():
                self.remark(*notice)
            info = by_folder.get(below or self.options.account or "")
            if info is None:
                self._summary.waiting += len(by_age)
                if by_age:
                    self.remark(f"unowned {below}", unowned(below, self.options.account))
                continue
            if info.id not in self._rehearsed:
                self._rehearsed[info.id] = RehearsedAccount(self.store, info)
                if info.id in held:
                    self._queues[info.id] = QuotaBacklog.of(info, "")
            self._summary.stuck += bool(unlisted)
            for seen in by_age:
                self._take(seen, claim_of(seen, info, ids.next(), self.store.clock()))
        # Bundles come last whatever their age, since the others are imported while bundles settle.
        for claim in (bundle._replace(id=ids.next()) for bundle in self._bundles):
            if (end := self._unpack(claim)) is not None:
                self._tell(claim, end)
        return self._summary

    def _scan(self, below: str, remark: Remark) -> list[Seen]:
        """Return the files of an inbox to import, oldest first."""
        analyzes = self.options.analyzer is not None
        by_age: list[tuple[int, Seen]] = []
        for seen in sorted(inbox.iter_inbox(self.root, below, analyzes=analyzes, remark=remark)):
            if seen.signature is not None:
                by_age.append((seen.signature.mtime_ns, seen))
            elif (why := find_why(f"{self.root}/{seen.name}", analyzes=analyzes)) is not None:
                self._ignore(seen, why)
        return [seen for _, seen in sorted(by_age)]

    def _take(self, seen: Seen, claim: Claim) -> None:
        if not os.access(claim.folder(str(self.root)), os.W_OK, effective_ids=True):
            self._summary.waiting += 1
            self._summary.stuck += 1
            why = os.strerror(errno.EACCES)
            self.remark(f"unread {claim.account_id}", untaken(claim.name, why))
            return
        match self._judge(claim):
            case SkipReason() as why:
                self._ignore(seen, why)
            case ReadFile():
                self._bundles.append(claim)
            case Result() as result:
                self._tell(claim, result)

    def _ignore(self, seen: Seen, why: SkipReason) -> None:
        self._summary.ignored += 1
        self.on_ignored(Ignored(escaped(seen.name), why))

    def _tell(self, claim: Claim, result: Result) -> None:
        self._summary.count(result.outcome)
        self._queues.note(claim, result)
        report = as_report(claim, result, f"{self.root}/{folder_of(claim, result)}")
        if result.outcome is FileOutcome.DONE and is_document(claim.source):
            report = report._replace(message="It would be analyzed")
        self.on_file(report)

    def _decide(self, claim: Claim, verdict: Resume | Result, digest: bytes) -> Result:
        queue = self._queues.find_message(claim)
        return self._rehearsed[claim.account_id].decide(verdict, digest, queue=queue)

    def _judge(self, claim: Claim) -> Result | SkipReason | ReadFile | None:
        """Return the result of the file, or why it would not be imported; the read file if it is a
        bundle; None if it is gone, or being written to."""
        options = self.options
        try:
            with os.fdopen(files.open_file(claim.path(str(self.root))), "rb") as file:
                if is_document(claim.source):
                    content = files.read_file(file.fileno(), options.max_file_bytes)
                    refused = find_fault(claim.base, content, options.limits)
                    return self._decide(
                        claim, refused or parse(UNKNOWN), files.digest(content.body)
                    )
                found = inspect(claim, file.fileno(), None, options)
        except FileNotFoundError:
            return None
        except OSError as error:
            return outcomes.unreadable(error)
        if isinstance(found, Departure):
            return SkipReason.REPORT if found.cause is Cause.REPORT else None
        if found.verdict is not None and found.digest is not None:
            return self._decide(claim, found.verdict, found.digest)
        return found

    def _unpack(self, claim: Claim) -> Result | None:
        """Return the result of a bundle; None if it is gone."""
        if (message := self._queues.find_message(claim)) is not None:
            return outcomes.held(message)  # it is unpacked when its turn comes
        try:
            descriptor = files.open_file(claim.path(str(self.root)))
        except FileNotFoundError:
            return None
        except OSError as error:
            return outcomes.unreadable(error)
        bundle, _ = open_bundle(descriptor, claim, self.options)
        if not isinstance(bundle, Bundle):
            return bundle
        while portions := bundle.next_slice():
            for portion in portions:
                digest = files.digest(portion.part.body)
                bundle.conclude(portion, self._decide(claim, portion.verdict, digest))
        return bundle.sum_up()
