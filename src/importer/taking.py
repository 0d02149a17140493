"""Taking files: tried where they lie, claimed by rename, and looked at once more.

    journal      what the files of the batch are called and whose they are, on the disk
    try          a whole valid resume at once; anything else once it was quiet (pitfalls I3)
    claim        rename into the workspace, under a name that nobody else uses
    look again   still what was read, and nobody writing to it (I4)

Works in one workspace and knows neither store nor clock, so that it runs in the importer's own
process or in another beside it.
"""

import contextlib
import errno
import math
import os
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from importer import journals, judging, moves, reading
from importer.claims import Claim
from importer.journals import Journal
from importer.outcomes import Refusal
from importer.reading import Signature
from importer.steps import Observer, Step
from importer.trying import Known, Trial, Tried
from importer.workspaces import Workspace
from resumes.analyzer import Resume

OF_THE_FILE = frozenset(
    {errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.ENAMETOOLONG, errno.EROFS}
)
"""Errors that keep one file or folder from being claimed; with others no claim is possible."""

OF_THE_PROCESS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of opening that say nothing of the file."""

ATTEMPTS = 3
"""A file that ended the importer each time is not read for a third time alone (pitfalls I10)."""


class Candidate(NamedTuple):
    """A file to take, under a claim that is about to be. `path` is text with surrogates.

    `is_alone`: it may have ended an importer; `is_return`: it was put away before, and is taken
    up again as it is.
    """

    claim: Claim
    path: str
    known: Known | None = None
    is_alone: bool = False
    is_return: bool = False


class Again(NamedTuple):
    """A claimed file that settles, to be tried again where it lies."""

    claim: Claim
    known: Known | None = None
    is_alone: bool = False


class Taken(NamedTuple):
    """A file that is ours. Unless `is_final` it settles in the workspace."""

    claim_id: str
    signature: Signature
    verdict: Resume | Refusal | None
    digest: bytes | None
    is_final: bool


class Why(StrEnum):
    """Why a file was not taken."""

    GONE = "gone"
    SETTLING = "settling"
    REPORT = "report"
    STUCK = "stuck"
    TROUBLE = "trouble"


class Left(NamedTuple):
    """A file that is not ours. `error` is the system's, for those that are stuck or in trouble:
    it concerns this file or its folder, or every file."""

    claim_id: str
    path: str
    why: Why
    signature: Signature | None = None
    error: OSError | None = None


class Mine(NamedTuple):
    """A claim of this workspace, the journal that it stands in, and its file as last read."""

    claim: Claim
    journal: Journal
    signature: Signature | None = None


class Taker:
    """Takes files into one workspace."""

    def __init__(self, workspace: Workspace, trial: Trial, observe: Observer) -> None:
        self.workspace = workspace
        self._trial = trial
        self._observe = observe
        self._mine: dict[str, Mine] = {}
        self._made: set[str] = set()
        self._sources: dict[str, int] = {}

    def take(self, candidates: Sequence[Candidate]) -> list[Taken | Left]:
        """Those that are ready are ours; one answer each, in order.

        Raises OSError when no file can be claimed at all, and has changed nothing then.
        """
        claims = [one.claim for one in candidates]
        self._make_folders(claims)
        journal = journals.write(self.workspace.path, claims)
        self._observe(Step.JOURNAL_WRITTEN)
        try:
            answers = [self._take(one, journal) for one in candidates]
        finally:
            self._close_sources()
        journal.end_reading(
            (answer.claim_id, answer.signature) for answer in answers if isinstance(answer, Taken)
        )
        self._observe(Step.READ)
        for claim, answer in zip(claims, answers, strict=True):
            if isinstance(answer, Taken):
                self._mine[claim.id] = Mine(claim, journal, answer.signature)
            else:
                journal.settle(claim.id)
        return answers

    def judge(self, requests: Iterable[Again]) -> list[Taken | Left]:
        """The claimed files, tried again where they lie; one answer each, in order."""
        return [self._judge(request) for request in requests]

    def renew(self, claim_id: str, new_id: str) -> Claim:
        """A claimed file that changed after it was committed is a file of its own, and settles.

        Raises OSError; it keeps its old claim then.
        """
        claim = self._mine[claim_id].claim
        renewed = claim._replace(id=new_id, reports=())
        journal = journals.write(self.workspace.path, [renewed])
        journal.end_reading()
        try:
            moves.move(claim.path, renewed.path)
        except OSError:
            journal.settle(new_id)
            raise
        self._mine[new_id] = Mine(renewed, journal)
        self.settle(claim_id)
        return renewed

    def find(self, claim_id: str) -> Mine | None:
        """What is known of a claim; None when nothing is left of it here."""
        return self._mine.get(claim_id)

    def adopt(self, claim: Claim, journal: Journal, signature: Signature | None = None) -> None:
        """A claim of an importer that is gone, which stands in its journal, is ours.

        `signature` is that of its file when it was last read, if that is known.
        """
        signature = signature or reading.find_signature(claim.path)
        self._mine[claim.id] = Mine(claim, journal, signature)

    def end_attempts(self) -> None:
        """Files that are being unpacked did not end this importer: it ends in good order."""
        for claim, journal, _ in self._mine.values():
            if self._trial.leaves_unread(claim.name) and os.path.lexists(claim.path):
                journal.end(claim)

    def replace(self, claim: Claim) -> None:
        """The claim is known as it is now."""
        self._mine[claim.id] = self._mine[claim.id]._replace(claim=claim)

    def begin(self, claim: Claim) -> None:
        """The claimed file is about to be unpacked, and counts as deadly until it is put away."""
        self.replace(claim)
        self._mine[claim.id].journal.begin(claim)

    def settle(self, claim_id: str) -> None:
        """Of the claim nothing is left but its outcome."""
        mine = self._mine.pop(claim_id, None)
        if mine is not None and mine.journal.settle(claim_id):
            self._observe(Step.JOURNAL_DROPPED)

    def _make_folders(self, claims: Iterable[Claim]) -> None:
        for folder in {claim.folder for claim in claims} - self._made:
            Path(folder).mkdir(exist_ok=True)
            self._made.add(folder)

    def _take(self, one: Candidate, journal: Journal) -> Taken | Left:
        claim = one.claim
        try:
            if is_last_attempt(claim):
                return self._take_unread(one)
            if not one.is_alone:
                return self._take_read(one)
            journal.begin(claim)
            answer = self._take_read(one)
            journal.end(claim)
            return answer
        except FileNotFoundError as error:
            self._made.discard(claim.folder)  # somebody may have tidied it away
            signature = reading.find_signature(one.path)
            is_gone = signature is None or error.filename == os.path.dirname(one.path)  # noqa: PTH120
            why = Why.GONE if is_gone else Why.TROUBLE
            return Left(claim.id, one.path, why, signature, error)
        except FileExistsError as error:
            signature = reading.find_signature(one.path)
            return Left(claim.id, one.path, Why.STUCK, signature, error)
        except OSError as error:
            why = Why.STUCK if error.errno in OF_THE_FILE else Why.TROUBLE
            return Left(claim.id, one.path, why, reading.find_signature(one.path), error)

    def _take_unread(self, one: Candidate) -> Taken:
        signature = reading.signature_of(os.lstat(one.path))
        self._claim(one)
        return Taken(one.claim.id, signature, judging.CRASHED, None, is_final=True)

    def _take_read(self, one: Candidate) -> Taken | Left:
        claim = one.claim
        try:
            source = self._source(one)
            descriptor = reading.open_file(os.path.basename(one.path), dir_fd=source)  # noqa: PTH119  (text, as names are)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in OF_THE_PROCESS:
                raise
            return self._take_unreadable(one, error)
        try:
            try:
                # What is taken up again was quiet before.
                known = _long_known(descriptor) if one.is_return else one.known
                tried = self._trial.try_open(descriptor, claim.name, known)
            except OSError as error:  # a bad sector, say: this file's trouble alone
                signature = reading.find_signature(one.path)
                return Left(claim.id, one.path, Why.STUCK, signature, error)
            if not tried.is_ready and not one.is_return:
                why = Why.REPORT if tried.is_report else Why.SETTLING
                return Left(claim.id, one.path, why, tried.signature)
            self._claim(one)
            is_final = False
            with contextlib.suppress(OSError):  # it is ours, and is looked at again
                is_final = self._trial.is_final(descriptor, claim.path, tried, known)
            return _taken(claim, tried, is_final=is_final)
        finally:
            os.close(descriptor)

    def _take_unreadable(self, one: Candidate, error: OSError) -> Taken | Left:
        signature = reading.signature_of(os.lstat(one.path))
        tried = self._trial.try_unreadable(error, signature, one.known)
        if not tried.is_ready and not one.is_return:
            return Left(one.claim.id, one.path, Why.SETTLING, signature)
        self._claim(one)
        return _taken(one.claim, tried, is_final=True)

    def _claim(self, one: Candidate) -> None:
        # Nobody else makes names in our workspace, so nothing can be replaced there.
        # But a file that returns has an id that others may have written on another.
        if one.is_return:
            moves.move(one.path, one.claim.path)
        else:
            name = os.path.basename(one.path)  # noqa: PTH119  (text, as names are)
            os.rename(name, one.claim.path, src_dir_fd=self._source(one))
        self._observe(Step.CLAIMED)

    def _source(self, one: Candidate) -> int:
        """The folder that the file lies in, held open for the batch. Raises OSError.

        Files wait between the look and the claim; nobody who may write there can lead us
        elsewhere meanwhile by putting a link in a folder's place.
        """
        path = os.path.dirname(one.path)  # noqa: PTH120  (text, as names are)
        descriptor = self._sources.get(path)
        if descriptor is None:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                descriptor = os.open(path, flags)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise FileNotFoundError(errno.ENOENT, "A link lies in its way", path) from None
                raise
            if _real_path(descriptor) not in (path, None):
                os.close(descriptor)
                raise FileNotFoundError(errno.ENOENT, "A link lies in its way", path)
            self._sources[path] = descriptor
        return descriptor

    def _close_sources(self) -> None:
        for descriptor in self._sources.values():
            os.close(descriptor)
        self._sources.clear()

    def _judge(self, request: Again) -> Taken | Left:
        claim = request.claim
        try:
            answer = self._judge_alone(request) if request.is_alone else self._judge_read(request)
        except FileNotFoundError:
            self.settle(claim.id)
            return Left(claim.id, claim.path, Why.GONE)
        except OSError as error:
            return Left(claim.id, claim.path, Why.TROUBLE, None, error)
        self._mine[claim.id] = self._mine[claim.id]._replace(signature=answer.signature)
        return answer

    def _judge_alone(self, request: Again) -> Taken:
        claim = request.claim
        if is_last_attempt(claim) and not self._trial.leaves_unread(claim.name):
            signature = reading.signature_of(os.lstat(claim.path))
            return Taken(claim.id, signature, judging.CRASHED, None, is_final=True)
        journal = self._mine[claim.id].journal
        journal.begin(claim)
        answer = self._judge_read(request)
        journal.end(claim)
        return answer

    def _judge_read(self, request: Again) -> Taken:
        claim, known = request.claim, request.known
        try:
            descriptor = reading.open_file(claim.path)
        except FileNotFoundError:
            raise
        except OSError as error:
            signature = reading.signature_of(os.lstat(claim.path))
            tried = self._trial.try_unreadable(error, signature, known)
            return _taken(claim, tried, is_final=tried.is_ready)
        try:
            tried = self._trial.try_open(descriptor, claim.name, known)
            is_final = tried.is_ready and self._trial.is_final(descriptor, claim.path, tried, known)
            return _taken(claim, tried, is_final=is_final)
        finally:
            os.close(descriptor)


def _long_known(descriptor: int) -> Known:
    return Known(reading.signature_of(os.fstat(descriptor)), math.inf)


def _real_path(descriptor: int) -> str | None:
    """Where an open folder really lies; None where the system does not say."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
    except OSError:
        return None


def is_last_attempt(claim: Claim) -> bool:
    """Whether the file ended the importer so often that it is not read again."""
    return claim.attempt + 1 >= ATTEMPTS


def _taken(claim: Claim, tried: Tried, *, is_final: bool) -> Taken:
    return Taken(claim.id, tried.signature, tried.verdict, tried.digest, is_final)
