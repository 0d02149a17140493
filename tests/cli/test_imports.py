"""`resumes imports`: the ledger."""

from resumes.store import accounts, ledger
from resumes.store.ledger import Claim, FileOutcome, FileVerdict, Verdict
from tests.cli.conftest import CommandLine, open_home


def record(run: CommandLine, claim_id: str, *, account: str = "acme") -> None:
    """A file that failed is in the ledger."""
    claim = Claim(claim_id, f"{account}/x\x1b.json", 12, "2026-01-31T09:00:00.000Z", b"{")
    verdict = Verdict(FileOutcome.FAILED, "invalid_json", "Invalid JSON at byte 1: EOF", None, 1)
    with open_home(run.home) as store:
        owner = accounts.get_account(store, account)
        ledger.record(store, FileVerdict(owner.id, claim, verdict))


def test_files_are_listed_newest_first(acme: CommandLine) -> None:
    record(acme, "c1")
    record(acme, "c2")

    listed = [line.split() for line in acme.succeeds("imports", "list").splitlines()[1:]]

    assert listed == [
        [claim, "failed", "invalid_json", "acme/x\\x1b.json"] for claim in ("c2", "c1")
    ]
    assert len(acme.answers("imports", "list", "--limit", "1", "--json")["files"]) == 1


def test_one_account_s_files_alone(acme: CommandLine) -> None:
    acme.succeeds("accounts", "create", "beta")
    record(acme, "c1")

    assert acme.answers("imports", "list", "--account", "beta", "--json") == {"files": []}
    assert "Account not found" in acme.fails(1, "imports", "list", "--account", "gamma")


def test_show_says_why(acme: CommandLine) -> None:
    record(acme, "c1")

    shown = acme.succeeds("imports", "show", "c1")

    assert "message   Invalid JSON at byte 1: EOF\n" in shown
    assert "byte      1\n" in shown
    assert acme.answers("imports", "show", "c1", "--json")["byteOffset"] == 1
    assert '"nope"' in acme.fails(1, "imports", "show", "nope")


def test_nothing_yet_is_said_on_standard_error(acme: CommandLine) -> None:
    listed = acme("imports", "list")

    assert (listed.stdout, listed.exit_code) == ("", 0)
    assert listed.stderr == "No files were imported from a watched folder yet.\n"
