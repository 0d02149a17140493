"""Files that were put away and are not done, and requests for them."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from resumes.clock import timestamp
from resumes.health.ages import span
from resumes.health.findings import Finding, notice
from resumes.health.installation import Installation
from resumes.store import requests
from resumes.store.engine import Store
from resumes.store.ledger import FileOutcome
from resumes.store.tallies import FileTally
from resumes.text import counted

REQUESTS = "requests"
SLOW_S = 60.0
"""An importer that is live takes requests up within seconds."""


def count_files(tallies: Sequence[FileTally]) -> dict[FileOutcome, int]:
    """How many files came to each outcome, whatever the reason."""
    counts = dict.fromkeys(FileOutcome, 0)
    for tally in tallies:
        counts[tally.outcome] += tally.files
    return counts


def iter_file_findings(
    installation: Installation, tallies: Sequence[FileTally]
) -> Iterator[Finding]:
    """Whether files failed or are held."""
    counts = count_files(tallies)
    if counts[FileOutcome.FAILED]:
        yield _failed(installation, counts[FileOutcome.FAILED])
    if counts[FileOutcome.HELD]:
        yield _held(installation, counts[FileOutcome.HELD])
    if not counts[FileOutcome.FAILED] and not counts[FileOutcome.HELD]:
        yield Finding("files", "none has failed and none is held")


def _failed(installation: Installation, count: int) -> Finding:
    command = installation.command_line("imports", "list", "--outcome", "failed")
    return notice(
        "files",
        f"{counted(count, 'file')} failed and {'waits' if count == 1 else 'wait'} to be mended",
        f"See why: {command}",
        command,
        about=FileOutcome.FAILED,
    )


def _held(installation: Installation, count: int) -> Finding:
    command = installation.command_line("imports", "list", "--outcome", "held")
    return notice(
        "files",
        f"{counted(count, 'file')} {'is' if count == 1 else 'are'} held until the plan has room",
        f"Make room in the account; the importer then lets them in by itself. Whose they are: "
        f"{command}",
        command,
        about=FileOutcome.HELD,
    )


def oldest_request_age_s(store: Store) -> float | None:
    """For how many seconds the oldest request waits for an importer; None when none does."""
    since = requests.find_oldest(store)
    if since is None:
        return None
    now = datetime.fromisoformat(timestamp(store.clock()))
    return max(0.0, (now - datetime.fromisoformat(since)).total_seconds())


def check_requests(age_s: float | None) -> Finding:
    """Whether what was asked of the importers is taken up soon."""
    if age_s is None:
        return Finding(REQUESTS, "none waits for an importer")
    text = f"the oldest waits for {span(age_s)}"
    if age_s < SLOW_S:
        return Finding(REQUESTS, text)
    return notice(
        REQUESTS,
        text,
        "Look whether an importer watches the file's folder; the log of one that does says what it "
        "is busy with",
    )
