"""Putting files away whose outcome is in the ledger: report, move, look once more.

    ROOT/_done/YYYY-MM-DD/<account>/    ROOT/_held/<account>/    ROOT/_failed/<reason>/    ROOT/_duplicate/

Done files have no report, so it is their folder that says whose they are (docs/decisions/0011).
What was read may have been replaced or written to meanwhile. Nobody can open a file by its old
name once it was moved, so that is looked for then: another version goes back to where it came from,
as a file of its own (pitfalls I4).

Cut off anywhere and begun again it comes to the same end.
"""

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from importer import files
from importer.claims import Claim
from importer.failpoints import Observer, Step
from importer.files import Folders, Signature, find_extension, safe_stem
from importer.outcomes import Conclusion, Refusal
from importer.slots import Slot
from resumes.analyzer import Resume
from resumes.clock import Clock, timestamp
from resumes.errors import Issue
from resumes.file_names import REPORT
from resumes.reasons import Reason
from resumes.store.accounts import NAME
from resumes.store.ledger import FileOutcome
from resumes.text import escaped
from resumes.watched_folder import HELD

MARKER = "resumes_import_report"
"""A report's first field, by which it is known as ours if it gets into the inbox (pitfalls I13)."""

VERSION = 1
MAX_REPORT_BYTES = 64 * 1024 * 1024


def compose(
    claim: Claim,
    signature: Signature,
    conclusion: Conclusion,
    *,
    sha256: str | None,
    now_us: int,
) -> bytes:
    """The report as indented JSON. Lists of issues and warnings hold at most 50 and a count.

    Of a file of several resumes `items` says what became of each.
    """
    refusal = conclusion.refusal
    is_duplicate = conclusion.outcome is FileOutcome.DUPLICATE
    report: dict[str, Any] = {
        MARKER: VERSION,
        "outcome": conclusion.outcome.value,
        "reason": refusal.reason.value if refusal else None,
        "message": escaped(refusal.message) if refusal else conclusion.remark,
        "path": escaped(refusal.path) if refusal and refusal.path is not None else None,
        "byte_offset": refusal.byte_offset if refusal else None,
        "hint": conclusion.hint,
        "issues": _listed(refusal.issues if refusal else ()),
        "warnings": _listed(conclusion.warnings),
        "items": [item.as_dict() for item in conclusion.items],
        "resume_id": None if is_duplicate else conclusion.resume_id,
        "duplicate_of": conclusion.resume_id if is_duplicate else None,
        "file": claim.name,
        "account": claim.account,
        "account_id": claim.account_id,
        "claim_id": claim.id,
        "size_bytes": signature.size_bytes,
        "sha256": sha256,
        "modified_at": _modified_at(signature.mtime_ns),
        "claimed_at": claim.claimed_at,
        "finished_at": timestamp(now_us),
    }
    return json.dumps(report, indent=2, ensure_ascii=False).encode(errors="replace") + b"\n"


def _modified_at(mtime_ns: int) -> str | None:
    # A file's time is whatever its writer set: years that no calendar holds, too.
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return timestamp(mtime_ns // 1_000)
    return None


def _listed(issues: tuple[Issue, ...]) -> list[dict[str, str]]:
    return [{"path": escaped(issue.path), "message": escaped(issue.message)} for issue in issues]


def is_report(body: bytes) -> bool:
    """Whether the bytes are a report of ours."""
    return _parse(body) is not None


def find_report(path: Path) -> dict[str, Any] | None:
    """The report at the path, if there is one and it is ours."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_REPORT_BYTES:
            return None
        return _parse(path.read_bytes())
    except OSError:
        return None


def remove_report(path: Path, claim_id: str) -> None:
    """A report on this claim no longer lies at the path; anything else there stays."""
    report = find_report(path)
    if report is not None and report.get("claim_id") == claim_id:
        path.unlink(missing_ok=True)


def is_foreign(path: Path, claim_id: str) -> bool:
    """Whether something other than a report on this claim lies at the path."""
    if not os.path.lexists(path):
        return False
    report = find_report(path)
    return report is None or report.get("claim_id") != claim_id


def _parse(body: bytes) -> dict[str, Any] | None:
    if MARKER.encode() not in body[:200]:
        return None
    try:
        report = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return report if isinstance(report, dict) and report.get(MARKER) == VERSION else None


DONE, FAILED, DUPLICATE = "_done", "_failed", "_duplicate"

FRESH_NS = 3_000_000_000
"""A file that was changed so short a time before may have been changed once more within the same
tick of the file system's clock, so its bytes are compared too."""

OF_THE_FILE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.ENAMETOOLONG, errno.EROFS})
"""Errors that concern a file or its folder alone, so that others can be gone on with."""


class Work(NamedTuple):
    """A file that was read. `verdict` is None for a file of several resumes."""

    claim: Claim
    signature: Signature
    verdict: Resume | Refusal | None = None
    digest: bytes | None = None
    descriptor: int | None = None
    """The file, open; None for what could not be opened, and for what is unpacked."""
    is_open: bool = False
    """Whether it is judged although somebody has it open for writing."""


class State(StrEnum):
    """How it went."""

    FILED = "filed"
    GONE = "gone"
    """Somebody moved it or removed it."""
    CHANGED = "changed"
    """It lies where it lay, or beside that, with other content than was judged."""
    WRITTEN_TO = "written to"
    """It lies where it belongs, and somebody still has it open for writing."""
    UNMOVABLE = "unmovable"
    """It lies where it lay, for a reason that concerns it or its folder alone."""
    STUCK = "stuck"
    """It lies where it lay, for a reason that concerns all files."""


class Filed(NamedTuple):
    """Where a file lies now, and what is in the way of more."""

    state: State
    target: str = ""
    problem: str = ""


def report_path(file: Path) -> Path:
    """Where the report on a file lies."""
    name = file.name
    return file.with_name(name[: len(name) - len(find_extension(name) or "")] + REPORT)


class Filer:
    """Puts files away below one ROOT. Their claims stand in the slot's note."""

    def __init__(
        self, root: Path, slot: Slot, folders: Folders, clock: Clock, observe: Observer
    ) -> None:
        self._root = str(root)
        self._slot = slot
        self._folders = folders
        self._clock = clock
        self._observe = observe
        self._made: set[str] = set()

    def plan_reports(self, ended: Sequence[tuple[Work, Conclusion]]) -> None:
        """Note where reports will lie before any does, so that they are found again if a claim
        comes to another end after all. Raises OSError."""
        planned = []
        for work, conclusion in ended:
            claim = self._slot.find(work.claim.id)
            if claim is None or not conclusion.needs_report:
                continue
            places = [_report_place(claim, conclusion, name) for name in _names(claim, conclusion)]
            if new := [place for place in places if place not in claim.reports]:
                planned.append(claim._replace(reports=(*claim.reports, *new)))
        if planned:
            self._slot.replace(planned)
            self._observe(Step.REPORT_PLANNED)

    def file_away(self, work: Work, conclusion: Conclusion) -> Filed:
        """The file lies in its outcome's folder, with its report, as it was read."""
        claim = self._slot.find(work.claim.id) or work.claim
        is_copied = False
        try:
            if claim.is_return and self._is_in_place(claim, conclusion):
                target = claim.path(self._root)
                if conclusion.needs_report:
                    self._report(claim, work.signature, conclusion, report_path(Path(target)))
            else:
                target, is_copied = self._move(claim, work, conclusion)
        except FileNotFoundError:
            if files.find_signature(self._lies_at(claim)) is not None:
                return Filed(State.STUCK, problem=os.strerror(errno.ENOENT))
            self.tidy(claim, None)
            return Filed(State.GONE)
        except _Changed:
            self.tidy(claim, None)
            return Filed(State.CHANGED)
        except _Unmovable as error:
            return Filed(State.UNMOVABLE, problem=str(error))
        except OSError as error:
            return Filed(State.STUCK, problem=error.strerror or str(error))
        if is_copied:  # the copy is ours alone
            self.tidy(claim, Path(target) if conclusion.needs_report else None)
            return Filed(State.FILED, target)
        self._observe(Step.MOVED)
        return self.check(work, conclusion, target)

    def check(self, work: Work, conclusion: Conclusion, target: str) -> Filed:
        """The moved file is what was read; else it is where it came from again."""
        claim = self._slot.find(work.claim.id) or work.claim
        try:
            match _is_as_read(work, target):
                case True:
                    self.tidy(claim, Path(target) if conclusion.needs_report else None)
                    return Filed(State.FILED, target)
                case None:
                    return Filed(State.WRITTEN_TO, target)
                case False if self._is_copy(claim, work, target):
                    self.tidy(claim, Path(target) if conclusion.needs_report else None)
                    return Filed(State.FILED, target)
                case False:
                    self.move_back(claim, target)
        except FileNotFoundError:  # somebody was quick to take it away; it was imported
            self.tidy(claim, None)
            return Filed(State.FILED, target)
        except OSError as error:
            return Filed(State.WRITTEN_TO, target, error.strerror or str(error))
        return Filed(State.CHANGED)

    def move_back(self, claim: Claim, target: str) -> None:
        """What lies at the target is another version, and goes back to where it came from: under
        another name if its own was given to yet another file. Raises OSError."""
        put_back(self._root, claim, target)
        self._observe(Step.MOVED_BACK)
        self.tidy(claim, None)

    def _is_in_place(self, claim: Claim, conclusion: Conclusion) -> bool:
        return claim.source in iter_places(claim, conclusion)

    def _move(self, claim: Claim, work: Work, conclusion: Conclusion) -> tuple[str, bool]:
        """Where the file is now, and whether it was copied there from another disk."""
        folder = f"{self._root}/{_folder(claim, conclusion)}"
        self._make(folder)
        for name in _names(claim, conclusion):
            target = f"{folder}/{name}"
            try:
                is_copied = self._try_name(claim, work, conclusion, target)
                if is_copied is not None:
                    return target, is_copied
            except FileNotFoundError:
                self._made.discard(folder)  # somebody may have tidied it away
                raise
        raise FileExistsError(errno.EEXIST, f"Every name for {claim.id} is taken in {folder}")

    def _try_name(
        self, claim: Claim, work: Work, conclusion: Conclusion, target: str
    ) -> bool | None:
        """Whether the file was copied to have the name; None when the name was taken."""
        if conclusion.needs_report:
            report = report_path(Path(target))
            is_taken = os.path.lexists(target) and not files.is_copy(self._lies_at(claim), target)
            if is_taken or is_foreign(report, claim.id):
                return None
            self._report(claim, work.signature, conclusion, report)
        try:
            return self._rename(claim, work, target)
        except FileExistsError:
            return None

    def _rename(self, claim: Claim, work: Work, target: str) -> bool:
        """Whether the file had to be copied."""
        folder = self._folders.open(claim.folder(self._root))
        try:
            files.move(claim.base, target, source_fd=folder)
        except FileNotFoundError:
            if not os.path.lexists(aside_of(self._root, claim)):
                raise
        except OSError as error:
            to = os.path.dirname(target)  # noqa: PTH120  (text, as names are)
            if error.errno in OF_THE_FILE and os.access(to, os.W_OK, effective_ids=True):
                raise _Unmovable(error.strerror) from error
            if error.errno != errno.EXDEV:
                raise
            # The outcomes lie on another disk, perhaps a larger one; or this folder does.
            self._set_aside(claim, folder)
        else:
            return False
        self._copy(claim, work, target)
        return True

    def _set_aside(self, claim: Claim, folder: int) -> None:
        """Give the file a name that nobody opens; what has its name again is another file."""
        aside = aside_of(self._root, claim)
        if os.path.lexists(aside):
            return
        if not os.access(claim.base, os.R_OK, dir_fd=folder, effective_ids=True):
            raise _Unmovable(os.strerror(errno.EACCES))
        files.move(claim.base, aside, source_fd=folder)
        self._observe(Step.SET_ASIDE)

    def _copy(self, claim: Claim, work: Work, target: str) -> None:
        """Copy a file to another disk that was set aside.

        It stays aside until its copy is whole, and is known to be of what was read. Raises _Changed,
        with the file back where it lay, _Unmovable, FileExistsError and OSError.
        """
        aside = str(aside_of(self._root, claim))
        if not files.is_copy(aside, target):
            temporary = _beside(Path(target), claim)
            self._check_aside(claim, work, aside)
            try:
                files.copy(aside, temporary)
                self._check_aside(claim, work, aside)
                files.move(temporary, target)
            finally:
                temporary.unlink(missing_ok=True)
            files.sync_folder(temporary.parent)
        self._observe(Step.COPIED)
        os.unlink(aside)  # noqa: PTH108  (text, as names are)

    def _check_aside(self, claim: Claim, work: Work, aside: str) -> None:
        match _is_as_read(work, aside):
            case None:
                raise _Unmovable("somebody has it open for writing")
            case False:
                put_back(self._root, claim, aside)
                raise _Changed

    def _is_copy(self, claim: Claim, work: Work, target: str) -> bool:
        """Whether the target, which is not the file that was read, is a copy of it."""
        folder = os.path.dirname(claim.path(self._root))  # noqa: PTH120  (text, as names are)
        if os.lstat(folder).st_dev != os.lstat(target).st_dev:
            return True
        # One disk, seen as two (a bind mount).
        with files.opened(target, None) as descriptor:
            if descriptor is None or work.digest is None or files.find_writer(descriptor):
                return False
            body = files.read_again(descriptor, work.signature.size_bytes + 1)
            return files.digest(body) == work.digest

    def _lies_at(self, claim: Claim) -> str:
        """Where the file lies that is not put away yet."""
        aside = str(aside_of(self._root, claim))
        return aside if os.path.lexists(aside) else claim.path(self._root)

    def _make(self, folder: str) -> None:
        if folder not in self._made:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._made.add(folder)

    def _report(
        self, claim: Claim, signature: Signature, conclusion: Conclusion, path: Path
    ) -> None:
        sha256 = files.find_sha256(self._lies_at(claim))
        content = compose(claim, signature, conclusion, sha256=sha256, now_us=self._clock())
        files.write_over(path, content, temporary=_beside(path, claim))
        self._observe(Step.REPORT_WRITTEN)

    def tidy(self, claim: Claim, keep: Path | None) -> None:
        """Of a file that has gone from its place, only the outcome is left.

        Reports that were superseded go, those beside a file of this claim stay, as does the one
        on `keep`.
        """
        if not claim.reports:
            return
        extension = find_extension(claim.name) or ".json"
        with contextlib.suppress(OSError):  # no more than a report too many
            for place in claim.reports:
                path = Path(self._root) / place
                file = path.parent / (path.name.removesuffix(REPORT) + extension)
                if file != keep and not os.path.lexists(file):
                    remove_report(path, claim.id)
                    _beside(path, claim).unlink(missing_ok=True)
        self._observe(Step.REPORTS_TIDIED)


def put_back(root: str, claim: Claim, lies_at: str) -> None:
    """Move the claim's file to where it was found, or beside that. Raises OSError."""
    folder = os.path.dirname(claim.path(root))  # noqa: PTH120  (text, as names are)
    extension = find_extension(claim.base) or ""
    stem = claim.base[: len(claim.base) - len(extension)]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in (claim.base, f"{stem}-{claim.id[-8:]}{extension}", f"{claim.id}{extension}"):
        with contextlib.suppress(FileExistsError):
            files.move(lies_at, f"{folder}/{name}")
            return
    raise FileExistsError(errno.EEXIST, f"Every name is taken in {folder}")


def aside_of(root: str, claim: Claim) -> Path:
    """Where a file is set aside that is copied to another disk."""
    return Path(claim.path(root)).with_name(f".{claim.id}.aside")


class _Changed(Exception):
    """The file is not what was read any more, and lies where it lay, or beside that."""


class _Unmovable(Exception):
    """The file cannot leave its folder, for the reason that this is made of."""


def _is_as_read(work: Work, target: str) -> bool | None:
    """Whether the moved file is what was read; None while somebody has it open for writing.

    Raises OSError.
    """
    found = files.find_signature(target)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), target)
    if found.inode != work.signature.inode:
        return False
    with files.opened(target, work.descriptor) as descriptor:
        if descriptor is None:  # it cannot be opened, and was not when it was judged
            return found == work.signature
        if not work.is_open and files.find_writer(descriptor):
            return None
        if found != work.signature:
            return False
        if work.digest is None or time.time_ns() - found.mtime_ns >= FRESH_NS:
            return True
        return files.digest(files.read_again(descriptor, found.size_bytes)) == work.digest


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
    # Notes and reports say whose a file is, and anybody may have edited them.
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
