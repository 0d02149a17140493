"""Bundles: the import of files with several resumes, one after the other, in slices."""

import itertools
import os
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from importer import files, outcomes, unpack
from importer.batch import Ledger, is_store_failure
from importer.claims import Claim
from importer.failpoints import Step
from importer.files import Signature
from importer.filing import OF_THE_PROCESS, ReadFile
from importer.job import Job
from importer.json_texts import CannotUnpack, Part, file_too_large, resume_too_large
from importer.options import DEFAULT_TUNING, Limits, Options, Tuning
from importer.outcomes import Result, Tally
from importer.pending import PendingFiling, PendingFilings
from importer.reader import FailureReason, NotImported, Reader, is_last_attempt
from resumes.analyzer import Format, Resume
from resumes.errors import ResumesError
from resumes.store import import_ledger
from resumes.store.creation import Creation, NewResume
from resumes.store.import_ledger import IN_PROGRESS


class Portion(NamedTuple):
    """A part of a bundle, and its resume or why it has none."""

    part: Part
    verdict: Resume | Result


class Bundle:
    """A file with several resumes, as it was read. Raises CannotUnpack for any other file."""

    def __init__(
        self,
        content: files.Content,
        name: str,
        format: Format,  # noqa: A002
        limits: Limits,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self._tuning = tuning
        self._format = format
        self.signature: Signature = content.signature
        if content.is_over_limit:
            raise file_too_large(limits)
        if len(content.body) > limits.max_bytes and not unpack.is_bundle(name, content.body):
            raise resume_too_large(limits)  # one value after all
        self.digest = files.digest(content.body)
        self._parts, self._skipped = unpack.unpack(name, content.body, limits)
        self._items = Tally()
        self.is_being_read = False
        """Whether items are being parsed, which may kill the process."""

    def next_slice(self) -> list[Portion]:
        """Return the next items, checked; empty at the end."""
        self.is_being_read = True
        portions: list[Portion] = []
        size_bytes = 0
        for part in self._parts:
            verdict = part.refusal or outcomes.judge(part.body, self._format)
            portions.append(Portion(part, verdict))
            size_bytes += len(part.body)
            if len(portions) == self._tuning.slice_items or size_bytes >= self._tuning.slice_bytes:
                break
        self.is_being_read = False
        return portions

    def conclude(self, portion: Portion, result: Result) -> None:
        """Record the result of an item."""
        part = portion.part
        self._items.add(result._replace(item=part.number, place=part.place))

    def sum_up(self) -> Result:
        """Return the bundle's result. Call it after the last item's `conclude`."""
        return outcomes.sum_up(self._items, self._skipped)


class Opened(NamedTuple):
    """The bundle of a file, or its result if it cannot be unpacked; and its first 64 KiB."""

    bundle: Bundle | Result
    head: bytes = b""


def open_bundle(descriptor: int, claim: Claim, options: Options) -> Opened:
    """Read a bundle's open file, and close it. Never raises."""
    head = b""
    try:
        with os.fdopen(descriptor, "rb"):
            content = files.read_file(descriptor, options.max_file_bytes)
        head = content.body[: files.HEAD_BYTES]
        accepted = options.format.for_account(claim.first_month)
        bundle = Bundle(content, claim.name, accepted, options.limits, options.tuning)
        return Opened(bundle, head)
    except CannotUnpack as error:
        end = error.refusal
    except OSError as error:
        end = outcomes.unreadable(error)
    except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
        end = outcomes.internal_error()
    return Opened(end, head)


class BundleImporter:
    """Imports bundles. One at a time is unpacked; others wait in the inbox."""

    def __init__(self, job: Job, ledger: Ledger, reader: Reader, pending: PendingFilings) -> None:
        self._job = job
        self._ledger = ledger
        self._reader = reader
        self._pending = pending
        self._works: deque[ReadFile] = deque()
        self._bundle: Bundle | None = None
        """The first of them, once it is opened."""
        self._slices: Sequence[Sequence[Portion]] = ()
        """Its slices that were read and are not committed."""

    def __len__(self) -> int:
        """Return how many bundles wait or are being unpacked."""
        return len(self._works)

    @property
    def account_ids(self) -> set[str]:
        """The accounts of the bundles, which will use more of the quota."""
        return {work.claim.account_id for work in self._works}

    def add(self, work: ReadFile) -> None:
        """Unpack the bundle after the others."""
        self._works.append(work)

    def advance(self) -> NotImported | None:
        """Store the next slice of the first bundle; file the bundle after its last. Return the bundle if it
        turns out not to be importable.

        Raises StoreError; the next call continues there.
        """
        if not self._works:
            return None
        work = self._works[0]
        if self._bundle is None:
            opened = self._open(work)
            if isinstance(opened, NotImported):
                self._close()
                self._job.slot.end([work.claim.id])
                return opened
            work = self._works[0] = work._replace(head=opened.head)
            if isinstance(opened.bundle, Result):
                self._finish(work, opened.bundle)
                return None
            self._bundle = opened.bundle
        try:
            if not self._slices and (portions := self._bundle.next_slice()):
                self._slices = (portions,)
        except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
            self._finish(work, outcomes.internal_error())
            return None
        if not (self._slices and self._commit_slice(work, self._bundle, self._slices[0])):
            self._finish(work, self._bundle.sum_up())
        return None

    def _open(self, work: ReadFile) -> Opened | NotImported:
        """Return the opened bundle, or why it is not imported: it is gone, has changed and so is a new
        file, or cannot be opened. Raises an OSError that says nothing about it (`OF_THE_PROCESS`)."""
        message = self._pending.find_queue(work.claim)
        if message is not None:
            return Opened(outcomes.held(message), self._reader.read_head(work.claim))
        claim = self._count(work.claim)
        if is_last_attempt(claim):
            return Opened(outcomes.CRASHED, self._reader.read_head(claim))
        self._job.slot.begin_alone(claim, work.signature)
        try:
            opened = open_bundle(self._reader.open_file(claim), claim, self._job.options)
        except FileNotFoundError:
            return NotImported(claim, FailureReason.GONE)
        except OSError as error:
            if error.errno in OF_THE_PROCESS:
                raise
            return NotImported(claim, FailureReason.STUCK, work.signature, error)
        bundle = opened.bundle
        is_changed = isinstance(bundle, Bundle) and bundle.signature != work.signature
        return NotImported(claim, FailureReason.SETTLING) if is_changed else opened

    def _count(self, claim: Claim) -> Claim:
        """Return the claim, without its attempts if the last one got further than the one before."""
        if not claim.attempt:
            return claim
        items = len(import_ledger.find_items(self._job.store, claim.account_id, claim.id))
        return claim._replace(items=items, attempt=0 if items > claim.items else claim.attempt)

    def _commit_slice(self, work: ReadFile, bundle: Bundle, portions: Sequence[Portion]) -> bool:
        """Commit the next slice. Return False if it is the last, as the account was deleted."""
        new = [
            NewResume(
                verdict,
                digest=files.digest(part.body),
                item=part.number,
                label=work.claim.label or part.label,
            )
            for part, verdict in portions
            if isinstance(verdict, Resume)
        ]
        row = self._ledger.row(work)
        creation = Creation(work.claim.account_id, new, self._job.store.clock(), row, IN_PROGRESS)
        try:
            (result,) = self._ledger.create([creation])
        except Exception as error:
            if is_store_failure(error):
                raise
            self._slices = self._slices[1:]
            if len(portions) > 1:
                outcomes.log_exception(
                    "A slice of %d items failed; importing them one by one", len(portions)
                )
                self._slices = [(portion,) for portion in portions]
            else:
                bundle.conclude(portions[0], outcomes.internal_error())
            return True
        is_gone = isinstance(result, ResumesError)
        if is_gone and self._ledger.find_unowned([work]):
            self._pending.end([work])
            self._close()
            return True
        self._job.observe(Step.COMMITTED)
        created = itertools.repeat(result) if isinstance(result, ResumesError) else result
        verdicts = [portion.verdict for portion in portions]
        self._slices = self._slices[1:]
        for portion, end in zip(portions, outcomes.results_of(verdicts, created), strict=True):
            bundle.conclude(portion, end)
        return not is_gone

    def _finish(self, work: ReadFile, result: Result) -> None:
        self._ledger.record(work, result)
        self._job.slot.end_alone(work.claim.id)
        digest = None if self._bundle is None else self._bundle.digest
        self._close()
        self._pending.file_away([PendingFiling(work._replace(digest=digest), result)])

    def _close(self) -> None:
        self._bundle, self._slices = None, ()
        self._works.popleft()

    def drop(self) -> None:
        """Forget all bundles."""
        if self._bundle is not None and not self._bundle.is_being_read:
            self._job.slot.end_alone(self._works[0].claim.id)
        self._works.clear()
        self._bundle, self._slices = None, ()
