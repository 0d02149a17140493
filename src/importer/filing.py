"""Filing: files whose outcome is in the ledger get a report, are moved and are checked again.

    ROOT/_done/YYYY-MM-DD/<account>/    ROOT/_held/<account>/    ROOT/_failed/<reason>/    ROOT/_duplicate/

Most done files have no report, so the folder's name identifies their account (docs/decisions/0011).
A file may be replaced or written to after it was read. Once it is moved, no process can open it by
its old name, so its content is checked again then. If it has changed, it is moved back to the inbox
as a new file (pitfalls I4).

Filing can be interrupted at any step and repeated with the same result.
"""

import contextlib
import errno
import json
import os
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from importer import files
from importer.claims import Claim, File, State
from importer.files import Signature, safe_stem, split_extension
from importer.job import Job, Step
from importer.outcomes import Result, failed, issues_as_dicts
from resumes.clock import timestamp
from resumes.import_reasons import Reason, find_hint
from resumes.output_files import flush
from resumes.store.accounts import NAME
from resumes.store.import_ledger import FileOutcome
from resumes.watched_folder import note_filed, outcome_folder
from resumes.watched_names import REPORT, find_filed_extension

MARKER = "resumes_import_report"
"""The first field of a report, which identifies a report in the inbox (pitfalls I13)."""
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
    # Any process may have set the file's time, even to a year that datetime does not support.
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
    """Return the report in these bytes, or an empty dictionary if the importer did not write it."""
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
    """Return the report at the path, or an empty dictionary if the importer did not write it."""
    return parse_report(files.find_body(path, MAX_REPORT_BYTES))


def report_path(file: str | Path) -> Path:
    path = Path(file)
    return path.with_name(split_extension(path.name)[0] + REPORT)


ALL_RESULTS = (
    *(Result(outcome) for outcome in FileOutcome if outcome is not FileOutcome.FAILED),
    *(failed(reason, "") for reason in Reason),
)
"""A result for each folder in which a file can be filed."""
FRESH_NS = 3_000_000_000
"""A file that was changed less than this before may have been changed again within the same tick
of the file system's clock, so its bytes are compared too."""
OF_THE_FILE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.ENAMETOOLONG, errno.EROFS})
"""Errors that concern only one file or its folder, so that work on other files can continue."""
OF_THE_PROCESS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of opening that say nothing about the file."""
NO_ROOM_LEFT = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Copy errors that concern only one file: others may be smaller, or need no copy."""
NO_ROOM = "there is not enough room to copy it to another disk"
BLOCK_BYTES = 4096
"""The block size of copies: blocks that contain only zeros become holes."""


class Filer:
    """Moves imported files into the outcome folders below one ROOT."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._max_bytes = max(job.options.max_file_bytes, job.options.format.max_bytes)

    def file_away(self, file: File, result: Result) -> None:
        """Move the file and its report into the outcome folder if the file is unchanged, then check
        it again. Set the file's state, its target if it still exists, and the error that stopped
        the move, if any."""
        file.error = None
        try:
            file.state = self._check(file) if file.target else self._move(file, result)
        except _NotFiled as error:
            file.state, file.error = error.state, error.error
        except OSError as error:
            file.state, file.error = State.TROUBLE, error

    def _move(self, file: File, result: Result) -> State:
        claim = file.claim
        path, target = claim.path(self._job.root), ""
        folder = f"{self._job.root}/{folder_of(claim, result)}"
        is_moved = False
        try:
            if claim.is_return and claim.source in iter_places(claim, result):
                # The file stays even if it was changed: the next reimport reads it again.
                self._report(file, result, path)
                target = path
            else:
                target, is_moved = self._place(file, result, folder)
        except FileNotFoundError:
            if os.path.lexists(self._current_path(claim)):
                raise
        # Note it, so that its removal is noticed. A returned file may be on a detached disk.
        if result.outcome is FileOutcome.FAILED and (target or not claim.is_return):
            note_filed(folder, claim.id)
        file.target = target
        if not is_moved:  # no other process has a copy open
            return State.FILED
        self._job.observe(Step.MOVED)
        return self._check(file)

    def _check(self, file: File) -> State:
        """Leave the moved file at the target if it is unchanged; otherwise move it back. It gets
        another name if there is a new file at its old path."""
        try:
            is_as_read = _is_as_read(file, file.target)
            if is_as_read is None:
                return State.OPEN
            if not is_as_read and not self._is_copy(file, file.target):
                put_back(self._job.root, file.claim, file.target)
                self._job.observe(Step.MOVED_BACK)
                return State.CHANGED
        except FileNotFoundError:
            pass  # it was imported, and then removed
        except OSError as error:
            raise _NotFiled(State.UNRETURNED, error) from error
        return State.FILED

    def _place(self, file: File, result: Result, folder: str) -> tuple[str, bool]:
        """Return where the file is now, and whether it was moved there, not copied from another disk."""
        claim = file.claim
        if not os.path.isdir(folder):  # noqa: PTH112  (text, as names are)
            Path(folder).mkdir(parents=True, exist_ok=True)
        is_too_large = file.signature.size_bytes > self._max_bytes  # it stays, with its report
        path = claim.path(self._job.root)
        if result.needs_report and not is_too_large and _are_on_two_disks(path, folder):
            self._check_copyable(file, folder)  # before the report is written
        for name in _names(claim, result):
            target = f"{folder}/{name}"
            with contextlib.suppress(FileExistsError):
                if result.needs_report:
                    if self._is_taken(claim, target):
                        continue
                    # A file that stays in the inbox has one already.
                    if not (file.is_kept and os.path.lexists(report_path(target))):
                        self._report(file, result, target)
                return target, self._rename(file, target)
        raise FileExistsError(errno.EEXIST, f"Every name for {claim.id} is taken in {folder}")

    def _is_taken(self, claim: Claim, target: str) -> bool:
        """Return whether there is another file at the target, or at its report's path."""
        if os.path.lexists(target) and not files.is_copy(self._current_path(claim), target):
            return True
        report = report_path(target)
        return os.path.lexists(report) and load_report(report).get("claimId") != claim.id

    def _rename(self, file: File, target: str) -> bool:
        """Move the file; return whether it was not copied."""
        claim = file.claim
        folder = self._source_folder(claim)
        try:
            files.move(claim.base, target, source_fd=folder)
            return True
        except OSError as error:
            aside = aside_of(self._job.root, claim)
            to = os.path.dirname(target)  # noqa: PTH120  (text, as names are)
            if not os.path.lexists(aside):  # else its old name is that of another file
                if error.errno in OF_THE_FILE and os.access(to, os.W_OK, effective_ids=True):
                    raise _NotFiled(State.STUCK, error) from error
                if error.errno != errno.EXDEV:
                    raise
                # The outcome folders or this folder are on another disk.
                with _in_its_folder():
                    os.stat(claim.base, dir_fd=folder, follow_symlinks=False)  # it may be gone
                self._check_copyable(file, to)
                with _in_its_folder():
                    if not os.access(claim.base, os.R_OK, dir_fd=folder, effective_ids=True):
                        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None
                    files.move(claim.base, aside, source_fd=folder)
                self._job.observe(Step.SET_ASIDE)
        self._copy(file, aside, Path(target))
        return False

    def _source_folder(self, claim: Claim) -> int:
        """Return a descriptor of the folder that the file is in. Raises FileNotFoundError if the file is
        gone, and _NotFiled for an error of this folder alone."""
        try:
            return self._job.folders.open(claim.folder(self._job.root))
        except OSError as error:
            is_gone = error.errno == errno.ENOENT and not os.path.lexists(self._current_path(claim))
            if is_gone or error.errno in OF_THE_PROCESS:
                raise
            raise _NotFiled(State.STUCK, error) from error

    def _check_copyable(self, file: File, to: str) -> None:
        """Raise _NotFiled if the file is too large to be copied into the folder. A sparse file may be far
        larger than the space that it takes in the inbox."""
        disk = os.statvfs(to)
        # The minimum free space is meant for the store's disk; this disk may be smaller than that.
        floor_bytes = min(self._job.options.disk_floor_bytes, disk.f_blocks * disk.f_frsize // 10)
        size_bytes = file.signature.size_bytes
        if size_bytes > self._max_bytes:
            state, problem = State.KEPT, "it is too large to be moved to another disk"
        elif size_bytes + floor_bytes > disk.f_bavail * disk.f_frsize:
            state, problem = State.STUCK, NO_ROOM
        else:
            return
        aside = aside_of(self._job.root, file.claim)
        if os.path.lexists(aside):
            with _in_its_folder():
                put_back(self._job.root, file.claim, aside)
        raise _NotFiled(state, OSError(errno.ENOSPC, problem))

    def _copy(self, file: File, aside: Path, target: Path) -> None:
        """Copy a file that was set aside to another disk. It stays aside until the copy is complete and
        known to be of what was read."""
        if not files.is_copy(aside, target):
            self._check_copyable(file, str(target.parent))
            temporary = _beside(target, file.claim)
            self._check_aside(file, aside)
            with _in_its_folder():
                source = files.open_file(aside)
            try:
                with _in_its_folder(NO_ROOM_LEFT, NO_ROOM):
                    _copy_as_read(file, source, temporary)
                    self._check_aside(file, aside)
                    files.move(temporary, target)
            finally:
                os.close(source)
                temporary.unlink(missing_ok=True)
            flush(target.parent)
        self._job.observe(Step.COPIED)
        with _in_its_folder():
            aside.unlink()

    def _check_aside(self, file: File, aside: Path) -> None:
        match _is_as_read(file, aside):
            case None:
                raise _NotFiled(State.STUCK, OSError(errno.EBUSY, "it is open for writing"))
            case False:
                with _in_its_folder():
                    put_back(self._job.root, file.claim, aside)
                raise _NotFiled(State.CHANGED)

    def _is_copy(self, file: File, target: str) -> bool:
        """Return whether the target, which is not the file that was read, is a copy of it."""
        with contextlib.suppress(FileNotFoundError):  # the folder may be gone
            if os.lstat(file.claim.folder(self._job.root)).st_dev != os.lstat(target).st_dev:
                return True
        # Files are also copied between bind mounts of one disk.
        try:
            with os.fdopen(files.open_file(target), "rb") as copy:
                if file.digest is None or files.find_writer(copy.fileno()):
                    return False
                return files.digest(copy.read(file.signature.size_bytes + 1)) == file.digest
        except OSError:
            return False

    def _current_path(self, claim: Claim) -> str:
        aside = str(aside_of(self._job.root, claim))
        return aside if os.path.lexists(aside) else claim.path(self._job.root)

    def _report(self, file: File, result: Result, target: str) -> None:
        claim = file.claim
        source = self._current_path(claim)
        sha256 = files.find_sha256(source, self._max_bytes)  # a larger file may be sparse
        if sha256 is not None and _is_as_read(file, source) is False:
            sha256 = ""  # matches no content, so that the next reimport starts from the beginning
        content = compose(
            claim, file.signature, result, sha256=sha256, now_us=self._job.store.clock()
        )
        path = report_path(target)
        files.write_over(path, content, temporary=_beside(path, claim))
        self._job.observe(Step.REPORT_WRITTEN)

    def tidy(self, claim: Claim, ends: Iterable[Result] = ALL_RESULTS) -> None:
        """Remove a claim's reports that have no file next to them: the report from before a retry,
        and reports that one of these results would have written."""
        places = [place for end in ends for place in iter_places(claim, end)]
        if claim.is_return:
            places.append(claim.source)
        with contextlib.suppress(OSError):  # a leftover report is harmless
            for file in (f"{self._job.root}/{place}" for place in places):
                if not os.path.lexists(file):
                    path = report_path(file)
                    if load_report(path).get("claimId") == claim.id:
                        path.unlink()
                    _beside(path, claim).unlink(missing_ok=True)
        self._job.observe(Step.REPORTS_TIDIED)


def put_back(root: str, claim: Claim, source: str | Path) -> None:
    """Move the claim's file back to its old path, or to a new name next to it. Raises OSError."""
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


class _NotFiled(Exception):
    """Raised when the file was not filed, with its new state and the error."""

    def __init__(self, state: State, error: OSError | None = None) -> None:
        self.state, self.error = state, error


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
        shown = OSError(error.errno, problem) if problem else error
        raise _NotFiled(State.STUCK, shown) from error


def _copy_as_read(file: File, source: int, target: Path) -> None:
    """Copy the bytes that were read from an open file to a new file, and flush it to the disk.

    Blocks of zeros become holes, since the file may be sparse. Only the permissions are copied,
    because this process owns the copy. Raises OSError if the target cannot be written.
    """
    with _in_its_folder():
        status = os.fstat(source)
    target.unlink(missing_ok=True)
    with target.open("xb") as copy:
        left_bytes = file.signature.size_bytes
        while left_bytes:
            with _in_its_folder():
                block = os.read(source, min(BLOCK_BYTES, left_bytes))
            if not block:
                break  # the file was truncated; the check after the copy finds this
            left_bytes -= len(block)
            if block.strip(b"\0"):
                copy.write(block)
            else:
                copy.seek(len(block), os.SEEK_CUR)
        copy.truncate()
        copy.flush()
        with contextlib.suppress(OSError, OverflowError):  # only the content is essential
            os.fchmod(copy.fileno(), status.st_mode & 0o777)
            os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
        os.fsync(copy.fileno())


def _are_on_two_disks(path: str, folder: str) -> bool:
    """Return whether that is known of a file at its path and a folder."""
    with contextlib.suppress(OSError):
        return os.lstat(path).st_dev != os.stat(folder).st_dev  # noqa: PTH116  (text, as names are)
    return False


def _is_as_read(file: File, target: str | Path) -> bool | None:
    """Return whether the file is unchanged since it was read, or None while a process has it open
    for writing. Raises OSError."""
    found = files.find_signature(target)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if found.inode != file.signature.inode:
        return False
    if file.descriptor is not None:
        return _is_open_as_read(file, found, file.descriptor)
    try:
        descriptor = files.open_file(target)
    except OSError:  # the file could not be opened when it was read, either
        return found == file.signature
    try:
        return _is_open_as_read(file, found, descriptor)
    finally:
        os.close(descriptor)


def _is_open_as_read(file: File, found: Signature, descriptor: int) -> bool | None:
    if not file.is_open and files.find_writer(descriptor):
        return None
    if found != file.signature:
        return False
    if file.digest is None or time.time_ns() - found.mtime_ns >= FRESH_NS:
        return True
    return files.digest(os.pread(descriptor, found.size_bytes, 0)) == file.digest


def _beside(path: Path, claim: Claim) -> Path:
    """Return a hidden path next to this one, for a file that is renamed when it is complete."""
    return path.with_name(f".{claim.id}.part")


def iter_places(claim: Claim, result: Result) -> Iterator[str]:
    """Yield the possible paths of a file with this result below ROOT, likelier paths first."""
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
