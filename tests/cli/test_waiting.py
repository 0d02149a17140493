"""`--wait` of retry and release."""

import json

import pytest

from cli import waiting
from cli.exits import ExitCode
from cli.session import Session
from resumes.store import Store, asking, ledger, requests
from resumes.store.ledger import FileOutcome, FileRow
from resumes.store.requests import Action
from tests.cli.conftest import CommandLine, open_home
from tests.cli.ledger import ledger_id, record_file

LONG_S = 20.0


def files_of(store: Store) -> list[FileRow]:
    return list(ledger.list_files(store))


def test_what_becomes_of_the_files_is_waited_for(acme: CommandLine) -> None:
    record_file(acme, ledger_id("1"))
    with open_home(acme.home) as store:
        before = files_of(store)
        asking.ask(store, before, Action.RETRY)
        looks = iter([False, False, True])

        def clock() -> float:
            """Stands still; an importer answers after the second look."""
            if next(looks, False):
                requests.refuse_request(store, before[0].account_id, ledger_id("1"), "It is gone")
            return 0.0

        (now,) = waiting.wait_for(store, before, LONG_S, clock=clock)
    assert now.message == "It is gone"


def test_waiting_ends_when_the_time_is_over(acme: CommandLine) -> None:
    record_file(acme, ledger_id("1"))
    with open_home(acme.home) as store:
        before = files_of(store)
        instants = iter([0.0, LONG_S])
        assert waiting.wait_for(store, before, LONG_S, clock=lambda: next(instants)) == before


def outcomes_told(acme: CommandLine, *outcomes: FileOutcome, as_json: bool = False) -> ExitCode:
    """The exit code after files that had failed came to these outcomes, and one to none."""
    ids = [ledger_id(str(number)) for number in range(len(outcomes))]
    for claim_id in ids:
        record_file(acme, claim_id)
    with open_home(acme.home) as store:
        before = [ledger.get_file(store, claim_id) for claim_id in ids]
    for claim_id, outcome in zip(ids, outcomes, strict=True):
        record_file(acme, claim_id, outcome)
    with open_home(acme.home) as store:
        now = [ledger.get_file(store, claim_id) for claim_id in ids]
    session = Session(home=acme.home, as_json=as_json)
    return waiting.tell_outcomes(session, Action.RETRY, before, now)


def test_files_that_are_done_or_held_now_are_listed(
    acme: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    code = outcomes_told(acme, FileOutcome.DONE, FileOutcome.HELD)

    told = capsys.readouterr()
    assert [line.split()[1] for line in told.out.splitlines()] == ["outcome", "done", "held"]
    assert (code, told.err) == (ExitCode.DONE, "")


def test_a_file_that_fails_again_is_a_failure(
    acme: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    code = outcomes_told(acme, FileOutcome.DONE, FileOutcome.FAILED, as_json=True)

    told = json.loads(capsys.readouterr().out)
    assert (told["action"], told["asked"]) == ("retry", 2)
    assert [file["outcome"] for file in told["files"]] == ["done", "failed"]
    assert code == ExitCode.FAILED
