"""Bundles: the import of files with several resumes, one after the other, in slices."""

import itertools
import os
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from importer import files, ledger, outcomes, unpack
from importer.claims import Claim
from importer.files import Signature
from importer.filing import OF_THE_PROCESS
from importer.job import Cause, Departure, Job, ReadFile, Step
from importer.json_texts import CannotUnpack, Part, file_too_large, resume_too_large
from importer.options import DEFAULT_TUNING, Limits, Options, Tuning
from importer.outcomes import Result, Tally
from importer.pending import PendingFiling, PendingFilings
from importer.reader import Reader, is_last_attempt
from resumes.analyzer import Format, Resume
from resumes.errors import ResumesError
from resumes.store import import_ledger
from resumes.store.creation import Creation, NewResume, create_files
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
        part = portion.part
        self._items.add(result._replace(item=part.number, place=part.place))

    def sum_up(self) -> Result:
        """Return the bundle's result. Call it after the last item's `conclude`."""
        return outcomes.sum_up(self._items, self._skipped)


def open_bundle(descriptor: int, claim: Claim, options: Options) -> tuple[Bundle | Result, bytes]:
    """Read a bundle's open file, and close it; return the bundle, or its result if it cannot be unpacked,
    and the file's first 64 KiB. Never raises."""
    head = b""
    try:
        with os.fdopen(descriptor, "rb"):
            content = files.read_file(descriptor, options.max_file_bytes)
        head = content.body[: files.HEAD_BYTES]
        accepted = options.format.for_account(claim.first_month)
        return Bundle(content, claim.name, accepted, options.limits, options.tuning), head
    except CannotUnpack as error:
        return error.refusal, head
    except OSError as error:
        return outcomes.unreadable(error), head
    except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
        return outcomes.internal_error(), head


class BundleImporter:
    """Imports bundles. One at a time is unpacked; others wait in the inbox."""

    def __init__(self, job: Job, reader: Reader, pending: PendingFilings) -> None:
        self._job = job
        self._reader = reader
        self._pending = pending
        self._works: deque[ReadFile] = deque()
        self._bundle: Bundle | None = None
        """The first of them, once it is opened."""
        self._slices: Sequence[Sequence[Portion]] = ()
        """Its slices that were read and are not committed."""

    def __len__(self) -> int:
        return len(self._works)

    @property
    def account_ids(self) -> set[str]:
        """The accounts of the bundles, which will use more of the quota."""
        return {work.claim.account_id for work in self._works}

    def add(self, work: ReadFile) -> None:
        self._works.append(work)

    def advance(self) -> None:
        """Store the next slice of the first bundle; file the bundle after its last. A bundle that turns out
        not to be importable departs. Raises StoreError; the next call continues there."""
        if not self._works:
            return
        work = self._works[0]
        if self._bundle is None:
            opened = self._open(work)
            if isinstance(opened, Departure):
                self._close()
                self._job.depart([opened])
                return
            bundle, head = opened
            work = self._works[0] = work._replace(head=head)
            if isinstance(bundle, Result):
                self._finish(work, bundle)
                return
            self._bundle = bundle
        try:
            if not self._slices and (portions := self._bundle.next_slice()):
                self._slices = (portions,)
        except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
            self._finish(work, outcomes.internal_error())
            return
        if not (self._slices and self._commit_slice(work, self._bundle, self._slices[0])):
            self._finish(work, self._bundle.sum_up())

    def _open(self, work: ReadFile) -> tuple[Bundle | Result, bytes] | Departure:
        """Return what `open_bundle` does, or why the bundle is not imported: it is gone, has changed and so
        is a new file, or cannot be opened. Raises an OSError that says nothing about it."""
        claim = work.claim
        if (message := self._pending.queues.find_message(claim)) is not None:
            return outcomes.held(message), self._reader.read_head(claim)
        if claim.attempt:  # none counts if the last one got further than the one before
            items = len(import_ledger.find_items(self._job.store, claim.account_id, claim.id))
            attempt = 0 if items > claim.items else claim.attempt
            claim = claim._replace(items=items, attempt=attempt)
        if is_last_attempt(claim):
            return outcomes.CRASHED, self._reader.read_head(claim)
        self._job.slot.begin_alone(claim, work.signature)
        try:
            bundle, head = open_bundle(self._reader.open_file(claim), claim, self._job.options)
        except FileNotFoundError:
            return Departure(claim, Cause.GONE)
        except OSError as error:
            if error.errno in OF_THE_PROCESS:
                raise
            return Departure(claim, Cause.STUCK, work.signature, error)
        if isinstance(bundle, Bundle) and bundle.signature != work.signature:
            return Departure(claim, Cause.SETTLING, bundle.signature)
        return bundle, head

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
        row, now_us = ledger.row_of(self._job, work), self._job.store.clock()
        creation = Creation(work.claim.account_id, new, now_us, row, IN_PROGRESS)
        deadline_s = self._job.options.tuning.write_timeout_s
        try:
            (result,) = create_files(self._job.store, [creation], deadline_s=deadline_s)
        except Exception as error:
            if ledger.is_store_failure(error):
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
        if is_gone and ledger.find_unowned(self._job, [work]):
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
        ledger.record(self._job, work, result)
        self._job.slot.end_alone(work.claim.id)
        digest = None if self._bundle is None else self._bundle.digest
        self._close()
        self._pending.file_away([PendingFiling(work._replace(digest=digest), result)])

    def _close(self) -> None:
        self._bundle, self._slices = None, ()
        self._works.popleft()

    def drop(self) -> None:
        if self._bundle is not None and not self._bundle.is_being_read:
            self._job.slot.end_alone(self._works[0].claim.id)
        self._works.clear()
        self._bundle, self._slices = None, ()
