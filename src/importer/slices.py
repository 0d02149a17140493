"""Bundles: files with several resumes, which are imported one by one, in slices."""

import contextlib
import itertools
import math
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from importer import files, ledger, outcomes, unpack
from importer.claims import File, State
from importer.files import Signature
from importer.filing import OF_THE_PROCESS
from importer.job import Job, Step
from importer.json_texts import CannotUnpack, Part, file_too_large
from importer.options import DEFAULT_TUNING, Limits, Options, Tuning
from importer.outcomes import Result, Tally
from importer.pending import PendingFilings
from importer.reader import Reader, is_last_attempt
from resumes.analyzer import Format, Resume
from resumes.errors import ResumesError, StoreUnavailable
from resumes.store import import_ledger
from resumes.store.creation import Creation, NewResume, Outcome
from resumes.store.import_ledger import IN_PROGRESS

Portion = tuple[Part, Resume | Result]
"""A part of a bundle, and either its resume or the reason why there is none."""


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
        self.digest = files.digest(content.body)
        self._parts, self._skipped = unpack.unpack(name, content.body, limits)
        self._items = Tally()
        self.is_being_read = False
        """Whether items are being parsed, which may kill the process."""

    def next_slice(self) -> list[Portion]:
        """Check and return the next items; the end is an empty list. Raises only CannotUnpack."""
        self.is_being_read = True
        portions: list[Portion] = []
        size_bytes = 0
        with _refusing():
            for part in self._parts:
                verdict = part.refusal or outcomes.judge(part.body, self._format)
                portions.append((part, verdict))
                size_bytes += len(part.body)
                is_full = len(portions) == self._tuning.slice_items
                if is_full or size_bytes >= self._tuning.slice_bytes:
                    break
        self.is_being_read = False
        return portions

    def conclude(self, part: Part, result: Result) -> None:
        self._items.add(result._replace(item=part.number, place=part.place))

    def sum_up(self) -> Result:
        """Return the bundle's result. Call this after `conclude` was called for the last item."""
        return outcomes.sum_up(self._items, self._skipped)


def open_bundle(descriptor: int, file: File, options: Options) -> Bundle:
    """Read and close a bundle's open file, and keep its first 64 KiB. Raises only CannotUnpack."""
    with _refusing():
        with os.fdopen(descriptor, "rb"):
            content = files.read_file(descriptor, options.max_file_bytes)
        file.head = content.body[: files.HEAD_BYTES]
        accepted = options.format.for_account(file.claim.first_month)
        return Bundle(content, file.claim.name, accepted, options.limits, options.tuning)


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Turn any error of the block into CannotUnpack."""
    try:
        yield
    except CannotUnpack:
        raise
    except OSError as error:
        raise CannotUnpack(outcomes.unreadable(error)) from None
    except Exception:  # noqa: BLE001 - logged in full; one file must not stop the others
        raise CannotUnpack(outcomes.internal_error()) from None


class BundleImporter:
    """Imports bundles. Only one bundle is unpacked at a time; the others wait in the inbox."""

    def __init__(self, job: Job, reader: Reader, pending: PendingFilings) -> None:
        self._job = job
        self._reader = reader
        self._pending = pending
        self._files: deque[File] = deque()
        self._bundle: Bundle | None = None
        """The first of these files, once it is opened."""
        self._slice: Sequence[Portion] = ()
        """The slice that was read and is not committed yet."""

    def __len__(self) -> int:
        return len(self._files)

    @property
    def can_go_on(self) -> bool:
        return any(map(self._is_due, self._files))

    def _is_due(self, file: File) -> bool:
        return self._job.monotonic() >= self._job.paused_until.get(file.claim.account_id, -math.inf)

    @property
    def account_ids(self) -> set[str]:
        """The accounts of the bundles, which will use more of the quota."""
        return {file.claim.account_id for file in self._files}

    def add(self, file: File) -> None:
        self._files.append(file)

    def advance(self) -> None:
        """Store the next slice of the first bundle, and file the bundle after its last slice. A
        bundle that cannot be imported departs. Raises StoreError; the next call continues there."""
        if self._bundle is None:  # the bundles of an account stay in order
            self._files = deque(sorted(self._files, key=lambda file: not self._is_due(file)))
        if not self.can_go_on:
            return
        file = self._files[0]
        try:
            bundle = self._bundle = self._bundle or self._open(file)
            if bundle is None:
                self._close()
                self._job.depart([file])
                return
            self._slice = self._slice or bundle.next_slice()
            if self._slice and self._commit_slice(file, bundle, self._slice):
                return
            result = bundle.sum_up()
        except CannotUnpack as error:
            result = error.refusal
        self._finish(file, result)

    def _open(self, file: File) -> Bundle | None:
        """Return the bundle, or None if the file is gone, has changed or cannot be opened. Raises
        CannotUnpack, even for a file that must not be read, and errors in OF_THE_PROCESS."""
        claim = file.claim
        if (message := self._pending.queues.why_held(claim)) is not None:
            file.head = self._reader.read_head(claim)
            raise CannotUnpack(outcomes.held(message))
        if claim.attempt:  # attempts are not counted if the last one made progress
            items = len(import_ledger.find_items(self._job.store, claim.account_id, claim.id))
            attempt = 0 if items > claim.items else claim.attempt
            claim = file.claim = claim._replace(items=items, attempt=attempt)
        if is_last_attempt(claim):
            file.head = self._reader.read_head(claim)
            raise CannotUnpack(outcomes.CRASHED)
        self._note_begun(file, is_begun=True)
        try:
            bundle = open_bundle(self._reader.open_file(claim), file, self._job.options)
        except FileNotFoundError:
            file.leave(State.GONE)
            return None
        except OSError as error:
            if error.errno in OF_THE_PROCESS:
                raise
            file.leave(State.STUCK, file.signature, error)
            return None
        if bundle.signature != file.signature:
            file.leave(State.SETTLING, bundle.signature)
            return None
        return bundle

    def _note_begun(self, file: File, *, is_begun: bool) -> None:
        """Note that the file will be unpacked, or that the process survived. Raises OSError."""
        file.is_begun = is_begun
        self._job.slot.note([file], must_last=is_begun)

    def _commit_slice(self, file: File, bundle: Bundle, portions: Sequence[Portion]) -> bool:
        """Commit the slice. Return False if it is the last because the account was deleted."""
        claim = file.claim
        new = [
            NewResume(
                verdict,
                digest=files.digest(part.body),
                item=part.number,
                label=claim.label or part.label,
            )
            for part, verdict in portions
            if isinstance(verdict, Resume)
        ]
        row, now_us = ledger.row_of(self._job, file), self._job.store.clock()
        creation = Creation(claim.account_id, new, now_us, row, IN_PROGRESS)
        results = ledger.create(self._job, [creation])
        error = next((result for result in results if isinstance(result, ResumesError)), None)
        if isinstance(error, StoreUnavailable):
            raise error
        if error is not None and ledger.find_unowned(self._job, [file]):
            self._close()
            self._pending.end([file])
            return True
        self._job.observe(Step.COMMITTED)
        self._slice = ()
        created: Iterable[Outcome | ResumesError | Result] = itertools.chain.from_iterable(
            [result] if isinstance(result, ResumesError | Result) else result for result in results
        )
        if error is not None:
            created = itertools.repeat(error)
        parts, verdicts = zip(*portions, strict=True)
        for part, end in zip(parts, outcomes.results_of(verdicts, created), strict=True):
            bundle.conclude(part, end)
        return error is None

    def _finish(self, file: File, result: Result) -> None:
        ledger.record(self._job, file, result)
        self._note_begun(file, is_begun=False)
        file.digest = None if self._bundle is None else self._bundle.digest
        file.result = result
        self._close()
        self._pending.file_away([file])

    def postpone(self) -> None:
        """Pause the bundles of the first bundle's account, since it is unreachable. They keep their
        claims, which identify their stored items."""
        self._note_begun(self._files[0], is_begun=False)
        self._bundle, self._slice = None, ()
        self._job.pause(self._files[0].claim)

    def _close(self) -> None:
        self._bundle, self._slice = None, ()
        self._files.popleft()

    def drop(self) -> None:
        if self._bundle is not None and not self._bundle.is_being_read:
            self._note_begun(self._files[0], is_begun=False)
        self._files.clear()
        self._bundle, self._slice = None, ()
