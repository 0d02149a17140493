"""What is found of importers."""

from resumes.health.findings import Finding
from resumes.health.importers import iter_importer_findings
from resumes.health.installation import Installation
from resumes.store import Store, asking, importers
from resumes.store.accounts import AccountInfo
from resumes.store.importers import State
from resumes.store.ledger import FileOutcome
from resumes.store.requests import Action
from tests.resumes.store.builders import a_file, an_importer
from tests.resumes.store.conftest import SteppingClock

EVENTS = importers.Finding("events", State.POLLING, "The folder tells of no changes.")
CLOSED = importers.Finding("closed", State.DEGRADED, "Cannot write in ana: chown it.")


def found(installation: Installation, store: Store) -> list[Finding]:
    return list(iter_importer_findings(installation, store))


def test_none_is_fine_while_nothing_waits_for_one(installation: Installation, store: Store) -> None:
    [finding] = found(installation, store)

    assert finding.remedy is None
    assert "none is running" in finding.text


def test_one_that_is_well_says_what_it_watches(installation: Installation, store: Store) -> None:
    importers.announce(store, an_importer(waiting=3))
    importers.announce(store, an_importer("2" * 24, root="/srv/other", waiting=None))

    assert found(installation, store) == [
        Finding(
            "importer",
            "watches /srv/inbox (process 4711 on host), 3 files waiting",
            about="1" * 24,
        ),
        Finding("importer", "watches /srv/other (process 4711 on host)", about="2" * 24),
    ]


def test_one_that_polls_is_well_and_says_so(installation: Installation, store: Store) -> None:
    importers.announce(store, an_importer(state=State.POLLING, findings=(EVENTS,), waiting=0))

    assert found(installation, store) == [
        Finding(
            "importer",
            "watches /srv/inbox (process 4711 on host). The folder tells of no changes",
            about="1" * 24,
        )
    ]


def test_one_that_is_degraded_says_why(installation: Installation, store: Store) -> None:
    importers.announce(store, an_importer(state=State.DEGRADED, findings=(CLOSED, EVENTS)))
    importers.announce(store, an_importer("2" * 24, root="/srv/other", state=State.DEGRADED))

    assert [finding.remedy for finding in found(installation, store)] == [
        "Cannot write in ana: chown it. The folder tells of no changes",
        "It is not well; its log says more",
    ]


def test_one_that_has_gone_silent_is_told(
    installation: Installation, store: Store, clock: SteppingClock
) -> None:
    importers.announce(store, an_importer())
    clock.advance(300)

    [finding] = found(installation, store)

    assert finding.text == (
        "process 4711 on host, which watched /srv/inbox, has said nothing for 5 minutes"
    )
    assert finding.remedy == f"If it has ended: {installation.start_line('/srv/inbox')}"


def test_one_that_was_replaced_is_not_wrong(
    installation: Installation, store: Store, clock: SteppingClock
) -> None:
    importers.announce(store, an_importer("1" * 24))
    clock.advance(300)
    importers.announce(store, an_importer("2" * 24))

    findings = found(installation, store)

    assert [finding.remedy for finding in findings] == [None, None]
    assert findings[1].text.endswith("for 5 minutes; another one watches it")


def test_files_that_were_asked_for_and_nobody_takes_up_are_told(
    installation: Installation, store: Store, account: AccountInfo
) -> None:
    asking.ask(store, [a_file(store, account, "1" * 24)], Action.RETRY)
    asking.ask(store, [a_file(store, account, "2" * 24, root=None)], Action.RETRY)

    assert [(finding.text, finding.remedy) for finding in found(installation, store)] == [
        (
            "files were asked for again, and no importer takes them up",
            f"Start one: {installation.start_line(None)}",
        ),
        (
            "files of /srv/inbox were asked for again, and no importer takes them up",
            f"Start one: {installation.start_line('/srv/inbox')}",
        ),
    ]
    importers.announce(store, an_importer())
    assert [finding.remedy for finding in found(installation, store)] == [None]


def test_files_that_are_held_while_no_importer_runs_are_told(
    installation: Installation, store: Store, account: AccountInfo
) -> None:
    a_file(store, account, outcome=FileOutcome.HELD, reason="quota_reached")

    [finding] = found(installation, store)

    assert "files are held" in finding.text
    assert finding.remedy == f"Start one: {installation.start_line('/srv/inbox')}"
    importers.announce(store, an_importer())
    assert [finding.remedy for finding in found(installation, store)] == [None]
