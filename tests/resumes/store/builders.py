"""Rows of the ledger and of the importers' directory, with defaults for what does not matter."""

from resumes.store import Store, ledger
from resumes.store.accounts import AccountInfo
from resumes.store.importers import Finding, Importer, State
from resumes.store.ledger import FileOutcome, FileRow, FileVerdict, Verdict
from tests.resumes.builders import a_claim


def a_file(
    store: Store,
    account: AccountInfo,
    claim_id: str = "1" * 24,
    outcome: FileOutcome = FileOutcome.FAILED,
    *,
    reason: str | None = "invalid_json",
    root: str | None = "/srv/inbox",
    items: str | None = None,
) -> FileRow:
    """A file of the ledger that came to this outcome."""
    claim = a_claim(claim_id)._replace(root=root, items=items)
    ledger.record(store, FileVerdict(account.id, claim, Verdict(outcome, reason, "why")))
    return ledger.get_file(store, claim_id)


def an_importer(
    importer_id: str = "1" * 24,
    *,
    root: str = "/srv/inbox",
    state: State = State.OK,
    findings: tuple[Finding, ...] = (),
    waiting: int | None = 3,
) -> Importer:
    """What an importer says of itself."""
    return Importer(
        id=importer_id,
        host="host",
        pid=4_711,
        root=root,
        state=state,
        findings=findings,
        waiting=waiting,
        started_at="2027-01-15T08:00:00.000Z",
    )
