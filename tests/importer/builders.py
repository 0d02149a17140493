"""What tests of the importer are made of."""

import contextlib
import json
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from importer import reports
from importer.claims import Claim
from importer.filing import Filing
from importer.names import escaped, name_hex
from importer.outcomes import Conclusion, Refusal
from importer.reading import Signature
from importer.reports import SUFFIX
from importer.rounds import Importer
from importer.steps import Observer, Step
from importer.taking import Candidate
from importer.telling import FileReport
from importer.workspaces import Workspace
from resumes.reasons import Reason
from resumes.store import Store, listing
from resumes.store.ledger import FileOutcome
from tests.resumes.builders import a_document
from tests.waiting import wait_until as wait_until

WAIT_LIMIT_S = 60.0

AN_ID = "a" * 16
"""The id of an account that no store needs to know."""

A_SIGNATURE = Signature(1, 3, 1_700_000_000 * 10**9)
"""That of a file of three bytes."""


class FakeMonotonic:
    """A monotonic clock that stands still until it is moved. Seconds."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


class Told:
    """Collects what an importer tells."""

    def __init__(self) -> None:
        self.files: list[FileReport] = []
        self.notices: list[str] = []

    def outcomes(self) -> dict[str, str]:
        """The outcome of each file, by its name below ROOT; of a file told twice, the last."""
        return {file.name: file.outcome.value for file in self.files}


MakeImporter = Callable[..., Importer]


def drop(root: Path, name: str, content: bytes = b"") -> Path:
    """A file in the inbox, with a small valid resume of its own unless told otherwise."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content or a_document(name=f"Owner of {os.fsencode(name)!r}"))
    return path


def names_below(folder: Path) -> list[str]:
    """Paths of all files below a folder, relative to it, sorted."""
    if not folder.exists():
        return []
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def filed(root: Path, outcome: str) -> list[Path]:
    """The files put away under an outcome, without their reports."""
    return [
        root / outcome / name for name in names_below(root / outcome) if not name.endswith(SUFFIX)
    ]


def the_report(root: Path, outcome: str) -> dict[str, Any]:
    """The one report under an outcome."""
    (path,) = [
        root / outcome / name for name in names_below(root / outcome) if name.endswith(SUFFIX)
    ]
    report: dict[str, Any] = json.loads(path.read_bytes())
    return report


def resume_names(store: Store, account_id: str) -> list[str]:
    """The names on an account's resumes, oldest first."""
    page = listing.list_page(store, account_id, limit=100)
    return [entry.name or "" for entry in page.entries]


def a_work_claim(folder: Path, claim_id: str = "1" * 24, **fields: Any) -> Claim:
    """A claim in a folder of a workspace."""
    values: dict[str, Any] = {
        "account": "ana",
        "name": "ana/cv.json",
        "name_hex": b"ana/cv.json".hex(),
        "claimed_at_us": 1_800_000_000_000_000,
    }
    folder.mkdir(parents=True, exist_ok=True)
    return Claim(claim_id, str(folder), **(values | fields))


def a_candidate(
    root: Path,
    workspace: Workspace,
    name: str = "ana/cv.json",
    claim_id: str = "1" * 24,
    **candidate: Any,
) -> Candidate:
    """The file of this name below ROOT, about to be claimed for the account AN_ID."""
    claim = Claim(
        id=claim_id,
        folder=workspace.account_folder(AN_ID),
        account="ana",
        name=escaped(name),
        name_hex=name_hex(name),
        claimed_at_us=1_800_000_000_000_000,
        attempt=candidate.pop("attempt", 0),
        reports=candidate.pop("reports", ()),
    )
    return Candidate(claim, f"{root}/{name}", **candidate)


def a_report(
    claim: Claim,
    conclusion: Conclusion,
    signature: Signature = A_SIGNATURE,
) -> bytes:
    """The report on a file, which has three bytes unless told otherwise."""
    return reports.compose(
        claim, signature, conclusion, sha256="ab" * 32, now_us=1_800_000_000_500_000
    )


def a_filing(claim: Claim, conclusion: Conclusion) -> Filing:
    """What became of the claimed file."""
    return Filing(claim.id, conclusion)


class Killed(BaseException):
    """Ends what is under way as a kill does: whatever handles errors does not see it."""


def killing_at(step: Step) -> Observer:
    """Kills as soon as the step is announced."""

    def observe(announced: Step) -> None:
        if announced is step:
            raise Killed

    return observe


@contextlib.contextmanager
def a_full_disk(largest_bytes: int = 0) -> Iterator[None]:
    """No file grows beyond this size: what is written is cut off there, or fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


A_REFUSAL = Refusal(Reason.INVALID_JSON, "Invalid JSON: cut short", byte_offset=1)
FAILED = Conclusion(FileOutcome.FAILED, refusal=A_REFUSAL)
DONE = Conclusion(FileOutcome.DONE, "2" * 24)
HELD = Conclusion(FileOutcome.HELD, refusal=Refusal(Reason.QUOTA_REACHED, "Full"))
DUPLICATE = Conclusion(
    FileOutcome.DUPLICATE, "2" * 24, Refusal(Reason.DUPLICATE, "The same content is stored")
)
