"""Dry runs, which report what would happen if the files in the inbox were imported now.

The import's own functions produce the verdicts. No file, folder or row is changed.
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
from importer.claims import Claim, ClaimIds, File, State
from importer.files import escaped
from importer.filing import folder_of
from importer.held import Queues, QuotaBacklog
from importer.inbox import Seen
from importer.intake import claim_of
from importer.json_texts import CannotUnpack
from importer.notices import FileReport, Remark, Summary, as_report, unowned, untaken
from importer.options import Options
from importer.outcomes import Result
from importer.reader import inspect
from importer.slices import open_bundle
from resumes import watched_folder
from resumes.analyzer import Resume, parse
from resumes.import_reasons import Reason
from resumes.store import Store, accounts
from resumes.store.creation import Duplicate, NewResume, Rehearsal
from resumes.store.import_ledger import FileOutcome
from resumes.watched_names import SkipReason, is_document

UNKNOWN = b'{"header": {}, "sections": {}}'
"""A placeholder for the resume that the analyzer would create from a document."""


class Ignored(NamedTuple):
    """A file that is not imported. `name` is its path below ROOT, escaped."""

    name: str
    why: SkipReason


def decide(
    account: Rehearsal, verdict: Resume | Result, digest: bytes, *, queue: str | None = None
) -> Result:
    """Return and count a resume's result. `queue` is the message if it is held behind others."""
    if isinstance(verdict, Result):
        return verdict
    outcome = account.create(NewResume(verdict, digest=digest), queue=queue)
    result = outcomes.result_of(outcome, verdict.warnings)
    if isinstance(outcome, Duplicate) and not outcome.id:
        message = "Another of these files has the same content"
        return Result(FileOutcome.DUPLICATE, Reason.DUPLICATE, message)
    return result._replace(resume_id=result.resume_id or None, replaced=())


@dataclass
class DryRun:
    """Reports what would happen to each file in ROOT, or why it would not be imported."""

    store: Store
    root: Path
    options: Options
    remark: Remark
    on_file: Callable[[FileReport], None]
    on_ignored: Callable[[Ignored], None] = lambda ignored: None
    _summary: Summary = field(default_factory=Summary)
    _rehearsed: dict[str, Rehearsal] = field(default_factory=dict)
    """By account ID, since an account may own both its folder and the files directly in ROOT."""
    _queues: Queues = field(default_factory=Queues)
    _bundles: list[File] = field(default_factory=list)

    def run(self) -> Summary:
        """Report each file and return the counts."""
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
                self._rehearsed[info.id] = Rehearsal(self.store, info.id)
                if info.id in held:
                    self._queues[info.id] = QuotaBacklog.of(info, "")
            self._summary.stuck += bool(unlisted)
            for seen in by_age:
                self._take(seen, claim_of(seen, info, ids.next(), self.store.clock()))
        # Bundles come last, however old they are: other files are imported while they settle.
        for file in self._bundles:
            file.claim = file.claim._replace(id=ids.next())
            if (end := self._unpack(file)) is not None:
                self._tell(file.claim, end)
        return self._summary

    def _scan(self, below: str, remark: Remark) -> list[Seen]:
        """Return the files of an inbox that would be imported, oldest first."""
        analyzes = self.options.analyzer is not None
        found = sorted(inbox.iter_inbox(self.root, below, analyzes=analyzes, remark=remark))
        for seen in found:
            if seen.why is not None:
                self._ignore(seen, seen.why)
        return [seen for seen in found if seen.why is None]

    def _take(self, seen: Seen, claim: Claim) -> None:
        if not os.access(claim.folder(str(self.root)), os.W_OK, effective_ids=True):
            self._summary.waiting += 1
            self._summary.stuck += 1
            why = os.strerror(errno.EACCES)
            self.remark(f"unread {claim.account_id}", untaken(claim.name, why))
            return
        file = File(claim)
        if (result := self._judge(file)) is not None:
            self._tell(claim, result)
        elif file.state is State.REPORT:
            self._ignore(seen, SkipReason.REPORT)
        elif file.state is State.READ:
            self._bundles.append(file)

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
        queue = self._queues.why_held(claim)
        return decide(self._rehearsed[claim.account_id], verdict, digest, queue=queue)

    def _judge(self, file: File) -> Result | None:
        """Return the result of the file, or None if it is a bundle or would not be imported."""
        claim, options = file.claim, self.options
        try:
            with os.fdopen(files.open_file(claim.path(str(self.root))), "rb") as opened:
                if is_document(claim.source):
                    content = files.read_file(opened.fileno(), options.max_file_bytes)
                    refused = find_fault(claim.base, content, options.limits)
                    return self._decide(
                        claim, refused or parse(UNKNOWN), files.digest(content.body)
                    )
                inspect(file, opened.fileno(), options)
        except FileNotFoundError:
            return None
        except OSError as error:
            return outcomes.unreadable(error)
        if file.verdict is None or file.digest is None:
            return None
        return self._decide(claim, file.verdict, file.digest)

    def _unpack(self, file: File) -> Result | None:
        """Return the result of a bundle, or None if the file no longer exists."""
        claim = file.claim
        if (message := self._queues.why_held(claim)) is not None:
            return outcomes.held(message)  # it is unpacked when its turn comes
        try:
            descriptor = files.open_file(claim.path(str(self.root)))
            bundle = open_bundle(descriptor, file, self.options)
            while portions := bundle.next_slice():
                for part, verdict in portions:
                    bundle.conclude(part, self._decide(claim, verdict, files.digest(part.body)))
        except FileNotFoundError:
            return None
        except OSError as error:
            return outcomes.unreadable(error)
        except CannotUnpack as error:
            return error.refusal
        return bundle.sum_up()
