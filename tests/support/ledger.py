"""Files in the ledger of a home."""

import json

from resumes.store import accounts
from resumes.store.import_ledger import ClaimedFile, FileOutcome, Items, Verdict, record
from tests.command.conftest import CommandLine, open_home


def ledger_id(digit: str) -> str:
    """A file's id."""
    return digit * 24


def record_file(
    run: CommandLine,
    claim_id: str,
    outcome: FileOutcome = FileOutcome.FAILED,
    *,
    account: str = "acme",
    reason: str | None = "invalid_json",
    source: bytes = b"{",
    items: Items | None = None,
) -> None:
    """A file that came to this outcome is in the ledger."""
    claim = ClaimedFile(
        claim_id,
        f"{account}/x\x1b.json",
        12,
        "2026-01-31T09:00:00.000Z",
        lambda: source,
        root="/srv/inbox",
        items=None if items is None else json.dumps(items.as_json()),
    )
    verdict = Verdict(outcome, reason, "Invalid JSON at byte 1: EOF", None, 1)
    with open_home(run.home) as store:
        owner = accounts.get_account(store, account)
        record(store, owner.id, claim, verdict)
