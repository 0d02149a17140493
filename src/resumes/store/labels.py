"""Labels: the groups of resumes, such as classes or clients. A resume has at most one label."""

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
"""How many resumes one transaction changes. It indexes each again, which takes milliseconds."""


class LabelCount(NamedTuple):
    """A label and the number of resumes with this label."""

    label: str
    resumes: int


def check_label(text: str) -> str:
    """Return the label in the stored form: NFC, without surrounding spaces.

    Raises InvalidArgument.
    """
    label = unicodedata.normalize("NFC", text.strip())
    is_text = is_harmless(label) and "\ufffd" not in label  # it replaces bytes that are not text
    if not 1 <= len(label) <= MAX_LABEL_CHARS or not is_text:
        raise InvalidArgument(
            f"Invalid label {text[:80]!r}: must be 1 to {MAX_LABEL_CHARS} printable characters"
        )
    return label


def label_of_folder(folder: str) -> str | None:
    """Return the label of files in the folder, whose name is escaped, or None for an empty name.

    A name that is too long is truncated, so that no file is rejected because of its folder.
    """
    name = unicodedata.normalize("NFC", folder.strip()).replace("\ufffd", "_")
    return name[:MAX_LABEL_CHARS].rstrip() or None


def list_labels(store: Store, account_id: str) -> list[LabelCount]:
    """Return the account's labels in alphabetical order; case and accents do not matter."""
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
    """Set or remove the label of those resumes that exist, and return their number.

    `updated_at` does not change, because the content does not. After each transaction, `on_count`
    is called with the number of resumes so far.
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
