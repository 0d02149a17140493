"""What a run of the `--on-import` command is told: the files that came to their end since the last.

Counts and accounts go into its environment. The files themselves are listed in a file, since no
system takes as much in an environment.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from importer.telling import FileReport
from resumes.store import accounts
from resumes.store.ledger import FileOutcome

MAX_FILES = 10_000
MAX_CHARS = 8 * 1024 * 1024
"""What is kept of the files: so many, and texts of this length in all."""

MAX_ACCOUNTS = 1_000
"""Their names stay far below what a system takes for a variable."""


@dataclass(slots=True)
class HookBatch:
    """Files that came to their end, for one run of the command. Times are monotonic seconds."""

    first_at: float = 0.0
    last_at: float = 0.0
    counts: dict[FileOutcome, int] = field(default_factory=lambda: dict.fromkeys(FileOutcome, 0))
    account_names: set[str] = field(default_factory=set)
    files: list[FileReport] = field(default_factory=list)
    chars: int = 0
    omitted: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no file is in it."""
        return not self.files

    def add(self, report: FileReport, now: float) -> None:
        """The file is counted, and listed while there is room."""
        if self.is_empty:
            self.first_at = now
        self.last_at = now
        self.counts[report.outcome] += 1
        if len(self.account_names) < MAX_ACCOUNTS and accounts.NAME.fullmatch(report.account):
            self.account_names.add(report.account)
        if len(self.files) < MAX_FILES and self.chars < MAX_CHARS:
            self.files.append(report)
            texts = (report.name, report.message or "", str(report.filed_as))
            self.chars += sum(map(len, texts))
        else:
            self.omitted += 1

    def due_at(self, quiet_s: float, longest_s: float) -> float:
        """When the command is to run, if no more files come."""
        return min(self.last_at + quiet_s, self.first_at + longest_s)

    def iter_lines(self) -> Iterator[str]:
        """The files as JSON Lines, in ASCII; at last how many more there were, if any."""
        for report in self.files:
            yield _line(
                {
                    "account": report.account,
                    "name": report.name,
                    "outcome": report.outcome.value,
                    "reason": report.reason,
                    "message": report.message,
                    "filed_as": str(report.filed_as),
                    "resume_id": report.resume_id,
                    "warnings": report.warnings,
                }
            )
        if self.omitted:
            yield _line({"omitted": self.omitted})

    def environment(self, root: Path, listing: str) -> dict[str, str]:
        """The command's environment: ours, with the batch in it."""
        counts = {
            f"RESUMES_IMPORT_{outcome.name}": str(count) for outcome, count in self.counts.items()
        }
        return {
            **os.environ,
            **counts,
            "RESUMES_IMPORT_ROOT": str(root),
            "RESUMES_IMPORT_ACCOUNTS": ",".join(sorted(self.account_names)),
            "RESUMES_IMPORT_BATCH": listing,
        }


def _line(fields: dict[str, object]) -> str:
    return json.dumps(fields, separators=(",", ":")) + "\n"


@contextlib.contextmanager
def listed(batch: HookBatch) -> Iterator[str]:
    """The path of a file that lists the batch, for its owner's eyes only; gone after the block."""
    descriptor, path = tempfile.mkstemp(prefix="resumes-import-", suffix=".jsonl")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.writelines(batch.iter_lines())
        yield path
    finally:
        with contextlib.suppress(OSError):
            Path(path).unlink()
