"""Putting a concluded file away: the report first, then the move, both beside the inbox.

    ROOT/_done/YYYY-MM-DD/    ROOT/_failed/<reason>/    ROOT/_duplicate/    ROOT/_held/<account>/

Cut off anywhere and begun again it comes to the same end. Where it could not be finished, the
file stays where it was claimed.
"""

import contextlib
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

from importer import claims, moves, reports
from importer.claims import Claim
from importer.judging import Judged
from importer.names import EXTENSION, safe_stem
from importer.outcomes import Conclusion, Reason
from importer.steps import Observer, Step
from resumes.clock import Clock
from resumes.store.ledger import FileOutcome

DONE, FAILED, DUPLICATE, HELD = "_done", "_failed", "_duplicate", "_held"


def report_path(file: Path) -> Path:
    """Where the report on a file lies."""
    return file.with_name(file.name.removesuffix(EXTENSION) + reports.SUFFIX)


class Filing:
    """Puts files away below one ROOT."""

    def __init__(self, root: Path, clock: Clock, observe: Observer) -> None:
        self._root = root
        self._clock = clock
        self._observe = observe

    def file_away(self, claim: Claim, judged: Judged, conclusion: Conclusion) -> Path:
        """The claimed file lies in its outcome's folder, with its report; where, is returned.

        Raises FileNotFoundError when another importer filed it, and OSError when it cannot be
        filed now; it stays claimed then.
        """
        folder = self._root / _folder(claim, conclusion)
        folder.mkdir(parents=True, exist_ok=True)
        for name in _names(claim, conclusion):
            target = folder / name
            if os.path.lexists(target) or reports.is_foreign(report_path(target), claim.id):
                continue
            if conclusion.needs_report:
                claim = self._report(claim, judged, conclusion, report_path(target))
            with contextlib.suppress(FileExistsError):
                moves.move(claim.path, target)
                self._observe(Step.MOVED)
                self.forget(claim, keep=target if conclusion.needs_report else None)
                return target
        raise FileExistsError(f"Every name for {claim.id} is taken in {folder}")

    def _report(self, claim: Claim, judged: Judged, conclusion: Conclusion, path: Path) -> Claim:
        """The claim, whose report is at the path. The journal knows of it first, so that it is
        found again if the claim comes to another end after all."""
        place = str(path.relative_to(self._root))
        if place not in claim.reports:
            claim = dataclasses.replace(claim, reports=(*claim.reports, place))
            claims.rewrite(claim)
            self._observe(Step.REPORT_PLANNED)
        content = reports.compose(claim, judged, conclusion, now_us=self._clock())
        moves.write_over(path, content, temporary=claim.temporary)
        self._observe(Step.REPORT_WRITTEN)
        return claim

    def forget(self, claim: Claim, keep: Path | None = None) -> None:
        """Of a claim whose file has gone from it, only the outcome is left.

        Reports that were superseded go, those beside a file of this claim stay, as does the one
        on `keep`.
        """
        for place in claim.reports:
            path = self._root / place
            file = path.with_name(path.name.removesuffix(reports.SUFFIX) + EXTENSION)
            if file != keep and not os.path.lexists(file):
                reports.remove_report(path, claim.id)
        self._observe(Step.REPORTS_TIDIED)
        claims.drop(claim)
        self._observe(Step.JOURNAL_DROPPED)


def _folder(claim: Claim, conclusion: Conclusion) -> Path:
    match conclusion.outcome:
        case FileOutcome.DONE:
            return Path(DONE, claim.claimed_at[:10])
        case FileOutcome.DUPLICATE:
            return Path(DUPLICATE)
        case FileOutcome.HELD:
            return Path(HELD, claim.account or claim.account_id)
        case FileOutcome.FAILED:
            reason = conclusion.refusal.reason if conclusion.refusal else Reason.INTERNAL_ERROR
            return Path(FAILED, reason.value)


def _names(claim: Claim, conclusion: Conclusion) -> Iterator[str]:
    """Names to file under, the first that is free to be taken."""
    stem = safe_stem(claim.name)
    if conclusion.outcome is FileOutcome.HELD:
        # The arrival number leads, and the account is known by its id (pitfalls I7, S14).
        yield f"{claim.id}-{claim.account_id}-{stem}{EXTENSION}"
        return
    yield f"{stem}-{claim.id[-8:]}{EXTENSION}"
    yield f"{stem}-{claim.id}{EXTENSION}"
