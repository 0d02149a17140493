"""`resumes imports retry` and `release`."""

import shlex

import pytest

from resumes.store import counters, importers, ledger, requests
from resumes.store.ledger import FileOutcome
from tests.cli.conftest import CommandLine, a_resume, open_home, store_resumes
from tests.cli.ledger import ledger_id, record_file
from tests.resumes.store.builders import an_importer


@pytest.fixture
def filled(acme: CommandLine) -> CommandLine:
    """`acme` with two files that failed, one that is held and one that is done."""
    record_file(acme, ledger_id("1"))
    record_file(acme, ledger_id("2"), reason="too_large")
    record_file(acme, ledger_id("3"), FileOutcome.HELD, reason="quota_reached")
    record_file(acme, ledger_id("4"), FileOutcome.DONE, reason=None)
    return acme


def watch(run: CommandLine, root: str = "/srv/inbox") -> None:
    """An importer says that it watches the folder."""
    with open_home(run.home) as store:
        importers.announce(store, an_importer(root=root))


def asked(run: CommandLine) -> list[tuple[str, str]]:
    """The first digits of the files that are asked for, and the actions."""
    with open_home(run.home) as store:
        return [(one.claim_id[0], one.action) for one in requests.list_requests(store)]


def test_files_are_asked_for_by_id(filled: CommandLine) -> None:
    watch(filled)

    result = filled("imports", "retry", ledger_id("1"), ledger_id("3"), ledger_id("1"))

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Asked for 2 files; the importer takes them up within a second.\n"
    assert asked(filled) == [("1", "retry"), ("3", "release")]
    assert "asked     retry, since" in filled.succeeds("imports", "show", ledger_id("1"))


def test_without_an_importer_it_is_said_how_to_come_by_one(filled: CommandLine) -> None:
    result = filled("imports", "release", ledger_id("3"))

    start = shlex.join(["--home", str(filled.home), "up"])
    assert result.exit_code == 0
    # The folder is not this home's: a command that imports it is not for us to name.
    assert result.stderr.startswith(
        "Asked for 1 file. No importer watches their folder: start the one of /srv/inbox again, or "
    )
    assert result.stderr.endswith(f" {start}` if that folder has become {filled.home}/inbox.\n")
    assert asked(filled) == [("3", "release")]


def test_an_importer_of_another_folder_does_not_count(filled: CommandLine) -> None:
    watch(filled, "/srv/other")

    answer = filled.answers("imports", "retry", ledger_id("1"), "--json")

    assert answer == {"action": "retry", "asked": 1, "isWatched": False}
    watch(filled)
    assert filled.answers("imports", "retry", "--all", "--json")["isWatched"] is True


def test_many_are_chosen_by_account_and_reason(filled: CommandLine) -> None:
    filled.succeeds("accounts", "create", "beta")
    record_file(filled, ledger_id("5"), account="beta")

    def count(*words: str) -> int:
        return int(filled.answers("imports", *words, "--json")["asked"])

    assert count("retry", "--reason", "too_large") == 1
    assert asked(filled) == [("2", "retry")]
    assert count("retry", "--account", "beta") == 1
    assert count("retry", "--account", "beta", "--reason", "too_large") == 0
    assert count("retry", "--all") == 3
    assert count("release", "--account", "beta") == 0
    assert count("release", "--all") == 1
    assert sorted(asked(filled)) == [
        ("1", "retry"),
        ("2", "retry"),
        ("3", "release"),
        ("5", "retry"),
    ]
    assert "Account not found" in filled.fails(1, "imports", "retry", "--account", "gamma")


def test_nothing_to_ask_for_is_no_failure(acme: CommandLine) -> None:
    result = acme("imports", "release", "--all")

    assert (result.exit_code, result.stderr) == (0, "There is nothing to release.\n")


def test_a_file_in_the_wrong_state_is_refused_with_what_fits(filled: CommandLine) -> None:
    done = filled.fails(1, "imports", "retry", ledger_id("1"), ledger_id("4"))
    assert done == (
        f"Cannot retry {ledger_id('4')}: it is done. "
        "Only files that failed or are held can be retried"
    )
    failed = filled.fails(1, "imports", "release", ledger_id("1"))
    assert failed.endswith(f"it failed. `resumes imports retry {ledger_id('1')}` tries it again")
    assert '"nope"' in filled.fails(1, "imports", "retry", ledger_id("1"), "nope")
    assert asked(filled) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Name files by ID, or choose them"),
        (("c1", "--all"), "not both"),
        (("--all", "--wait", "1"), "--wait needs the IDs"),
    ],
)
def test_files_are_chosen_in_one_way(
    acme: CommandLine, words: tuple[str, ...], message: str
) -> None:
    assert message in acme.fails(2, "imports", "retry", *words)
    assert message in acme.fails(2, "imports", "release", *words)


def test_of_a_file_that_two_accounts_have_it_is_said_whose_is_meant(filled: CommandLine) -> None:
    export = filled.home / "acme.ndjson"
    filled("accounts", "export", "acme", str(export))
    filled("accounts", "import", str(export), "--name", "copy")

    for words in (("retry",), ("show",), ("retry", "--wait", "0")):
        told = filled.fails(1, "imports", *words, ledger_id("1"))
        assert told == (
            f"{ledger_id('1')} is a file of several accounts, acme, copy: add --account NAME"
        )
    assert asked(filled) == []
    filled("imports", "retry", ledger_id("1"), "--account", "copy")
    shown = ("imports", "show", ledger_id("1"), "--account")
    assert "asked     retry, since" in filled.succeeds(*shown, "copy")
    assert "asked     retry, since" not in filled.succeeds(*shown, "acme")
    assert "not found" in filled.fails(1, "imports", "retry", "f" * 24, "--account", "acme")


def test_waiting_ends_when_the_time_is_over(filled: CommandLine) -> None:
    result = filled("imports", "retry", ledger_id("1"), "--wait", "0")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Nothing became of 1 file in this time; still asked for.\n"
    assert asked(filled) == [("1", "retry")]


def test_asking_leaves_ledger_and_resumes_alone(filled: CommandLine) -> None:
    [resume_id] = store_resumes(filled.home, a_resume())

    filled.succeeds("imports", "retry", "--all")

    with open_home(filled.home) as store:
        assert [file.outcome for file in ledger.list_files(store)] == [
            "done",
            "held",
            "failed",
            "failed",
        ]
        assert counters.list_wrong(store) == []
    assert filled.answers("list", "--json")["resumes"][0]["id"] == resume_id
