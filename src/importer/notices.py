"""What those who run the importer are told: each file's end, the sums, and notices, each once."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from importer.claims import Claim
from importer.files import escaped
from importer.outcomes import Conclusion
from resumes.store.ledger import FileOutcome


class FileReport(NamedTuple):
    """What became of a file. `name` is its path below ROOT, escaped; `filed_as` where it lies now,
    as text with surrogates."""

    account: str
    name: str
    outcome: FileOutcome
    reason: str | None
    message: str | None
    filed_as: str
    resume_id: str | None
    warnings: int
    claim_id: str = ""


def as_report(claim: Claim, conclusion: Conclusion, target: str) -> FileReport:
    """What people are told of a file that was filed."""
    refusal = conclusion.refusal
    return FileReport(
        account=claim.account,
        name=claim.name,
        outcome=conclusion.outcome,
        reason=refusal.reason.value if refusal else None,
        message=refusal.message if refusal else conclusion.remark,
        filed_as=target,
        resume_id=conclusion.resume_id,
        warnings=len(conclusion.warnings),
        claim_id=claim.id,
    )


@dataclass
class Summary:
    """How many files came to which end, and how many lie in the inbox at the end.

    `held` counts those that this run held and did not release again; `ignored` names that are
    never imported; `waiting` files that were left, for want of an account or of time; `stuck` the
    files and folders among them that have an owner and could not be taken, looked into or filed.
    """

    done: int = 0
    failed: int = 0
    duplicate: int = 0
    held: int = 0
    ignored: int = 0
    waiting: int = 0
    stuck: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an importer is. `waiting` files were seen and are not at their end yet; more may
    come to light while a look is not complete."""

    done: int
    failed: int
    duplicate: int
    held: int
    waiting: int
    waiting_bytes: int
    is_complete: bool


Remark = Callable[[str, str], None]
"""Tells people something once: a key by which it is known as told, and the sentence."""


class Remarks:
    """Tells each thing once, until it is over."""

    def __init__(self, on_notice: Callable[[str], None]) -> None:
        self._on_notice = on_notice
        self._told: set[str] = set()

    def __call__(self, key: str, sentence: str) -> None:
        """The sentence is told, unless the key's was and is not over."""
        if key not in self._told:
            self._told.add(key)
            self.tell(sentence)

    def tell(self, sentence: str) -> None:
        """The sentence is told, whenever it comes."""
        self._on_notice(sentence)

    def has_told(self, key: str) -> bool:
        """Whether it was told and is not over."""
        return key in self._told

    def over(self, key: str) -> bool:
        """It is over and will be told again; whether it had been told."""
        was_told = key in self._told
        self._told.discard(key)
        return was_told


def unowned(folder: str, default_account: str | None) -> str:
    """What is told of files that nobody owns: in a folder of ROOT, or directly in it if empty."""
    if folder:
        return (
            f'The folder "{escaped(folder)}" names no account, so its files are left where '
            "they are. They are imported as soon as there is an account of that name"
        )
    if default_account is not None:
        return (
            f'There is no account "{escaped(default_account)}", so files directly in the watched '
            "folder are left there. They are imported as soon as there is"
        )
    return (
        "Files directly in the watched folder are left there: say whose they are with --account, "
        "or move them into a folder named after an account"
    )


class Tally:
    """The files that one importer filed."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(FileOutcome, 0)
        self._held_ids: set[str] = set()
        self.filed = 0
        """Reports in all, so that it is known whether anything happened."""

    def add(self, report: FileReport) -> None:
        """The file is counted."""
        outcome, claim_id = report.outcome, report.claim_id
        self.filed += 1
        if claim_id in self._held_ids:
            self._held_ids.discard(claim_id)
            self._counts[FileOutcome.HELD] -= 1
        if outcome is FileOutcome.HELD:
            self._held_ids.add(claim_id)
        self._counts[outcome] += 1

    def __getitem__(self, outcome: FileOutcome) -> int:
        return self._counts[outcome]


class HealthState(StrEnum):
    """From best to worst."""

    OK = "ok"
    POLLING = "polling"
    """Everything works; new files are found by scans alone, so a little later."""

    DEGRADED = "degraded"
    """Something fails and is tried again by itself."""


SEVERITY = {state: number for number, state in enumerate(HealthState)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing, by its key. When the state is ok, the sentence is what was true until now."""

    key: str
    state: HealthState
    sentence: str


class Health:
    """What is found at present. Any thread may call anything.

    `on_change` is called for each change of a key, once and in order, by the thread that makes
    the change. It may use this object; it must neither raise nor wait for another thread that
    changes it.
    """

    def __init__(self, on_change: Callable[[Finding], None]) -> None:
        self._on_change = on_change
        self._findings: dict[str, Finding] = {}
        self._reading = threading.Lock()
        # Held while a change is told, so that none overtakes another; readers do not wait for it.
        self._changing = threading.RLock()

    def degraded(self, key: str, sentence: str) -> None:
        """Something fails, and goes on being tried."""
        self._put(Finding(key, HealthState.DEGRADED, sentence))

    def polling(self, key: str, sentence: str) -> None:
        """New files are found by scans alone, for the reason in the sentence."""
        self._put(Finding(key, HealthState.POLLING, sentence))

    def ok(self, key: str) -> None:
        """What was found under the key is over; nothing happens when nothing was."""
        with self._changing:
            with self._reading:
                was = self._findings.pop(key, None)
            if was is not None:
                self._on_change(Finding(key, HealthState.OK, was.sentence))

    def findings(self) -> tuple[Finding, ...]:
        """What is not ok, the worst first; empty when all is well."""
        with self._reading:
            found = list(self._findings.values())
        return tuple(sorted(found, key=lambda finding: -SEVERITY[finding.state]))

    @property
    def state(self) -> HealthState:
        """The worst of the findings."""
        found = self.findings()
        return found[0].state if found else HealthState.OK

    def _put(self, finding: Finding) -> None:
        with self._changing:
            with self._reading:
                is_new = self._findings.get(finding.key) != finding
                self._findings[finding.key] = finding
            if is_new:
                self._on_change(finding)
