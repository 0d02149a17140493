"""Files that are not done, and requests that nobody takes up."""

from resumes.health.files import (
    SLOW_S,
    check_requests,
    count_files,
    iter_file_findings,
    oldest_request_age_s,
)
from resumes.health.findings import Finding, State
from resumes.health.installation import Installation
from resumes.store import Store, asking
from resumes.store.accounts import AccountInfo
from resumes.store.ledger import FileOutcome
from resumes.store.requests import Action
from resumes.store.tallies import FileTally
from tests.resumes.store.builders import a_file
from tests.resumes.store.conftest import SteppingClock

DONE = FileTally(FileOutcome.DONE, None, 1_000)


def found(installation: Installation, *tallies: FileTally) -> list[Finding]:
    return list(iter_file_findings(installation, [DONE, *tallies]))


def test_reasons_are_added_up() -> None:
    counts = count_files(
        [
            FileTally(FileOutcome.FAILED, "invalid_json", 2),
            FileTally(FileOutcome.FAILED, "too_large", 3),
        ]
    )

    assert counts == {
        FileOutcome.HELD: 0,
        FileOutcome.FAILED: 5,
        FileOutcome.DUPLICATE: 0,
        FileOutcome.DONE: 0,
    }


def test_done_files_and_duplicates_are_well(installation: Installation) -> None:
    [finding] = found(installation, FileTally(FileOutcome.DUPLICATE, "duplicate", 7))

    assert finding.state is State.WELL


def test_failed_and_held_files_want_a_look(installation: Installation) -> None:
    findings = found(
        installation,
        FileTally(FileOutcome.FAILED, "invalid_json", 1),
        FileTally(FileOutcome.HELD, "quota_reached", 1_200),
    )

    assert [(one.state, one.text, one.command) for one in findings] == [
        (
            State.NOTICE,
            "1 file failed and waits to be mended",
            "resumes imports list --outcome failed",
        ),
        (
            State.NOTICE,
            "1,200 files are held until the plan has room",
            "resumes imports list --outcome held",
        ),
    ]


def test_the_oldest_request_is_dated(
    store: Store, account: AccountInfo, clock: SteppingClock
) -> None:
    assert oldest_request_age_s(store) is None
    asking.ask(store, [a_file(store, account, "1" * 24)], Action.RETRY)
    clock.advance(90)
    asking.ask(store, [a_file(store, account, "2" * 24)], Action.RETRY)

    assert oldest_request_age_s(store) == 90


def test_requests_that_wait_for_long_are_told() -> None:
    assert check_requests(None).state is State.WELL
    assert check_requests(SLOW_S - 1).state is State.WELL

    finding = check_requests(300)

    assert (finding.state, finding.text) == (State.NOTICE, "the oldest waits for 5 minutes")
