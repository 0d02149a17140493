"""Filing: files whose outcome is in the ledger get a report, are moved, and are checked again.

    ROOT/_done/YYYY-MM-DD/<account>/    ROOT/_held/<account>/    ROOT/_failed/<reason>/    ROOT/_duplicate/

Most done files have no report, so their folder says which account owns them (docs/decisions/0011).
A file may be replaced or written to after it was read. Once it is moved, no process can open it by
its old name, so it is compared then: another version goes back to where it came from, as a new file
(pitfalls I4).

Filing can be cut off at any step and repeated, with the same result.
"""

import contextlib
import errno
import json
import os
import time
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from pydantic.alias_generators import to_camel

from importer import files
from importer.claims import Claim
from importer.files import Signature, safe_stem, signature_of, split_extension
from importer.job import Job, ReadFile, Step
from importer.outcomes import Result, failed, issues_as_dicts
from resumes.clock import timestamp
from resumes.import_reasons import Reason, find_hint
from resumes.output_files import flush
from resumes.store.accounts import NAME
from resumes.store.import_ledger import FileOutcome
from resumes.watched_folder import note_filed, outcome_folder
from resumes.watched_names import REPORT, find_filed_extension

MARKER = "resumes_import_report"
"""A report's first field, by which it is recognized if it gets into the inbox (pitfalls I13)."""
VERSION = 1
DONE_HINT = (
    "Each resume in the file is stored. The warnings, if any, say what might be wrong with it. Older "
    "versions that it replaced, if any, are deleted."
)
MAX_REPORT_BYTES = 64 * 1024 * 1024


def compose(
    claim: Claim, signature: Signature, result: Result, *, sha256: str | None, now_us: int
) -> bytes:
    resume_id, items = result.resume_id, result.items
    is_duplicate = result.outcome is FileOutcome.DUPLICATE
    modified_at = None
    # Any process may have set the file's time, even to a year that datetime cannot hold.
    with contextlib.suppress(ValueError, OverflowError, OSError):
        modified_at = timestamp(signature.mtime_ns // 1_000)
    report: dict[str, Any] = {
        MARKER: VERSION,
        "outcome": result.outcome.value,
        **result.explanation(),
        "hint": find_hint(result.reason, claim.id) if result.reason else DONE_HINT,
        "issues": issues_as_dicts(result.issues),
        "warnings": issues_as_dicts(result.warnings),
        "replaced": result.replaced,
        "items": [item.as_item() for item in (items.listed() if items else ())],
        "itemCounts": items
        and {"total": items.total} | {end.value: items.counts[end] for end in FileOutcome},
        "skipped": result.skipped.as_dicts(),
        "skippedCount": result.skipped.count,
        **({"analysis": result.analysis.as_json()} if result.analysis else {}),
        "resumeId": None if is_duplicate else resume_id,
        "duplicateOf": resume_id if is_duplicate else None,
        "file": result.name_of(claim.name),
        "account": claim.account,
        "accountId": claim.account_id,
        "claimId": claim.id,
        "sizeBytes": signature.size_bytes,
        "sha256": sha256,
        "modifiedAt": modified_at,
        "claimedAt": claim.claimed_at,
        "finishedAt": timestamp(now_us),
    }
    return json.dumps(report, indent=2, ensure_ascii=False).encode(errors="replace") + b"\n"


def parse_report(body: bytes) -> dict[str, Any]:
    """Return the report in these bytes; empty if they are not a report of ours."""
    if MARKER.encode() in body[:200]:
        with contextlib.suppress(ValueError, RecursionError):
            report = json.loads(body)
            if isinstance(report, dict) and report.get(MARKER) == VERSION:
                # 1.0.0 wrote `claim_id`.
                return {MARKER: VERSION} | {
                    to_camel(name): value for name, value in report.items() if name != MARKER
                }
    return {}


def load_report(path: Path) -> dict[str, Any]:
    """Return the report at the path; empty if there is no report of ours."""
    return parse_report(files.find_body(path, MAX_REPORT_BYTES))


def report_path(file: str | Path) -> Path:
    path = Path(file)
    return path.with_name(split_extension(path.name)[0] + REPORT)


ALL_RESULTS = (
    *(Result(outcome) for outcome in FileOutcome if outcome is not FileOutcome.FAILED),
    *(failed(reason, "") for reason in Reason),
)
"""Every result of a file, as far as the folder that it is filed in depends on it."""
FRESH_NS = 3_000_000_000
"""A file that was changed less than this before may have been changed again within the same tick
of the file system's clock, so its bytes are compared too."""
OF_THE_FILE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.ENAMETOOLONG, errno.EROFS})
"""Errors that concern a file or its folder alone, so that work on others can continue."""
OF_THE_PROCESS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of opening that say nothing about the file."""
NO_ROOM_LEFT = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a copy that concern this file alone: others may be smaller, or need no copy."""
NO_ROOM = "there is not enough room to copy it to another disk"
BLOCK_BYTES = 4096
"""The block size of copies: whole blocks of zeros become holes."""


class FileState(StrEnum):
    """The result of filing a file."""

    FILED = "filed"
    GONE = "gone"
    """It was moved away or removed."""
    CHANGED = "changed"
    """It is where it was found, or next to that, with other content than was checked."""
    WRITTEN_TO = "written to"
    """It was filed, and a process still has it open for writing."""
    UNRETURNED = "unreturned"
    """It was filed with other content than was checked, and cannot be moved back."""
    UNMOVABLE = "unmovable"
    """It was not moved, for a reason that concerns it or its folder alone."""
    KEPT = "kept"
    """It was not moved, because it is too large to be copied to the disk of the outcomes."""
    STUCK = "stuck"
    """It was not moved, for a reason that concerns all files."""


class FilingResult(NamedTuple):
    """Where a file is now, and the error that prevented more."""

    state: FileState
    target: str = ""
    problem: str = ""


class Filer:
    """Moves imported files into the outcome folders below one ROOT."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._max_bytes = max(job.options.max_file_bytes, job.options.format.max_bytes)
        self._made: set[str] = set()

    def file_away(self, work: ReadFile, result: Result) -> FilingResult:
        """Move the file, as it was read, into its outcome's folder, with its report."""
        claim = work.claim
        try:
            if claim.is_return and claim.source in iter_places(claim, result):
                # It stays even if it was changed: the next reimport reads it again.
                target = claim.path(self._job.root)
                self._report(work, result, target)
                _list(claim, result, os.path.dirname(target))  # noqa: PTH120
                return FilingResult(FileState.FILED, target)
            target, is_copied = self._move(work, result)
        except FileNotFoundError:
            if os.path.lexists(self._current_path(claim)):
                return FilingResult(FileState.STUCK, problem=os.strerror(errno.ENOENT))
            if not claim.is_return:  # else its disk may be detached
                _list(claim, result, f"{self._job.root}/{folder_of(claim, result)}")
            return FilingResult(FileState.GONE)
        except _NotMoved as error:
            return error.filed
        except OSError as error:
            return FilingResult(FileState.STUCK, problem=files.describe(error))
        if is_copied:  # no other process has the copy open
            return FilingResult(FileState.FILED, target)
        self._job.observe(Step.MOVED)
        return self.check(work, target)

    def check(self, work: ReadFile, target: str) -> FilingResult:
        """Leave the moved file where it is if it is what was read; else move it back. It gets another name
        if there is a new file at its old path."""
        try:
            is_as_read = _is_as_read(work, target)
            if is_as_read is None:
                return FilingResult(FileState.WRITTEN_TO, target)
            if not is_as_read and not self._is_copy(work, target):
                put_back(self._job.root, work.claim, target)
                self._job.observe(Step.MOVED_BACK)
                return FilingResult(FileState.CHANGED)
        except FileNotFoundError:
            pass  # it was taken away already; it was imported
        except OSError as error:
            return FilingResult(FileState.UNRETURNED, target, files.describe(error))
        return FilingResult(FileState.FILED, target)

    def _move(self, work: ReadFile, result: Result) -> tuple[str, bool]:
        """Return where the file is now, and whether it was copied there from another disk."""
        claim = work.claim
        folder = f"{self._job.root}/{folder_of(claim, result)}"
        was_made = folder in self._made
        if not was_made:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._made.add(folder)
        if result.needs_report and _are_on_two_disks(claim.path(self._job.root), folder):
            if work.signature.size_bytes > self._max_bytes:
                self._report_kept(work, result, folder)
            self._check_copyable(work, folder)  # before the report is written
        for name in _names(claim, result):
            target = f"{folder}/{name}"
            try:
                if result.needs_report:
                    if self._is_taken(claim, target):
                        continue
                    self._report(work, result, target)
                is_copied = self._rename(work, target)
                _list(claim, result, folder)
                return target, is_copied
            except FileExistsError:
                continue
            except FileNotFoundError:
                self._made.discard(folder)
                if was_made and os.path.lexists(self._current_path(claim)):
                    return self._move(work, result)  # the folder was removed as empty
                raise
        raise FileExistsError(errno.EEXIST, f"Every name for {claim.id} is taken in {folder}")

    def _is_taken(self, claim: Claim, target: str) -> bool:
        """Return whether there is another file at the target, or at its report's path."""
        if os.path.lexists(target) and not files.is_copy(self._current_path(claim), target):
            return True
        report = report_path(target)
        return os.path.lexists(report) and load_report(report).get("claimId") != claim.id

    def _rename(self, work: ReadFile, target: str) -> bool:
        """Move the file; return whether it had to be copied."""
        claim = work.claim
        folder = self._source_folder(claim)
        try:
            files.move(claim.base, target, source_fd=folder)
            return False
        except OSError as error:
            aside = aside_of(self._job.root, claim)
            to = os.path.dirname(target)  # noqa: PTH120  (text, as names are)
            if not os.path.lexists(aside):  # else its old name is that of another file
                if error.errno in OF_THE_FILE and os.access(to, os.W_OK, effective_ids=True):
                    raise _NotMoved(FileState.UNMOVABLE, files.describe(error)) from error
                if error.errno != errno.EXDEV:
                    raise
                # The outcome folders or this folder are on another disk.
                with _in_its_folder():
                    os.stat(claim.base, dir_fd=folder, follow_symlinks=False)  # it may be gone
                if not os.access(claim.base, os.R_OK, dir_fd=folder, effective_ids=True):
                    raise _NotMoved(FileState.UNMOVABLE, os.strerror(errno.EACCES)) from None
                self._check_copyable(work, to)
                with _in_its_folder():
                    files.move(claim.base, aside, source_fd=folder)
                self._job.observe(Step.SET_ASIDE)
        self._copy(work, aside, Path(target))
        return True

    def _source_folder(self, claim: Claim) -> int:
        """Return a descriptor of the folder that the file is in. Raises FileNotFoundError if the file is
        gone, and _NotMoved for an error of this folder alone."""
        try:
            return self._job.folders.open(claim.folder(self._job.root))
        except OSError as error:
            is_gone = error.errno == errno.ENOENT and not os.path.lexists(self._current_path(claim))
            if is_gone or error.errno in OF_THE_PROCESS:
                raise
            raise _NotMoved(FileState.UNMOVABLE, files.describe(error)) from error

    def _check_copyable(self, work: ReadFile, to: str) -> None:
        """Raise _NotMoved if the file is too large to be copied into the folder. A sparse file may be far
        larger than the space that it takes in the inbox."""
        disk = os.statvfs(to)
        # The floor is meant for the store's disk; this disk may be smaller than the floor.
        floor_bytes = min(self._job.options.disk_floor_bytes, disk.f_blocks * disk.f_frsize // 10)
        size_bytes = work.signature.size_bytes
        if size_bytes > self._max_bytes:
            state, problem = FileState.KEPT, "it is too large to be moved to another disk"
        elif size_bytes + floor_bytes > disk.f_bavail * disk.f_frsize:
            state, problem = FileState.UNMOVABLE, NO_ROOM
        else:
            return
        aside = aside_of(self._job.root, work.claim)
        if os.path.lexists(aside):
            with _in_its_folder():
                put_back(self._job.root, work.claim, aside)
        raise _NotMoved(state, problem)

    def _report_kept(self, work: ReadFile, result: Result, folder: str) -> None:
        """Write the report on a file that stays in the inbox, unless there is one."""
        targets = (f"{folder}/{name}" for name in _names(work.claim, result))
        target = next((path for path in targets if not self._is_taken(work.claim, path)), None)
        if target is not None and not os.path.lexists(report_path(target)):
            self._report(work, result, target)

    def _copy(self, work: ReadFile, aside: Path, target: Path) -> None:
        """Copy a file that was set aside to another disk. It stays aside until the copy is complete and
        known to be of what was read."""
        if not files.is_copy(aside, target):
            self._check_copyable(work, str(target.parent))
            temporary = _beside(target, work.claim)
            self._check_aside(work, aside)
            with _in_its_folder():
                source = files.open_file(aside)
            try:
                with _in_its_folder(NO_ROOM_LEFT, NO_ROOM):
                    _copy_as_read(work, source, temporary)
                    self._check_aside(work, aside)
                    files.move(temporary, target)
            finally:
                os.close(source)
                temporary.unlink(missing_ok=True)
            flush(target.parent)
        self._job.observe(Step.COPIED)
        with _in_its_folder():
            aside.unlink()

    def _check_aside(self, work: ReadFile, aside: Path) -> None:
        match _is_as_read(work, aside):
            case None:
                raise _NotMoved(FileState.UNMOVABLE, "it is open for writing")
            case False:
                with _in_its_folder():
                    put_back(self._job.root, work.claim, aside)
                raise _NotMoved(FileState.CHANGED)

    def _is_copy(self, work: ReadFile, target: str) -> bool:
        """Return whether the target, which is not the file that was read, is a copy of it."""
        with contextlib.suppress(FileNotFoundError):  # the folder may be gone
            if os.lstat(work.claim.folder(self._job.root)).st_dev != os.lstat(target).st_dev:
                return True
        # A bind mount: one disk that looks like two.
        try:
            with os.fdopen(files.open_file(target), "rb") as file:
                if work.digest is None or files.find_writer(file.fileno()):
                    return False
                return files.digest(file.read(work.signature.size_bytes + 1)) == work.digest
        except OSError:
            return False

    def _current_path(self, claim: Claim) -> str:
        aside = str(aside_of(self._job.root, claim))
        return aside if os.path.lexists(aside) else claim.path(self._job.root)

    def _report(self, work: ReadFile, result: Result, target: str) -> None:
        claim = work.claim
        source = self._current_path(claim)
        sha256 = files.find_sha256(source, self._max_bytes)  # a larger file may be sparse
        if sha256 is not None and _is_as_read(work, source) is False:
            sha256 = ""  # matches no content, so the next reimport starts over
        content = compose(
            claim, work.signature, result, sha256=sha256, now_us=self._job.store.clock()
        )
        path = report_path(target)
        files.write_over(path, content, temporary=_beside(path, claim))
        self._job.observe(Step.REPORT_WRITTEN)

    def tidy(self, claim: Claim, ends: Iterable[Result] = ALL_RESULTS) -> None:
        """Remove a claim's reports that have no file next to them: the one that it was retried with, and
        those that one of these results would have written."""
        places = [place for end in ends for place in iter_places(claim, end)]
        if claim.is_return:
            places.append(claim.source)
        with contextlib.suppress(OSError):  # a report too many does no harm
            for file in (f"{self._job.root}/{place}" for place in places):
                if not os.path.lexists(file):
                    path = report_path(file)
                    if load_report(path).get("claimId") == claim.id:
                        path.unlink()
                    _beside(path, claim).unlink(missing_ok=True)
        self._job.observe(Step.REPORTS_TIDIED)


def put_back(root: str, claim: Claim, source: str | Path) -> None:
    """Move the claim's file back to where it was found, or next to that. Raises OSError."""
    folder = claim.folder(root)
    stem, extension = split_extension(claim.base)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in (claim.base, f"{stem}-{claim.id[-8:]}{extension}", f"{claim.id}{extension}"):
        with contextlib.suppress(FileExistsError):
            files.move(source, f"{folder}/{name}")
            return
    raise FileExistsError(errno.EEXIST, f"Every name is taken in {folder}")


def aside_of(root: str, claim: Claim) -> Path:
    """Return the path at which a file is set aside to be copied to another disk."""
    return Path(claim.path(root)).with_name(f".{claim.id}.aside")


class _NotMoved(Exception):
    """Raised when the file was not filed; it is where it was found, or next to that."""

    def __init__(self, state: FileState, problem: str = "") -> None:
        self.filed = FilingResult(state, problem=problem)


@contextlib.contextmanager
def _in_its_folder(
    errors: Collection[int] | None = None, problem: str | None = None
) -> Iterator[None]:
    """Turn an error of the block, or only these errors, into one of the file's own folder, unless the
    file is gone."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if errors is not None and error.errno not in errors:
            raise
        raise _NotMoved(FileState.UNMOVABLE, problem or files.describe(error)) from error


def _copy_as_read(work: ReadFile, source: int, target: Path) -> None:
    """Copy the bytes that were read of an open file to a new one, and flush it to the disk.

    Blocks of zeros become holes, since the file may be sparse. Of its mode only the permissions are
    copied, as the copy is ours. Raises _NotMoved if it is another file by now, or is shorter;
    OSError if the target cannot be written.
    """
    with _in_its_folder():
        status = os.fstat(source)
    target.unlink(missing_ok=True)
    with target.open("xb") as copy:
        left_bytes = work.signature.size_bytes
        while left_bytes and signature_of(status) == work.signature:
            with _in_its_folder():
                block = os.read(source, min(BLOCK_BYTES, left_bytes))
            if not block:
                break
            left_bytes -= len(block)
            if block.strip(b"\0"):
                copy.write(block)
            else:
                copy.seek(len(block), os.SEEK_CUR)
        if left_bytes or signature_of(status) != work.signature:
            raise _NotMoved(FileState.UNMOVABLE, "it is being changed")
        copy.truncate(work.signature.size_bytes)
        copy.flush()
        with contextlib.suppress(OSError, OverflowError):  # the content is what counts
            os.fchmod(copy.fileno(), status.st_mode & 0o777)
            os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
        os.fsync(copy.fileno())


def _are_on_two_disks(path: str, folder: str) -> bool:
    """Return whether that is known of a file at its path and a folder."""
    with contextlib.suppress(OSError):
        return os.lstat(path).st_dev != os.stat(folder).st_dev  # noqa: PTH116  (text, as names are)
    return False


def _list(claim: Claim, result: Result, folder: str) -> None:
    """List a failed file in its folder, so that its removal is noticed later."""
    if result.outcome is FileOutcome.FAILED:
        note_filed(folder, claim.id)


def _is_as_read(work: ReadFile, target: str | Path) -> bool | None:
    """Return whether the file is what was read; None while a process has it open for writing. Raises
    OSError."""
    found = files.find_signature(target)
    if found is None:
        raise FileNotFoundError
    if found.inode != work.signature.inode:
        return False
    if work.descriptor is not None:
        return _is_open_as_read(work, found, work.descriptor)
    try:
        descriptor = files.open_file(target)
    except OSError:  # as when it was checked
        return found == work.signature
    try:
        return _is_open_as_read(work, found, descriptor)
    finally:
        os.close(descriptor)


def _is_open_as_read(work: ReadFile, found: Signature, descriptor: int) -> bool | None:
    if not work.is_open and files.find_writer(descriptor):
        return None
    if found != work.signature:
        return False
    if work.digest is None or time.time_ns() - found.mtime_ns >= FRESH_NS:
        return True
    return files.digest(os.pread(descriptor, found.size_bytes, 0)) == work.digest


def _beside(path: Path, claim: Claim) -> Path:
    """Return a hidden name in the path's folder, for a file that is renamed when it is complete."""
    return path.with_name(f".{claim.id}.part")


def iter_places(claim: Claim, result: Result) -> Iterator[str]:
    """Yield the paths below ROOT that such a file may be filed as, likelier paths first."""
    folder = folder_of(claim, result)
    for name in _names(claim, result):
        yield f"{folder}/{name}"


def folder_of(claim: Claim, result: Result) -> str:
    # The name comes from a note or a report, which may have been edited.
    account = claim.account if NAME.fullmatch(claim.account) else claim.account_id
    reason = result.reason or Reason.INTERNAL_ERROR
    return outcome_folder(result.outcome, reason, account, claim.claimed_at)


def _names(claim: Claim, result: Result) -> Iterator[str]:
    stem = safe_stem(result.name_of(claim.name))
    extension = find_filed_extension(claim.name) or ".json"
    if result.outcome is FileOutcome.HELD:
        # Held files sort by claim, and name the account by its id (pitfalls I7, S14).
        # Only a report may end as reports do.
        yield f"{claim.id}-{claim.account_id}-{stem.replace('.report', '_report')}{extension}"
        return
    yield f"{stem}-{claim.id[-8:]}{extension}"
    yield f"{stem}-{claim.id}{extension}"
