"""Reports for the operator of an importer: outcomes of files, totals, and notices."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from importer.claims import Claim
from importer.files import SystemFolders, escaped
from importer.outcomes import Result
from resumes.store.import_ledger import FileOutcome
from resumes.store.importers import ImporterFinding, ImporterState
from resumes.watched_folder import FAILED

FIELDS = ("account", "name", "outcome", "reason", "message", "filedAs", "resumeId", "warnings")
"""The fields that `--json` and a hook's list contain for each file: the first of `FileReport`."""


class FileReport(NamedTuple):
    """The outcome of a file. `name` is its path below ROOT, escaped. `filed_as` is its current
    path, as text with surrogates."""

    account: str
    name: str
    outcome: FileOutcome
    reason: str | None
    message: str | None
    filed_as: str
    resume_id: str | None
    warnings: int
    claim_id: str = ""
    is_retry: bool = False
    """Whether the file had failed before and was retried."""
    is_kept: bool = False
    """Whether the file stays in the inbox, because it is too large to copy to another disk."""

    def as_json(self) -> dict[str, object]:
        """Return the fields for other programs; `warnings` is a count."""
        return dict(zip(FIELDS, self, strict=False))


def as_report(claim: Claim, result: Result, target: str, *, is_kept: bool = False) -> FileReport:
    return FileReport(
        account=claim.account,
        name=claim.name,
        outcome=result.outcome,
        reason=result.reason and result.reason.value,
        message=result.remark,
        filed_as=target,
        resume_id=result.resume_id,
        warnings=result.warning_count,
        claim_id=claim.id,
        is_retry=claim.is_return and claim.source.startswith(f"{FAILED}/"),
        is_kept=is_kept,
    )


@dataclass
class Summary:
    """The number of files with each outcome, and of files left in the inbox at the end.

    `held` counts the files that this run held and did not release again, `ignored` the names that
    are never imported. `waiting` counts the files that were left because they had no account or
    there was no time. `stuck` counts the waiting files and the folders that have an owner but
    could not be read, scanned or filed.
    """

    done: int = 0
    failed: int = 0
    duplicate: int = 0
    held: int = 0
    ignored: int = 0
    waiting: int = 0
    stuck: int = 0

    def count(self, outcome: FileOutcome, by: int = 1) -> None:
        setattr(self, outcome.value, getattr(self, outcome.value) + by)


@dataclass
class Progress(Summary):
    """The progress of an importer. `waiting` counts the files that were found and are not finished;
    a scan in progress may find more."""

    is_complete: bool = True


class Totals:
    """Passes on the reports of an importer and its helper, and counts them."""

    def __init__(self, on_file: Callable[[FileReport], None]) -> None:
        self._on_file = on_file
        self.filed = 0
        self.summary = Summary()
        self._held_ids: set[str] = set()
        self.kept_ids: set[str] = set()
        """Files that were reported and stay where they are."""

    def add(self, report: FileReport) -> None:
        self.filed += 1
        if report.claim_id in self._held_ids:
            self._held_ids.discard(report.claim_id)
            self.summary.count(FileOutcome.HELD, -1)
        if report.outcome is FileOutcome.HELD:
            self._held_ids.add(report.claim_id)
        if report.is_kept:
            self.kept_ids.add(report.claim_id)
        self.summary.count(report.outcome)
        self._on_file(report)


Remark = Callable[[str, str], None]
"""Reports a sentence once for each key."""
PREVENTING = frozenset({"trouble", "unfiled", "unlisted", "unmovable", "unread"})
"""The first words of notice keys that are also findings, because they prevent an import."""
MAX_FINDINGS = 10
"""The maximum number of findings in the importer's row; many files may have the same problem."""


class Notices:
    """The notices of an importer, each reported once until it is resolved. Findings are current
    problems, which are also stored in the importer's row."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell
        """Report a sentence, even if it was reported before."""
        self._told: set[str] = set()
        self._findings: dict[str, ImporterFinding] = {}

    def __call__(self, key: str, sentence: str) -> None:
        """Report the sentence, unless a notice with the same key is unresolved."""
        if key.partition(" ")[0] in PREVENTING:
            self._findings[key] = ImporterFinding(key, ImporterState.DEGRADED, sentence)
        if key not in self._told:
            self._told.add(key)
            self.tell(sentence)

    def resolve(self, key: str) -> bool:
        """Allow the key to be reported again. Return whether it had been reported."""
        was_told = key in self._told
        self._told.discard(key)
        self._findings.pop(key, None)
        return was_told

    def resolve_all(self, *words: str) -> None:
        """Resolve each finding whose key begins with one of these words."""
        for key in [known for known in self._findings if known.partition(" ")[0] in words]:
            self.resolve(key)

    def find(self, key: str, sentence: str, state: ImporterState = ImporterState.DEGRADED) -> None:
        """Report and keep a finding, unless it is known. If the sentence is empty, report that the
        earlier finding is resolved."""
        finding, earlier = ImporterFinding(key, state, sentence), self._findings.get(key)
        if sentence and finding != earlier:
            self._findings[key] = finding
            self.tell(sentence)
        elif earlier is not None and not sentence:
            del self._findings[key]
            self.tell(f"Resolved: {earlier.sentence}")

    def findings(self) -> tuple[ImporterFinding, ...]:
        """Return at most ten findings, the worst first."""
        order = list(ImporterState)
        worst = sorted(self._findings.values(), key=lambda finding: -order.index(finding.state))
        return tuple(worst[:MAX_FINDINGS])

    @property
    def state(self) -> ImporterState:
        return next((finding.state for finding in self.findings()), ImporterState.OK)


def unowned(folder: str, default_account: str | None) -> str:
    """Return the notice on files without an owner in `folder`, or in ROOT if `folder` is empty."""
    if folder:
        return (
            f'The folder "{escaped(folder)}" does not match any account, so its files are waiting. '
            "They will be imported as soon as an account with that name exists"
        )
    if default_account is not None:
        return (
            f'The account "{escaped(default_account)}" does not exist, so files directly in the '
            "watched folder are waiting. They will be imported as soon as it does"
        )
    return (
        "Files directly in the watched folder are ignored. Use --account to say which account they "
        "belong to, or move them into a folder named after an account"
    )


def left_alone(folders: SystemFolders) -> str:
    return f"{folders} will not be imported: recycle bins, snapshots and other system folders"


def untaken(name: str, why: str) -> str:
    """Return the notice on a file that cannot be read or moved. The name is escaped."""
    return f"Cannot pick up {name}: {why}. It stays where it is and will be retried"
