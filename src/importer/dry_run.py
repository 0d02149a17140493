"""A rehearsal: what would become of the files in the inbox, had the importer taken them now.

The same verdicts by the same functions, and nothing is changed: no file, no folder, no row.
"""

import os
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from importer import files, inbox, outcomes
from importer.batch import Trial
from importer.files import escaped, find_extension
from importer.filing import folder_of
from importer.held import HeldFiles
from importer.inbox import Seen, is_passed_over
from importer.notices import FileReport, Remark, Summary, unowned
from importer.options import Options
from importer.outcomes import Conclusion, Refusal
from importer.slices import Bundle, Portion
from importer.unpack.text import CannotUnpack
from resumes.clock import timestamp
from resumes.errors import QuotaReached
from resumes.file_names import EXTENSIONS
from resumes.reasons import Reason
from resumes.store import Store, accounts, ledger
from resumes.store.accounts import AccountInfo
from resumes.store.creating import Created, Duplicate, Outcome
from resumes.store.ledger import FileOutcome

ENDINGS = ", ".join(ending for ending in EXTENSIONS if ending.count(".") == 1)
"""`.json, .ndjson, …`: what names end in, those of compressed files as `.gz`."""


class Why(StrEnum):
    """Why a file is left where it is."""

    ENDING = "ending"
    HIDDEN = "hidden"
    LINK = "link"
    NO_FILE = "no_file"
    REPORT = "report"

    @property
    def sentence(self) -> str:
        """The reason in words, of one file."""
        return _SENTENCES[self]


_SENTENCES = {
    Why.ENDING: f"Its name ends in none of {ENDINGS}",
    Why.HIDDEN: "Its name is a hidden or temporary one",
    Why.LINK: "It is a link",
    Why.NO_FILE: "It is no regular file",
    Why.REPORT: "It is a report of the importer",
}


class Ignored(NamedTuple):
    """A file that is left where it is. `name` is its path below ROOT, escaped."""

    name: str
    why: Why


def find_why(path: str) -> Why | None:
    """Why what lies there is never imported, by its name and kind; None for a file that is."""
    name = os.path.basename(path)  # noqa: PTH119  (text, as names are)
    if is_passed_over(name):
        return Why.HIDDEN
    if find_extension(name) is None:
        return Why.ENDING
    if Path(path).is_symlink():
        return Why.LINK
    return None if Path(path).is_file() else Why.NO_FILE


class _Account:
    """An account as it would be after the files so far."""

    def __init__(self, store: Store, info: AccountInfo, *, holds_files: bool) -> None:
        self.info = info
        self._store = store
        self._free = info.free_places
        self._seen: set[bytes] = set()
        self._holds_files = holds_files

    def create(self, digest: bytes) -> Outcome:
        """What the create path would answer."""
        stored = ledger.find_stored(self._store, self.info.id, digest)
        if stored is not None:
            return Duplicate(stored)
        if digest in self._seen:
            return Duplicate("")
        if self._holds_files or (self._free is not None and self._free < 1):
            return QuotaReached(max_resumes=self.info.max_resumes or 0)
        self._seen.add(digest)
        if self._free is not None:
            self._free -= 1
        return Created("")


def rehearse(
    store: Store,
    root: Path,
    options: Options,
    *,
    on_file: Callable[[FileReport], None],
    on_ignored: Callable[[Ignored], None] = lambda one: None,
    remark: Remark,
) -> Summary:
    """Each file is told as it would be, or why it is left; what they would come to, in sum."""
    summary = Summary()

    def ignore(seen: Seen, why: Why) -> None:
        summary.ignored += 1
        on_ignored(Ignored(escaped(seen.name), why))

    by_name = {one.name: one for one in accounts.list_accounts(store)}
    held = HeldFiles(root).find()
    for below in inbox.find_inboxes(str(root)):
        info = by_name.get(below or options.account or "")
        folder = f"{root}/{below}" if below else str(root)
        seen = list(inbox.iter_inbox(folder, below=below, remark=remark))
        for one in sorted(seen):
            if one.signature is None and (why := find_why(one.path)) is not None:
                ignore(one, why)
        files = sorted((one for one in seen if one.signature), key=_by_age)
        if info is None:
            summary.waiting += len(files)
            if files:
                remark(f"unowned {below}", unowned(below, options.account))
            continue
        account = _Account(store, info, holds_files=bool(held.get(info.id)))
        for one in files:
            conclusion = _judge(one, account, options)
            if conclusion is None:
                continue
            if isinstance(conclusion, Why):
                ignore(one, conclusion)
                continue
            _count(summary, conclusion.outcome)
            on_file(_report(one, info, conclusion, root, timestamp(store.clock())))
    return summary


def _by_age(seen: Seen) -> tuple[int, str]:
    return (seen.signature.mtime_ns if seen.signature else 0, seen.name)


def _count(summary: Summary, outcome: FileOutcome) -> None:
    setattr(summary, outcome.value, getattr(summary, outcome.value) + 1)


def _judge(seen: Seen, account: _Account, options: Options) -> Conclusion | Why | None:
    """What would become of the file, or why it would be left; None for one that is gone."""
    name = escaped(seen.name)
    trial = Trial(options.format, settle_s=0)
    try:
        descriptor = files.open_file(seen.path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return outcomes.failed(outcomes.unreadable(error))
    try:
        tried = trial.try_open(descriptor, name, None)
    finally:
        os.close(descriptor)
    if tried.is_report:
        return Why.REPORT
    if isinstance(tried.verdict, Refusal):
        return outcomes.failed(tried.verdict)
    if tried.verdict is not None and tried.digest is not None:
        return _rehearsed(outcomes.conclude_one(tried.verdict, account.create(tried.digest)))
    return _judge_bundle(seen.path, name, account, options)


def _judge_bundle(path: str, name: str, account: _Account, options: Options) -> Conclusion:
    try:
        bundle = Bundle(path, name, options.format, options.limits, options.tuning)
    except CannotUnpack as error:
        return outcomes.failed(error.refusal)
    except OSError as error:
        return outcomes.failed(outcomes.unreadable(error))
    for portion in _iter_portions(bundle):
        if isinstance(portion.verdict, Refusal):
            bundle.conclude(portion, outcomes.failed(portion.verdict))
        else:
            outcome = account.create(files.digest(portion.part.body))
            conclusion = _rehearsed(outcomes.conclude_one(portion.verdict, outcome))
            bundle.conclude(portion, conclusion)
    return outcomes.sum_up(bundle.items)


def _rehearsed(conclusion: Conclusion) -> Conclusion:
    """The conclusion; a duplicate of what is not stored yet has no id to name."""
    if conclusion.outcome is FileOutcome.DUPLICATE and not conclusion.resume_id:
        told = Refusal(Reason.DUPLICATE, "The same content is among these files")
        return conclusion._replace(refusal=told)
    return conclusion


def _iter_portions(bundle: Bundle) -> Iterator[Portion]:
    while portions := bundle.next_slice():
        yield from portions


def _report(
    seen: Seen, info: AccountInfo, conclusion: Conclusion, root: Path, now: str
) -> FileReport:
    refusal = conclusion.refusal
    return FileReport(
        account=info.name,
        name=escaped(seen.name),
        outcome=conclusion.outcome,
        reason=refusal.reason.value if refusal else None,
        message=refusal.message if refusal else conclusion.remark,
        filed_as=f"{root}/{folder_of(conclusion, info.name, now)}",
        resume_id=conclusion.resume_id or None,
        warnings=len(conclusion.warnings),
    )
