"""Rows of the ledger and of the importers' directory, with defaults for what does not matter;
and writes that show what the lane does."""

import threading
from collections.abc import Sequence

from sqlalchemy import Connection, text

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


def rename(connection: Connection, requests: Sequence[str]) -> list[str]:
    """A write whose requests `bad` fail on data, as a constraint would."""
    for request in requests:
        if request == "bad":
            connection.execute(text("INSERT INTO plans (name) VALUES ('free')"))
        connection.execute(text("UPDATE plans SET max_resumes = max_resumes + 1"))
    return [request.upper() for request in requests]


def hold_lane(store: Store) -> tuple[threading.Event, threading.Thread]:
    """The lane is busy until the event is set."""
    entered, go_on = threading.Event(), threading.Event()

    def wait(_: Connection, requests: Sequence[str]) -> list[None]:
        entered.set()
        go_on.wait(10)
        return [None] * len(requests)

    thread = threading.Thread(target=lambda: store.write(wait, "hold"))
    thread.start()
    assert entered.wait(10)
    return go_on, thread


def free_maximum(store: Store) -> int:
    with store.read() as connection:
        row = connection.execute(text("SELECT max_resumes FROM plans WHERE name = 'free'"))
        return int(row.scalar_one())
