"""Documents: files that the user's analyzer turns into resumes while other files are imported.

    wait      accounts take turns; up to `analyzers` documents are analyzed at once, in threads
    hash      a file with the same bytes as a stored document is a duplicate, and is not analyzed
    analyze   the analyzer gets a copy; for a held document, its earlier output is in the ledger
    judge     the output is checked like a JSON file; the batch commits and files it

Meanwhile the file stays in place, under its claim. If the process is killed before the commit, the file
is a new one; after it, the ledger has the outcome, and the analyzer does not run again.
"""

import errno
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO

from importer import files, outcomes
from importer.claims import Claim, File, State
from importer.job import Job
from importer.json_texts import file_too_large
from importer.options import Limits
from importer.outcomes import Result, failed
from resumes.errors import StoreError, StoreUnavailable
from resumes.external_analyzer import BEGINNING_BYTES, OLD_WORD, AnalysisFailed, Failure, is_of_type
from resumes.import_reasons import Reason
from resumes.store import import_history
from resumes.store.creation import find_duplicate
from resumes.store.import_ledger import Analysis, FileOutcome

MAX_CHANGES = 3
"""The number of changes during analysis after which a file fails."""
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
    """Return why the document cannot be given to the analyzer, or None if it can."""
    if content.is_over_limit:
        return file_too_large(limits).refusal
    if not content.body:
        return failed(Reason.ANALYZER, "The file is empty")
    suffix = files.split_extension(name)[1]
    begin = content.body[:BEGINNING_BYTES]
    if is_of_type(suffix, begin):
        return None
    fault = f"It is not {KINDS[suffix]}, despite its name"
    if suffix == ".docx" and begin.startswith(OLD_WORD):  # Word writes encrypted files like this
        fault += ": it has a password, or is of the older kind (.doc)"
    return failed(Reason.ANALYZER, fault)


class Documents:
    """The documents of one ROOT that wait or are being analyzed. `on_analyzed` is called from other
    threads; all methods must be called from one thread."""

    def __init__(self, job: Job, on_analyzed: Callable[[], None]) -> None:
        self._job = job
        self._on_analyzed = on_analyzed
        self._changes: Counter[str] = Counter()
        """The number of times that each file was changed while it was analyzed, by path."""
        self._waiting: dict[str, deque[File]] = {}
        """The documents by account ID; the account whose turn is next comes first."""
        self._running: dict[File, Future[None]] = {}
        self._firsts: dict[tuple[str, bytes], File] = {}
        """By account ID and content, the file that is analyzed first. Other files with the same
        content are read again later."""
        self._threads = ThreadPoolExecutor(job.options.analyzers, "analyzer")
        self._is_ended = threading.Event()

    @property
    def can_go_on(self) -> bool:
        """Whether an analysis has finished or can start."""
        has_ended = any(future.done() for future in self._running.values())
        return has_ended or (bool(self._waiting) and self._is_free)

    @property
    def _is_free(self) -> bool:
        return len(self._running) < self._job.options.analyzers

    def __len__(self) -> int:
        return len(self._running) + sum(map(len, self._waiting.values()))

    def add(self, file: File) -> None:
        self._waiting.setdefault(file.claim.account_id, deque()).append(file)

    def take(self) -> list[File]:
        """Return the documents that were analyzed since the last call, and start analyzing others.
        Documents that cannot be imported depart."""
        analyzed = [file for file, future in self._running.items() if future.done()]
        for file in analyzed:
            self._running.pop(file).result()
        while self._waiting and self._is_free:
            account_id, files_of_account = next(iter(self._waiting.items()))
            del self._waiting[account_id]
            file = files_of_account.popleft()
            if files_of_account:
                self._waiting[account_id] = files_of_account
            future = self._threads.submit(self._analyze, file)
            self._running[file] = future
            future.add_done_callback(lambda _: self._on_analyzed())
        self._job.depart(file for file in analyzed if file.state is not State.READ)
        return [file for file in analyzed if file.state is State.READ]

    def note_stored(self) -> None:
        """Note that the outcomes of all documents that `take` returned are stored."""
        for key, file in [*self._firsts.items()]:
            if file not in self._running:
                self._firsts.pop(key)

    def drop(self) -> None:
        self._is_ended.set()
        self._threads.shutdown(cancel_futures=True)
        self._waiting.clear()
        self._running.clear()

    # Methods that run in the analyzer threads

    def _analyze(self, file: File) -> None:
        claim, signature = file.claim, file.signature
        folders = files.Folders(self._job.root)
        try:
            folder = folders.open(claim.folder(self._job.root))
            with os.fdopen(files.open_file(claim.base, dir_fd=folder), "rb") as opened:
                self._analyze_open(file, opened)
                now = files.signature_of(os.stat(claim.base, dir_fd=folder, follow_symlinks=False))
        except FileNotFoundError:
            file.leave(State.GONE)
            return
        except OSError as error:
            file.leave(State.STUCK, signature, error)
            return
        except StoreError as error:
            # Without shards, the batch also finds that the store is unreachable, and reports it.
            is_of_account = self._job.store.is_sharded and isinstance(error, StoreUnavailable)
            file.leave(State.UNREACHABLE if is_of_account else State.SETTLING, signature)
            return
        except Exception:  # noqa: BLE001 - logged in full; one file must not stop the others
            file.verdict = outcomes.internal_error()
            return
        finally:
            folders.close()
        if file.state is not State.READ or now == signature:
            self._changes.pop(claim.source, None)
            return
        self._changes[claim.source] += 1
        if self._changes[claim.source] < MAX_CHANGES:
            file.leave(State.SETTLING, now)
            return
        del self._changes[claim.source]
        file.verdict = failed(Reason.ANALYZER, "It was changed each time while it was analyzed")
        file.signature, file.digest, file.head, file.analysis = now, None, b"", None

    def _analyze_open(self, file: File, opened: IO[bytes]) -> None:
        """Set the file's verdict, or its state if it cannot be imported."""
        claim, options = file.claim, self._job.options
        content = files.read_file(opened.fileno(), options.max_file_bytes)
        if content.signature != file.signature or not content.is_steady:
            file.leave(State.SETTLING, content.signature)
            return
        file.verdict = find_fault(claim.base, content, options.limits)
        if content.is_over_limit:
            return
        file.digest = digest = files.digest(content.body)
        if file.verdict is not None:
            return
        suffix = files.split_extension(claim.base)[1]
        is_encrypted = suffix == ".pdf" and b"/Encrypt" in content.body
        del content
        if self._firsts.setdefault((claim.account_id, digest), file) is not file:
            file.leave(State.SETTLING, file.signature)  # until the first file has its outcome
            return
        stored = find_duplicate(self._job.store, claim.account_id, digest)
        if stored is not None:
            file.verdict = outcomes.result_of(stored)
            return
        if (earlier := self._find_earlier(claim, digest)) is not None:
            self._judge(file, *earlier)
            return
        if options.analyzer is None:
            raise OSError(errno.ENOENT, NO_ANALYZER)
        started = time.monotonic()

        def describe(said: str) -> Analysis:
            return Analysis(digest.hex(), round(time.monotonic() - started, 3), said)

        try:
            written = options.analyzer.run(opened, suffix, is_cancelled=self._is_ended.is_set)
        except AnalysisFailed as error:
            if error.reason is Failure.CANCELLED:
                file.leave(State.SETTLING, file.signature)
                return
            if error.reason is Failure.CANNOT_START:
                raise OSError(errno.ENOEXEC, error.message) from None
            message = error.message
            if is_encrypted and "password" not in message.lower():
                message = f"{message}. The PDF is encrypted: save it without a password"
            file.verdict, file.analysis = failed(Reason.ANALYZER, message), describe(error.said)
        else:
            self._judge(file, written.body, describe(written.said))

    def _find_earlier(self, claim: Claim, digest: bytes) -> tuple[bytes, Analysis] | None:
        """Return the output that the analyzer wrote before the document was held, with the
        analysis. Return None if the document was not held or its content has changed."""
        row = import_history.find_file(self._job.store, claim.id, claim.account_id)
        if not claim.is_return or row is None or row.outcome is not FileOutcome.HELD:
            return None
        output, analysis = import_history.find_source(self._job.store, row), row.analysis
        if not output or analysis is None or analysis.digest != digest.hex():
            return None
        return output, analysis

    def _judge(self, file: File, output: bytes, analysis: Analysis) -> None:
        accepted = self._job.options.format.for_account(file.claim.first_month)
        verdict = outcomes.judge(output, accepted)
        kept = (Reason.COVER_LETTER, Reason.INTERNAL_ERROR)
        if isinstance(verdict, Result) and verdict.reason not in kept:
            message = f"The analyzer's output cannot be stored: {verdict.message}"
            verdict = verdict._replace(reason=Reason.ANALYZER, message=message)
        file.verdict, file.head, file.analysis = verdict, output, analysis
