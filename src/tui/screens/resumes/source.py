"""The file that a resume came from, as the analyzer wrote it."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from resumes.store import import_ledger
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import FileRow
from resumes.store.store import Store
from resumes.store.stored_resumes import StoredResume
from resumes.watched_names import REPORT
from tui.text import safe, safe_lines
from tui.widgets.text_pane import Paragraph

MOST_BYTES: Final = 64 * 1024
DONE: Final = "_done"
"""How the names of what lies beside a file end (docs/importing.md)."""

NO_FILE: Final = (
    "This resume did not come from a file in a watched folder: it was created over the API, or "
    "by `resumes import`. The JSON view shows all that is stored."
)


def source_paragraphs(store: Store, account: AccountInfo, stored: StoredResume) -> list[Paragraph]:
    """Which file it was, and its text where that still lies on this machine."""
    claim_id = import_ledger.find_claim(store, account.id, stored.entry.id)
    if claim_id is None:
        return [Paragraph(safe(NO_FILE))]
    file = import_ledger.get_file(store, claim_id, account_id=account.id)
    path = find_filed(file)
    head = [Paragraph(safe(f"From the file {file.name}, {file.size_bytes:,} bytes", "bold"))]
    if path is None:
        where = file.root or "a folder that is not known"
        return [*head, Paragraph(safe(f"It was put away below {where}, and is not there now."))]
    text, is_whole = read_start(path)
    lines = [Paragraph(line) for line in map(safe, safe_lines(text))]
    end = [] if is_whole else [Paragraph(safe(f"… only the first {MOST_BYTES:,} bytes", "dim"))]
    return [*head, Paragraph(safe(str(path), "dim")), Paragraph(safe("")), *lines, *end]


def find_filed(file: FileRow) -> Path | None:
    """Where an imported file lies now, if that is on this machine and it was not moved."""
    if file.root is None:
        return None
    day = Path(file.root, DONE, file.claimed_at[:10])
    # Before accounts had folders of their own their files lay in the day's.
    filed = [path for folder in (day / file.account, day) for path in _iter_named(folder, file)]
    return filed[0] if len(filed) == 1 else None


def _iter_named(folder: Path, file: FileRow) -> Iterator[Path]:
    """What lies in the folder under the file's name; nothing if there is no such folder."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if f"-{file.claim_id[-8:]}." in path.name and not path.name.endswith(REPORT):
                yield path


def read_start(path: Path) -> tuple[str, bool]:
    """The beginning of the file, and whether that is all of it. Empty if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return "", True
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return "", True
        start = file.read(MOST_BYTES + 1)
    return start[:MOST_BYTES].decode(errors="backslashreplace"), len(start) <= MOST_BYTES
