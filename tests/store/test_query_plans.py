"""How SQLite goes about what is asked often: by an index, and through no more than it needs."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from resumes.store import Store, accounts, api_keys, creation, import_history, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.idempotency import prune_async
from resumes.store.import_history import count_files
from resumes.store.import_ledger import FileOutcome
from resumes.store.statements import driver
from tests.store.conftest import SteppingClock
from tests.support.resumes import a_resume
from tests.support.store.builders import a_file

pytestmark = pytest.mark.sqlite("how it goes about a statement")

NOT_DONE = "COVERING INDEX ix_imported_files_not_done"
FAILED = FileOutcome.FAILED

CALLS: dict[str, tuple[Callable[[Store, str, str], Any], str]] = {
    "a page of resumes": (
        lambda store, ana, _: stored_resumes.list_page(store, ana, cursor="0" * 24),
        "resumes USING PRIMARY KEY (account_id=? AND id>?)",
    ),
    "the newest resumes": (
        lambda store, ana, _: stored_resumes.list_sorted(
            store, ana, stored_resumes.Sort.NEWEST, cursor="f" * 24
        ),
        "resumes USING PRIMARY KEY (account_id=? AND id<?)",
    ),
    "the newest files": (
        lambda store, ana, _: import_history.list_files(store, account_id=ana),
        "PRIMARY KEY (account_id=? AND claim_id>? AND claim_id<?)",
    ),
    "files that failed": (
        lambda store, *_: import_history.list_files(store, outcome=FAILED),
        NOT_DONE,
    ),
    "files of a reason": (
        lambda store, *_: import_history.list_files(store, reason="too_large"),
        NOT_DONE,
    ),
    "a file": (
        lambda store, ana, _: import_history.get_file(store, "1" * 24, account_id=ana),
        "PRIMARY KEY (account_id=? AND claim_id=?)",
    ),
    "what an account holds": (
        lambda store, ana, _: accounts.get_summary(store, ana),
        "COVERING INDEX ix_imported_files_not_done (account_id=?)",
    ),
    "how many are not done": (
        lambda store, *_: count_files(store, not_done_only=True),
        NOT_DONE,
    ),
    "a key": (
        lambda store, _, secret: api_keys.authenticate(store, secret),
        "key_directory USING PRIMARY KEY (key_hash=?)",
    ),
    "keys that are too old": (
        lambda store, *_: asyncio.run(prune_async(store)),
        "ix_idempotency_created_at (created_at<?)",
    ),
}


@pytest.mark.parametrize("what", CALLS)
def test_no_more_is_read_than_is_asked_for(store: Store, clock: SteppingClock, what: str) -> None:
    ana: AccountInfo = accounts.create_account(store, "ana", plan="business")
    secret = api_keys.create_key(store, "ana").secret
    creation.create(store, ana.id, [a_resume(idempotency="k")])
    a_file(store, ana, "1" * 24)
    clock.advance(timedelta(days=2).total_seconds())
    call, way = CALLS[what]
    statements: list[str] = []
    with store.read() as connection:
        raw = driver(connection)
        raw.set_trace_callback(statements.append)
        call(store, ana.id, secret)
        raw.set_trace_callback(None)
        steps = [
            row[-1]
            for sql in statements
            if sql.startswith("SELECT")
            for row in raw.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
        ]
    assert any(way in step for step in steps), steps
    large = ("resumes", "documents", "imported_files", "idempotency", "key_directory")
    assert not [
        step
        for step in steps
        if step.startswith("SCAN") and "COVERING" not in step and step.split()[1] in large
    ]
    assert what == "how many are not done" or not any("TEMP B-TREE" in step for step in steps)
