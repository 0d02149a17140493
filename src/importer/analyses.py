"""Documents: files that the user's analyzer turns into resumes, while other files are imported.

    wait      one account's after another's, `analyzers` at once, each in a thread
    hash      the same bytes as a stored document: a duplicate, without the analyzer
    analyze   the analyzer gets a copy; what a held document's analyzer wrote is in the ledger
    judge     as a JSON file with this content would be; the batch commits and files it

Meanwhile the file stays in place, under its claim. If the process is killed before the commit, the file
is a new one; after it, the ledger has the outcome, and the analyzer does not run again.
"""

import contextlib
import errno
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO

from importer import files, outcomes
from importer.claims import Claim
from importer.job import Cause, Departure, Job, ReadFile
from importer.json_texts import file_too_large
from importer.options import Limits
from importer.outcomes import Result, failed
from resumes.errors import NotFound, StoreError
from resumes.external_analyzer import BEGINNINGS, AnalysisFailed, Failure
from resumes.import_reasons import Reason
from resumes.store import import_history
from resumes.store.creation import find_duplicate
from resumes.store.import_ledger import Analysis, FileOutcome

BEGINNING_BYTES = 1_024
"""Where a PDF begins at the latest: some programs write a few bytes before it."""
MAX_CHANGES = 3
"""How often a file may have been changed while it was analyzed, before it fails."""
NO_ANALYZER = "The setting analyzer is not set"
KINDS = {
    ".pdf": "a PDF",
    ".doc": "a Word document",
    ".docx": "a Word document of the newer kind (.docx)",
    ".odt": "an OpenDocument text",
    ".rtf": "an RTF file",
    ".txt": "a text file",
}


def find_fault(name: str, content: files.Content, limits: Limits) -> Result | None:
    """Return why a document of this name is not given to the analyzer; None if it is."""
    if content.is_over_limit:
        return file_too_large(limits).refusal
    if not content.body:
        return failed(Reason.ANALYZER, "The file is empty")
    suffix = files.split_extension(name)[1]
    begin = content.body[:BEGINNING_BYTES]
    if suffix == ".txt":
        is_utf16 = begin.startswith((b"\xff\xfe", b"\xfe\xff"))
        is_its_kind = is_utf16 or b"\0" not in begin
    elif suffix == ".pdf":
        is_its_kind = b"%PDF" in begin
    else:
        is_its_kind = begin.startswith(BEGINNINGS[suffix])
    if is_its_kind:
        return None
    fault = f"It is not {KINDS[suffix]}, despite its name"
    if suffix == ".docx" and begin.startswith(BEGINNINGS[".doc"]):  # as Word encrypts them
        fault += ": it has a password, or is of the older kind (.doc)"
    return failed(Reason.ANALYZER, fault)


class Documents:
    """The documents of one ROOT that wait, or are being analyzed. `on_analyzed` is called from other
    threads; everything else from one."""

    def __init__(self, job: Job, on_analyzed: Callable[[], None]) -> None:
        self._job = job
        self._on_analyzed = on_analyzed
        self._waiting: dict[str, deque[ReadFile]] = {}
        """By account id; the account whose turn is next comes first."""
        self._running: dict[str, Future[ReadFile | Departure]] = {}
        """By claim id."""
        self._threads: ThreadPoolExecutor | None = None
        self._is_ended = threading.Event()
        self._firsts: dict[tuple[str, bytes], str] = {}
        """By account id and content, the claim whose outcome others with this content wait for."""
        self._is_stored = threading.Condition()
        self._changes: Counter[str] = Counter()
        """How often each file was changed while it was analyzed, by path."""

    @property
    def can_go_on(self) -> bool:
        """Whether an analysis has ended or can begin."""
        is_free = len(self._running) < self._job.options.analyzers
        return (bool(self._waiting) and is_free) or any(
            future.done() for future in self._running.values()
        )

    def __len__(self) -> int:
        return len(self._running) + sum(map(len, self._waiting.values()))

    def add(self, work: ReadFile) -> None:
        self._waiting.setdefault(work.claim.account_id, deque()).append(work)

    def take(self) -> list[ReadFile]:
        """Return the documents that were analyzed since the last call, and start others. Those that turned
        out not to be importable depart."""
        over = [claim_id for claim_id, future in self._running.items() if future.done()]
        results = [self._running.pop(claim_id).result() for claim_id in over]
        analyzers = self._job.options.analyzers
        while self._waiting and len(self._running) < analyzers:
            account_id, works = next(iter(self._waiting.items()))
            del self._waiting[account_id]
            work = works.popleft()
            if works:
                self._waiting[account_id] = works
            if self._threads is None:
                self._threads = ThreadPoolExecutor(analyzers, "analyzer")
            future = self._threads.submit(self._analyze, work, self._is_ended)
            self._running[work.claim.id] = future
            future.add_done_callback(lambda _: self._on_analyzed())
        self._job.depart(result for result in results if isinstance(result, Departure))
        return [result for result in results if isinstance(result, ReadFile)]

    def note_stored(self) -> None:
        """Note that the outcome of each document that was taken is stored."""
        if self._firsts:
            with self._is_stored:
                firsts = self._firsts.items()
                self._firsts = {
                    key: claim_id for key, claim_id in firsts if claim_id in self._running
                }
                self._is_stored.notify_all()

    def drop(self) -> None:
        with self._is_stored:
            self._is_ended.set()
            self._is_stored.notify_all()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        self._threads = None
        self._is_ended = threading.Event()
        self._waiting.clear()
        self._running.clear()
        self._firsts.clear()

    # In a thread

    def _analyze(self, work: ReadFile, is_ended: threading.Event) -> ReadFile | Departure:
        claim = work.claim
        folders = files.Folders(self._job.root)
        try:
            folder = folders.open(claim.folder(self._job.root))
            with os.fdopen(files.open_file(claim.base, dir_fd=folder), "rb") as file:
                analyzed = self._analyze_open(work, file, is_ended)
                now = files.signature_of(os.stat(claim.base, dir_fd=folder, follow_symlinks=False))
        except FileNotFoundError:
            return Departure(claim, Cause.GONE)
        except OSError as error:
            return Departure(claim, Cause.STUCK, work.signature, error)
        except StoreError:  # the batch finds it out of reach, too, and reports that
            return Departure(claim, Cause.SETTLING, work.signature)
        except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
            return work._replace(verdict=outcomes.internal_error())
        finally:
            folders.close()
        if isinstance(analyzed, Departure) or now == work.signature:
            self._changes.pop(claim.source, None)
            return analyzed
        self._changes[claim.source] += 1
        if self._changes[claim.source] < MAX_CHANGES:
            return Departure(claim, Cause.SETTLING, now)
        del self._changes[claim.source]
        fault = failed(Reason.ANALYZER, "It was changed each time while it was analyzed")
        return work._replace(verdict=fault, signature=now, digest=None)

    def _analyze_open(
        self, work: ReadFile, file: IO[bytes], is_ended: threading.Event
    ) -> ReadFile | Departure:
        claim, options = work.claim, self._job.options
        content = files.read_file(file.fileno(), options.max_file_bytes)
        if content.signature != work.signature or not content.is_steady:
            return Departure(claim, Cause.SETTLING, content.signature)
        fault = find_fault(claim.base, content, options.limits)
        if content.is_over_limit:
            return work._replace(verdict=fault)
        digest = files.digest(content.body)
        work = work._replace(verdict=fault, digest=digest)
        if fault is not None:
            return work
        suffix = files.split_extension(claim.base)[1]
        is_encrypted = suffix == ".pdf" and b"/Encrypt" in content.body
        del content
        key = claim.account_id, digest
        with self._is_stored:
            self._is_stored.wait_for(
                lambda: is_ended.is_set() or self._firsts.setdefault(key, claim.id) == claim.id
            )
        stored = find_duplicate(self._job.store, claim.account_id, digest)
        if stored is not None:
            return work._replace(verdict=outcomes.result_of(stored))
        if (earlier := self._find_earlier(claim, digest)) is not None:
            return self._judge(work, *earlier)
        if options.analyzer is None:
            raise OSError(errno.ENOENT, NO_ANALYZER)
        started = time.monotonic()

        def describe(said: str) -> Analysis:
            return Analysis(digest.hex(), round(time.monotonic() - started, 3), said)

        try:
            written = options.analyzer.run(file, suffix, is_cancelled=is_ended.is_set)
        except AnalysisFailed as error:
            if error.reason is Failure.CANCELLED:
                return Departure(claim, Cause.SETTLING, work.signature)
            if error.reason is Failure.CANNOT_START:
                raise OSError(errno.ENOEXEC, error.message) from None
            message = error.message
            if is_encrypted and "password" not in message.lower():
                message = f"{message}. The PDF is encrypted: save it without a password"
            refused = failed(Reason.ANALYZER, message)
            return work._replace(verdict=refused, analysis=describe(error.said))
        return self._judge(work, written.body, describe(written.said))

    def _find_earlier(self, claim: Claim, digest: bytes) -> tuple[bytes, Analysis] | None:
        """Return what the analyzer wrote before the document was held, and how; None if it is another one,
        or was not held."""
        with contextlib.suppress(NotFound):
            row = import_history.get_file(self._job.store, claim.id, account_id=claim.account_id)
            output = import_history.find_source(self._job.store, row)
            analysis = row.analysis
            is_held = claim.is_return and row.outcome is FileOutcome.HELD
            if is_held and output and analysis is not None and analysis.digest == digest.hex():
                return output, analysis
        return None

    def _judge(self, work: ReadFile, output: bytes, analysis: Analysis) -> ReadFile:
        accepted = self._job.options.format.for_account(work.claim.first_month)
        verdict = outcomes.judge(output, accepted)
        kept = (Reason.COVER_LETTER, Reason.INTERNAL_ERROR)
        if isinstance(verdict, Result) and verdict.reason not in kept:
            message = f"The analyzer's output cannot be stored: {verdict.message}"
            verdict = verdict._replace(reason=Reason.ANALYZER, message=message)
        return work._replace(verdict=verdict, head=output, analysis=analysis)
