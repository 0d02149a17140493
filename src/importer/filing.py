"""Putting concluded files away: the report first, then the move, both beside the inbox.

    ROOT/_done/YYYY-MM-DD/<account>/    ROOT/_held/<account>/    ROOT/_failed/<reason>/    ROOT/_duplicate/

Done files have no report, so it is their folder that says whose they are (docs/decisions/0011).

Cut off anywhere and begun again it comes to the same end. Where it could not be finished, the
file stays where it was claimed.
"""

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from importer import moves, reading, reports
from importer.claims import Claim
from importer.journals import Journal
from importer.names import find_extension, safe_stem
from importer.outcomes import Conclusion
from importer.reading import Signature
from importer.steps import Observer, Step
from importer.taking import Taker
from resumes.clock import Clock
from resumes.file_names import REPORT
from resumes.reasons import Reason
from resumes.store.accounts import NAME
from resumes.store.ledger import FileOutcome
from resumes.watched_folder import HELD

DONE, FAILED, DUPLICATE = "_done", "_failed", "_duplicate"
OUTCOMES = (DONE, FAILED, DUPLICATE, HELD)


def report_path(file: Path) -> Path:
    """Where the report on a file lies."""
    name = file.name
    return file.with_name(name[: len(name) - len(find_extension(name) or "")] + REPORT)


class Filing(NamedTuple):
    """What became of a claimed file, by its claim's id."""

    claim_id: str
    conclusion: Conclusion


class State(StrEnum):
    """How it went: `changed` is still there, with other content than was judged; `gone` was
    filed by someone else."""

    FILED = "filed"
    GONE = "gone"
    CHANGED = "changed"
    STUCK = "stuck"


class Filed(NamedTuple):
    """Where a file was filed, or why it was not."""

    claim_id: str
    state: State
    target: str = ""
    problem: str = ""


class Filer:
    """Puts files away from one workspace, below one ROOT."""

    def __init__(self, root: Path, taker: Taker, clock: Clock, observe: Observer) -> None:
        self._root = root
        self._taker = taker
        self._clock = clock
        self._observe = observe
        self._made: set[str] = set()

    def file_away(self, filings: Sequence[Filing]) -> list[Filed]:
        """Each file lies in its outcome's folder, with its report; one answer each, in order."""
        self._plan_reports(filings)
        return [self._file_away(filing) for filing in filings]

    def _plan_reports(self, filings: Sequence[Filing]) -> None:
        """Journals know where reports will lie before any does, so that they are found again if
        a claim comes to another end after all."""
        planned: dict[str, tuple[Journal, list[Claim]]] = {}
        for claim_id, conclusion in filings:
            mine = self._taker.find(claim_id)
            if mine is None or not conclusion.needs_report:
                continue
            claim = mine.claim
            places = [_report_place(claim, conclusion, name) for name in _names(claim, conclusion)]
            if new := [place for place in places if place not in claim.reports]:
                claim = claim._replace(reports=(*claim.reports, *new))
                planned.setdefault(mine.journal.path, (mine.journal, []))[1].append(claim)
        for journal, claims in planned.values():
            journal.add(claims)
            for claim in claims:
                self._taker.replace(claim)
            self._observe(Step.REPORT_PLANNED)

    def _file_away(self, filing: Filing) -> Filed:
        claim_id, conclusion = filing
        mine = self._taker.find(claim_id)
        if mine is None:
            return Filed(claim_id, State.GONE)
        claim = mine.claim
        try:
            signature = reading.find_signature(claim.path)
            if signature is None:
                self.forget(claim)
                return Filed(claim_id, State.GONE)
            if signature != mine.signature:
                return Filed(claim_id, State.CHANGED)
            target = self._move(claim, signature, conclusion)
        except OSError as error:
            return Filed(claim_id, State.STUCK, problem=error.strerror or str(error))
        self._observe(Step.MOVED)
        with contextlib.suppress(OSError):  # what is left over is tidied by the next importer
            self.forget(claim, keep=Path(target) if conclusion.needs_report else None)
        return Filed(claim_id, State.FILED, target)

    def _move(self, claim: Claim, signature: Signature, conclusion: Conclusion) -> str:
        folder = f"{self._root}/{_folder(claim, conclusion)}"
        self._make(folder)
        for name in _names(claim, conclusion):
            target = f"{folder}/{name}"
            try:
                if self._try_name(claim, signature, conclusion, target):
                    return target
            except FileNotFoundError:
                self._made.discard(folder)  # somebody tidied it away
                raise
        raise FileExistsError(f"Every name for {claim.id} is taken in {folder}")

    def _try_name(
        self, claim: Claim, signature: Signature, conclusion: Conclusion, target: str
    ) -> bool:
        """Whether the name was free and the file has it now."""
        if conclusion.needs_report:
            report = report_path(Path(target))
            if os.path.lexists(target) or reports.is_foreign(report, claim.id):
                return False
            self._report(claim, signature, conclusion, report)
        try:
            _move(claim, target)
        except FileExistsError:
            return False
        return True

    def _make(self, folder: str) -> None:
        if folder not in self._made:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._made.add(folder)

    def _report(
        self, claim: Claim, signature: Signature, conclusion: Conclusion, path: Path
    ) -> None:
        sha256 = reading.find_sha256(claim.path)
        content = reports.compose(claim, signature, conclusion, sha256=sha256, now_us=self._clock())
        try:
            moves.write_over(path, content, temporary=Path(claim.temporary))
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            moves.write_over(path, content, temporary=_beside(path, claim))
        self._observe(Step.REPORT_WRITTEN)

    def forget(self, claim: Claim, keep: Path | None = None) -> None:
        """Of a claim whose file has gone from it, only the outcome is left.

        Reports that were superseded go, those beside a file of this claim stay, as does the one
        on `keep`.
        """
        if claim.reports:
            self._tidy_reports(claim, keep)
            self._observe(Step.REPORTS_TIDIED)
            with contextlib.suppress(OSError):
                Path(claim.temporary).unlink(missing_ok=True)
        self._taker.settle(claim.id)

    def _tidy_reports(self, claim: Claim, keep: Path | None) -> None:
        extension = find_extension(claim.name) or ".json"
        for place in claim.reports:
            path = self._root / place
            file = path.parent / (path.name.removesuffix(REPORT) + extension)
            if file != keep and not os.path.lexists(file):
                reports.remove_report(path, claim.id)


def _move(claim: Claim, target: str) -> None:
    try:
        moves.move(claim.path, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # The outcomes lie on another disk, perhaps a larger one.
        moves.move_across(claim.path, target, temporary=_beside(Path(target), claim))


def _beside(path: Path, claim: Claim) -> Path:
    """A hidden name in the folder of a path, for what is renamed to it when it is whole."""
    return path.with_name(f".{claim.id}.part")


def folder_of(conclusion: Conclusion, account: str, claimed_at: str) -> str:
    """The folder below ROOT for files of this conclusion."""
    match conclusion.outcome:
        case FileOutcome.DONE:
            return f"{DONE}/{claimed_at[:10]}/{account}"
        case FileOutcome.DUPLICATE:
            return DUPLICATE
        case FileOutcome.HELD:
            return f"{HELD}/{account}"
        case FileOutcome.FAILED:
            reason = conclusion.refusal.reason if conclusion.refusal else Reason.INTERNAL_ERROR
            return f"{FAILED}/{reason.value}"


def iter_places(claim: Claim, conclusion: Conclusion) -> Iterator[str]:
    """The paths below ROOT that a file of this conclusion may be filed as, likelier ones first."""
    folder = _folder(claim, conclusion)
    for name in _names(claim, conclusion):
        yield f"{folder}/{name}"


def _folder(claim: Claim, conclusion: Conclusion) -> str:
    # Journals and reports say whose a file is, and anybody may have edited them.
    account = claim.account if NAME.fullmatch(claim.account) else claim.account_id
    return folder_of(conclusion, account, claim.claimed_at)


def _report_place(claim: Claim, conclusion: Conclusion, name: str) -> str:
    return str(report_path(Path(_folder(claim, conclusion), name)))


def _names(claim: Claim, conclusion: Conclusion) -> Iterator[str]:
    """Names to file under, the first that is free to be taken."""
    stem = safe_stem(claim.name)
    extension = find_extension(claim.name) or ".json"
    if conclusion.outcome is FileOutcome.HELD:
        # The arrival number leads, and the account is known by its id (pitfalls I7, S14).
        yield f"{claim.id}-{claim.account_id}-{stem}{extension}"
        return
    yield f"{stem}-{claim.id[-8:]}{extension}"
    yield f"{stem}-{claim.id}{extension}"
