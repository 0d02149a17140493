"""What `resumes doctor` says of importers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.findings import Finding
from cli.importers import iter_importer_findings, span, start_line
from cli.session import Session
from resumes.store import Store, accounts, asking, importers, open_store
from resumes.store.accounts import AccountInfo
from resumes.store.importers import State
from resumes.store.ledger import FileOutcome
from resumes.store.requests import Action
from tests.resumes.store.builders import a_file, an_importer
from tests.resumes.store.conftest import SteppingClock

EVENTS = importers.Finding("events", State.POLLING, "The folder tells of no changes.")
CLOSED = importers.Finding("closed", State.DEGRADED, "Cannot write in ana: chown it.")


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(home=tmp_path)


@pytest.fixture
def store(session: Session, clock: SteppingClock) -> Iterator[Store]:
    with open_store(session.settings().database_url, clock=clock) as store:
        yield store


@pytest.fixture
def account(store: Store) -> AccountInfo:
    return accounts.create_account(store, "acme")


def found(session: Session, store: Store) -> list[Finding]:
    return list(iter_importer_findings(session, store))


def test_none_is_fine_while_nothing_waits_for_one(session: Session, store: Store) -> None:
    [finding] = found(session, store)

    assert finding.remedy is None
    assert "none is running" in finding.text


def test_one_that_is_well_says_what_it_watches(session: Session, store: Store) -> None:
    importers.announce(store, an_importer(waiting=3))
    importers.announce(store, an_importer("2" * 24, root="/srv/other", waiting=None))

    assert found(session, store) == [
        Finding("importer", "watches /srv/inbox (process 4711 on host), 3 files waiting"),
        Finding("importer", "watches /srv/other (process 4711 on host)"),
    ]


def test_one_that_polls_is_well_and_says_so(session: Session, store: Store) -> None:
    importers.announce(store, an_importer(state=State.POLLING, findings=(EVENTS,), waiting=0))

    assert found(session, store) == [
        Finding(
            "importer",
            "watches /srv/inbox (process 4711 on host). The folder tells of no changes",
        )
    ]


def test_one_that_is_degraded_says_why(session: Session, store: Store) -> None:
    importers.announce(store, an_importer(state=State.DEGRADED, findings=(CLOSED, EVENTS)))
    importers.announce(store, an_importer("2" * 24, root="/srv/other", state=State.DEGRADED))

    assert [finding.remedy for finding in found(session, store)] == [
        "Cannot write in ana: chown it. The folder tells of no changes",
        "It is not well; its log says more",
    ]


def test_one_that_has_gone_silent_is_told(
    session: Session, store: Store, clock: SteppingClock
) -> None:
    importers.announce(store, an_importer())
    clock.advance(300)

    [finding] = found(session, store)

    assert finding.text == (
        "process 4711 on host, which watched /srv/inbox, has said nothing for 5 minutes"
    )
    assert finding.remedy == f"If it has ended: {start_line(session, '/srv/inbox')}"


def test_one_that_was_replaced_is_not_wrong(
    session: Session, store: Store, clock: SteppingClock
) -> None:
    importers.announce(store, an_importer("1" * 24))
    clock.advance(300)
    importers.announce(store, an_importer("2" * 24))

    findings = found(session, store)

    assert [finding.remedy for finding in findings] == [None, None]
    assert findings[1].text.endswith("for 5 minutes; another one watches it")


def test_files_that_were_asked_for_and_nobody_takes_up_are_told(
    session: Session, store: Store, account: AccountInfo
) -> None:
    asking.ask(store, [a_file(store, account, "1" * 24)], Action.RETRY)
    asking.ask(store, [a_file(store, account, "2" * 24, root=None)], Action.RETRY)

    assert [(finding.text, finding.remedy) for finding in found(session, store)] == [
        (
            "files were asked for again, and no importer takes them up",
            f"Start one: {start_line(session, None)}",
        ),
        (
            "files of /srv/inbox were asked for again, and no importer takes them up",
            f"Start one: {start_line(session, '/srv/inbox')}",
        ),
    ]
    importers.announce(store, an_importer())
    assert [finding.remedy for finding in found(session, store)] == [None]


def test_files_that_are_held_while_no_importer_runs_are_told(
    session: Session, store: Store, account: AccountInfo
) -> None:
    a_file(store, account, outcome=FileOutcome.HELD, reason="quota_reached")

    [finding] = found(session, store)

    assert "files are held" in finding.text
    assert finding.remedy == f"Start one: {start_line(session, '/srv/inbox')}"
    importers.announce(store, an_importer())
    assert [finding.remedy for finding in found(session, store)] == [None]


def test_the_home_s_inbox_is_watched_by_up(session: Session, tmp_path: Path) -> None:
    inbox = str((tmp_path / "inbox").resolve())

    assert start_line(session, inbox).endswith(" up")
    assert start_line(session, None).endswith(" up")
    assert start_line(session, "/srv/in box").endswith(" watch '/srv/in box'")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1, "1 second"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7_199, "119 minutes"),
        (86_400, "24 hours"),
    ],
)
def test_how_long_ago(seconds: float, said: str) -> None:
    assert span(seconds) == said
