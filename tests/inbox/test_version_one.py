"""What an importer before 0.1.0 left in `.work`."""

import fcntl
import json
from pathlib import Path

from resumes.store import Store, accounts
from resumes.store.accounts import AccountInfo
from tests.support.inbox.builders import (
    MakeAccount,
    MakeImporter,
    Told,
    counts,
    drop,
    filed,
    resume_names,
)
from tests.support.resumes import a_document


def leave_claim(root: Path, account: AccountInfo, claim_id: str, name: str, content: bytes) -> Path:
    """A claimed file, and the journal that names it."""
    workspace = root / ".work" / ("1" * 24)
    line = {"id": claim_id, "account": account.name, "name": name, "account_id": account.id}
    drop(workspace, f"{claim_id}.journal", json.dumps(line).encode() + b"\n")
    (workspace / "lease").touch()
    return drop(workspace, f"{account.id}/{claim_id}", content)


def test_what_lies_claimed_in_work_is_imported_under_its_claim(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    ana, gone = an_account("ana"), an_account("gone")
    leave_claim(root, ana, "0" * 23 + "1", "ana/1.json", a_document("1"))
    leave_claim(root, ana, "0" * 23 + "2", "ana/bad.json", b"{")
    leave_claim(root, gone, "0" * 23 + "3", "gone/3.json", a_document("3"))
    nameless = leave_claim(root, ana, "0" * 23 + "4", "ana/4.json", a_document("4"))
    (nameless.parent.parent / f"{nameless.name}.journal").unlink()
    accounts.delete_account(store, "gone")

    an_importer().round()
    an_importer().round()

    assert resume_names(store, ana.id) == ["1", "4"]
    assert told.outcomes() == {
        "ana/1.json": "done",
        "ana/bad.json": "failed",
        "gone/3.json": "failed",
        nameless.name: "done",
    }
    assert counts(root, "done", "failed") == [2, 2]
    assert {path.suffix for path in filed(root, "_done")} == {".json"}
    assert not (root / ".work").exists()


def test_what_an_importer_that_still_runs_has_in_work_is_left_to_it(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    claimed = leave_claim(root, ana, "0" * 23 + "1", "ana/1.json", a_document("1"))
    with (claimed.parent.parent / "lease").open("r+b") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        an_importer().round()
        assert claimed.exists()
    an_importer().round()
    assert resume_names(store, ana.id) == ["1"]
