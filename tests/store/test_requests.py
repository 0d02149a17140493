"""What importers are asked for, and which importers there are."""

import dataclasses

import pytest

from resumes.errors import Conflict
from resumes.store import Store, creation, import_history, import_requests, importers
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import FileOutcome, Verdict
from resumes.store.import_requests import RequestKind
from resumes.store.importers import ImporterFinding, ImporterState, SeenImporter, count_waiting
from tests.store.conftest import SteppingClock
from tests.support.resumes import a_claim, a_resume
from tests.support.store.builders import NOW, MakeAccount, a_file, an_importer

pytestmark = pytest.mark.engines

FAILED, HELD = FileOutcome.FAILED, FileOutcome.HELD


def asked(store: Store, *, root: str | None = None) -> list[tuple[str, RequestKind]]:
    """The first digit of the files that something is asked for, and what."""
    found = import_requests.list_requests(store, root=root)
    return sorted((one.claim_id[0], one.action) for one in found)


def files_in(store: Store, account: AccountInfo, *roots: str | None) -> None:
    """Files that failed, 1 and so on, dropped in these folders, are to be tried again."""
    for number, root in enumerate(roots, 1):
        a_file(store, account, f"{number}" * 24, root=root)
    import_requests.request_all_files(store, RequestKind.RETRY)


def test_to_ask_twice_is_to_ask_once_and_to_retry_a_held_file_is_to_release_it(
    store: Store, ana: AccountInfo
) -> None:
    assert import_requests.list_requests(store) == []
    failed = a_file(store, ana, "1" * 24)
    held = a_file(store, ana, "2" * 24, HELD)
    assert import_requests.find_request(store, ana.id, failed.claim_id) is None
    for files in ([failed, failed], [failed], [held]):
        import_requests.request_files(store, files, RequestKind.RETRY)
    assert asked(store) == [("1", RequestKind.RETRY), ("2", RequestKind.RELEASE)]
    request = import_requests.RequestedFile(ana.id, "1" * 24, RequestKind.RETRY, NOW, "/srv/inbox")
    assert import_requests.list_requests(store)[0] == request
    assert import_requests.find_request(store, ana.id, failed.claim_id) == request


@pytest.mark.parametrize(
    ("action", "outcome", "message"),
    [
        (RequestKind.RELEASE, FAILED, "it failed. Retry it with `resumes imports retry"),
        (
            RequestKind.RELEASE,
            FileOutcome.DONE,
            "it is already imported. Only held files can be released",
        ),
        (RequestKind.RETRY, FileOutcome.DONE, "it is already imported. Only failed or held files"),
        (RequestKind.RETRY, FileOutcome.DUPLICATE, "it is a duplicate. Only failed or held files"),
    ],
)
def test_a_file_that_the_action_does_not_fit_is_refused_and_so_are_those_with_it(
    store: Store, ana: AccountInfo, action: RequestKind, outcome: FileOutcome, message: str
) -> None:
    held = a_file(store, ana, "1" * 24, HELD)
    other = a_file(store, ana, "2" * 24, outcome)
    with pytest.raises(Conflict, match=f"Cannot {action} {other.claim_id}: {message}"):
        import_requests.request_files(store, [held, other], action)
    assert asked(store) == []


def test_a_file_that_comes_to_another_end_meanwhile_is_not_asked_for(
    store: Store, ana: AccountInfo
) -> None:
    still, seen_failed = a_file(store, ana, "1" * 24), a_file(store, ana, "2" * 24)
    creation.create(store, ana.id, [a_resume()], claim=a_claim("2" * 24))
    with pytest.raises(Conflict, match="its outcome has just changed"):
        import_requests.request_files(store, [still, seen_failed], RequestKind.RETRY)
    assert asked(store) == []


def test_all_that_failed_or_are_held_can_be_asked_for_of_an_account_or_a_reason_alone(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    a_file(store, ana, "1" * 24)
    a_file(store, bo, "2" * 24, HELD)
    a_file(store, bo, "3" * 24, reason="too_large")
    a_file(store, ana, "4" * 24, FileOutcome.DUPLICATE)
    a_file(store, ana, "5" * 24, FileOutcome.DONE)
    assert (
        import_requests.request_all_files(
            store, RequestKind.RETRY, account_id=ana.id, reason="too_large"
        )
        == 0
    )
    assert import_requests.request_all_files(store, RequestKind.RETRY, reason="too_large") == 1
    assert asked(store) == [("3", RequestKind.RETRY)]
    assert import_requests.request_all_files(store, RequestKind.RETRY, account_id=ana.id) == 1
    assert asked(store) == [("1", RequestKind.RETRY), ("3", RequestKind.RETRY)]
    assert (
        import_requests.request_all_files(store, RequestKind.RETRY) == 2
    )  # once more, which is once
    assert import_requests.request_all_files(store, RequestKind.RELEASE) == 1
    assert asked(store)[1] == ("2", RequestKind.RELEASE)


def test_more_than_fit_into_one_transaction_are_asked_for(store: Store, ana: AccountInfo) -> None:
    count = import_requests.SLICE_REQUESTS + 1
    failed = Verdict(FAILED, "invalid_json")
    claims = [a_claim(f"{number:024x}") for number in range(count)]
    creation.create_files(
        store, [creation.Creation(ana.id, (), store.clock(), claim, failed) for claim in claims]
    )
    assert import_requests.request_all_files(store, RequestKind.RETRY) == count
    found = import_requests.list_requests(store, limit=2 * count)
    assert [one.claim_id for one in found] == [claim.claim_id for claim in claims]


def test_the_request_that_waits_longest_is_dated(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    assert import_requests.find_oldest(store) is None
    import_requests.request_files(store, [a_file(store, ana, "2" * 24)], RequestKind.RETRY)
    clock.advance(60)
    import_requests.request_files(store, [a_file(store, ana, "1" * 24)], RequestKind.RETRY)
    assert import_requests.find_oldest(store) == NOW


def test_what_was_taken_up_is_asked_for_no_more(store: Store, ana: AccountInfo) -> None:
    files_in(store, ana, *["/srv/inbox"] * 3)
    assert len(import_requests.list_requests(store, limit=2)) == 2
    second = import_requests.list_requests(store)[1]
    for _ in range(2):
        import_requests.drop_requests(store, [second])
        assert [digit for digit, _ in asked(store)] == ["1", "3"]
    import_requests.drop_requests(store, import_requests.list_requests(store))
    assert asked(store) == []


@pytest.mark.parametrize("is_done", [False, True])
def test_a_request_that_cannot_be_met_is_gone_and_the_file_says_why_unless_it_is_done(
    store: Store, ana: AccountInfo, clock: SteppingClock, is_done: bool
) -> None:
    import_requests.request_files(store, [a_file(store, ana, "1" * 24)], RequestKind.RETRY)
    if is_done:
        creation.create(store, ana.id, [a_resume()], claim=a_claim("1" * 24))
    clock.advance(60)
    import_requests.refuse_request(store, ana.id, "1" * 24, "The file is gone")
    assert asked(store) == []
    file = import_history.get_file(store, "1" * 24)
    if is_done:
        assert file.message is None
    else:
        assert (file.outcome, file.reason) == (FAILED, "invalid_json")
        assert (file.message, file.finished_at) == ("The file is gone", "2027-01-15T08:01:00.000Z")


def test_an_importer_sees_what_is_asked_for_its_own_folder_and_what_nobody_watches(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    assert import_requests.list_unwatched_roots(store) == []
    files_in(store, ana, "/srv/inbox", "/srv/moved", None, "/srv/live")
    importers.announce(store, an_importer("a" * 24, root="/srv/live"))

    def strays(**more: int) -> list[str]:
        found = import_requests.list_strays(store, root="/srv/inbox", **more)
        return [one.claim_id[0] for one in found]

    assert [digit for digit, _ in asked(store, root="/srv/inbox")] == ["1", "3"]
    assert [digit for digit, _ in asked(store)] == ["1", "2", "3", "4"]
    assert strays() == ["2"]
    assert strays(limit=0) == []
    assert import_requests.list_unwatched_roots(store) == ["/srv/inbox", "/srv/moved"]
    clock.advance(60)
    assert strays() == ["4", "2"]
    unwatched = [None, "/srv/inbox", "/srv/live", "/srv/moved"]
    assert import_requests.list_unwatched_roots(store) == unwatched


# Importers


def alive(store: Store) -> list[str]:
    """The first digit of the ids of the importers."""
    return [seen.importer.id[0] for seen in importers.list_importers(store)]


def test_an_importer_is_listed_once_as_it_said_last(store: Store, clock: SteppingClock) -> None:
    findings = (
        ImporterFinding("events", ImporterState.POLLING, "The folder tells of no changes."),
    )
    importer = an_importer(state=ImporterState.POLLING, findings=findings)
    importers.announce(store, importer)
    (seen,) = importers.list_importers(store)
    assert seen.importer == importer
    assert (seen.seen_at, seen.age_s, seen.is_live) == (NOW, 0, True)
    clock.advance(10)
    now = dataclasses.replace(an_importer(), waiting=None)
    importers.announce(store, now)
    (seen,) = importers.list_importers(store)
    assert (seen.importer, seen.seen_at) == (now, "2027-01-15T08:00:10.000Z")


def test_an_importer_is_live_for_a_minute_after_it_spoke_whatever_the_clock_does(
    store: Store, clock: SteppingClock
) -> None:
    importers.announce(store, an_importer())
    for step_s, expected in ((59, (59, True)), (1, (60, False)), (-3_660, (0, True))):
        clock.advance(step_s)
        (seen,) = importers.list_importers(store)
        assert (seen.age_s, seen.is_live) == expected


@pytest.mark.parametrize("sign", [1, -1])  # silent for a day, or of a clock that was ahead by one
def test_an_importer_is_forgotten_after_a_day(
    store: Store, clock: SteppingClock, sign: int
) -> None:
    importers.announce(store, an_importer("1" * 24))
    clock.advance(sign * 24 * 3_600)
    assert alive(store) == ["1"]
    clock.advance(sign)
    assert alive(store) == []
    importers.announce(store, an_importer("2" * 24))
    clock.advance(-sign * 3_600)
    assert alive(store) == ["2"]


def test_importers_are_listed_by_folder_the_last_seen_first_until_they_leave(
    store: Store, clock: SteppingClock
) -> None:
    for importer_id, root in (("1" * 24, "/b"), ("2" * 24, "/a"), ("3" * 24, "/b")):
        importers.announce(store, an_importer(importer_id, root=root))
        clock.advance(1)
    assert alive(store) == ["2", "3", "1"]
    importers.leave(store, "3" * 24)
    importers.leave(store, "4" * 24)
    assert alive(store) == ["2", "1"]


def test_importers_of_one_folder_see_the_same_files_and_silent_ones_none() -> None:
    def seen(root: str, waiting: int | None, age_s: float = 1.0) -> SeenImporter:
        return SeenImporter(an_importer(root=root, waiting=waiting), NOW, age_s)

    assert count_waiting([seen("/inbox", 3), seen("/inbox", 5), seen("/other", 2)]) == 7
    assert count_waiting([seen("/inbox", 3, age_s=61), seen("/other", None)]) == 0
