"""What tests of the importer are made of."""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from importer.claims import Claim
from importer.judging import Judged
from importer.outcomes import Conclusion, Reason, Refusal
from importer.reading import Content, Signature
from importer.reports import SUFFIX
from importer.rounds import Importer
from importer.telling import FileReport
from resumes import analyzer
from resumes.store import Store, listing
from resumes.store.ledger import FileOutcome
from tests.resumes.builders import a_document

WAIT_LIMIT_S = 10.0


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
    return Claim(claim_id, folder, **(values | fields))


def judged(body: bytes = b"{", refusal: Refusal | None = None) -> Judged:
    """A file's content and its verdict: the given refusal, or the resume that the bytes hold."""
    content = Content(body, Signature(1, len(body), 1_700_000_000_000_000_000))
    return Judged(content, refusal or analyzer.parse(body))


A_REFUSAL = Refusal(Reason.INVALID_JSON, "Invalid JSON: cut short", byte_offset=1)
FAILED = Conclusion(FileOutcome.FAILED, refusal=A_REFUSAL)
DONE = Conclusion(FileOutcome.DONE, "2" * 24)
HELD = Conclusion(FileOutcome.HELD, refusal=Refusal(Reason.QUOTA_REACHED, "Full"))
DUPLICATE = Conclusion(
    FileOutcome.DUPLICATE, "2" * 24, Refusal(Reason.DUPLICATE, "The same content is stored")
)


def wait_until(is_true: Callable[[], bool]) -> None:
    """Returns as soon as it is true; fails after ten seconds."""
    deadline = time.monotonic() + WAIT_LIMIT_S
    pause = threading.Event()
    while not is_true():
        assert time.monotonic() < deadline, "it did not become true"
        pause.wait(0.01)
