"""What happened to a resume: how and when it came, and what there was to say about it."""

from collections.abc import Iterator

from resumes.analyzer import stored_warnings
from resumes.store import import_ledger
from resumes.store.accounts import AccountInfo
from resumes.store.store import Store
from resumes.store.stored_resumes import StoredResume
from resumes.text import counted
from tui.text import joined, safe
from tui.times import minute
from tui.widgets.text_pane import Paragraph

INDENT = "  "


def history_paragraphs(store: Store, account: AccountInfo, stored: StoredResume) -> list[Paragraph]:
    """One paragraph for each thing that happened, in order; then the warnings."""
    return [
        *_came(store, account, stored),
        Paragraph(safe("")),
        *_warnings(stored),
    ]


def _came(store: Store, account: AccountInfo, stored: StoredResume) -> Iterator[Paragraph]:
    entry = stored.entry
    claim_id = import_ledger.find_claim(store, account.id, entry.id)
    if claim_id is not None:
        file = import_ledger.get_file(store, claim_id, account_id=account.id)
        yield _event(file.claimed_at, f"The importer took the file {file.name}")
        yield Paragraph(safe(f"claim {claim_id}, folder {file.root or 'not known'}", "dim"), INDENT)
        how = f"Stored in {account.name}, and the file put away"
    else:
        how = f"Created in {account.name}, over the API or by `resumes import`"
    yield _event(entry.created_at, how)
    if entry.updated_at != entry.created_at:
        yield _event(entry.updated_at, "Changed")


def _event(timestamp: str, text: str) -> Paragraph:
    return Paragraph(joined([safe(f"{minute(timestamp)} UTC  ", "dim"), safe(text)]))


def _warnings(stored: StoredResume) -> Iterator[Paragraph]:
    warnings = stored_warnings(stored.document)
    if not warnings:
        yield Paragraph(safe("Nothing about it was odd."))
        return
    yield Paragraph(safe(counted(len(warnings), "warning"), "bold $text-warning"))
    for warning in warnings:
        yield Paragraph(safe(warning.message), f"{INDENT}! ")
