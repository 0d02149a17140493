"""Labels: the group of a resume, such as a class or a client; a resume has at most one."""

import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from sqlmodel import Session, col, func, select

from resumes.errors import InvalidArgument
from resumes.store import search_index
from resumes.store.schema import Document, ResumeRow
from resumes.store.store import Store
from resumes.text import folded, is_harmless

MAX_LABEL_CHARS: Final = 100

MAX_CHANGED: Final = 10
"""How many resumes one transaction changes: each is indexed again, which takes milliseconds."""


class LabelCount(NamedTuple):
    """A label, and how many resumes have it."""

    label: str
    resumes: int


def check_label(text: str) -> str:
    """Return the label as it is stored: in NFC, without blanks around it. Raises InvalidArgument."""
    label = unicodedata.normalize("NFC", text.strip())
    is_text = is_harmless(label) and "\ufffd" not in label  # which stands for bytes of no text
    if not 1 <= len(label) <= MAX_LABEL_CHARS or not is_text:
        raise InvalidArgument(
            f"Invalid label {text[:80]!r}: must be 1 to {MAX_LABEL_CHARS} printable characters"
        )
    return label


def label_of_folder(folder: str) -> str | None:
    """Return the label of files in the folder, whose name is escaped; None if it has none.

    A longer name is cut: a file is not rejected because of its folder.
    """
    name = unicodedata.normalize("NFC", folder.strip()).replace("\ufffd", "_")
    return name[:MAX_LABEL_CHARS].rstrip() or None


def list_labels(store: Store, account_id: str) -> list[LabelCount]:
    """Return the account's labels in alphabetical order, without regard to case and accents."""
    label = col(ResumeRow.label)
    of_account = ResumeRow.account_id == account_id, label.is_not(None)
    counts = store.fetch(select(label, func.count()).where(*of_account).group_by(label))
    return sorted(
        (LabelCount(*row) for row in counts), key=lambda count: (folded(count.label), count.label)
    )


def set_label(
    store: Store,
    account_id: str,
    resume_ids: Sequence[str],
    label: str | None,
    *,
    on_count: Callable[[int], None] = lambda done: None,
) -> int:
    """Give those of the resumes that exist this label, or none; return how many there are.

    `updated_at` stays, since the content does. `on_count` is called with the number so far after each
    transaction.
    """
    done = 0
    for start in range(0, len(resume_ids), MAX_CHANGED):
        ids = resume_ids[start : start + MAX_CHANGED]
        done += store.write(partial(_set_label, account_id, ids, label), account_id=account_id)
        on_count(done)
    return done


def _set_label(
    account_id: str, resume_ids: Sequence[str], label: str | None, session: Session
) -> int:
    rows = [session.get(ResumeRow, (account_id, resume_id)) for resume_id in resume_ids]
    found = [row for row in rows if row is not None]
    for row in found:
        if row.label != label:
            row.label = label
            stored = session.get(Document, (account_id, row.id))
            document = None if stored is None else stored.document
            search_index.replace(session, account_id, row, document)
    return len(found)
