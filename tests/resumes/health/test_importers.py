"""What is found of importers."""

from pathlib import Path
from typing import Any

import pytest

from resumes.health import findings
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


class _OfAServer:
    """A database that is in no file."""

    path = None

    def __init__(self, database: Any) -> None:
        self._database = database

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


@pytest.fixture
def inbox(tmp_path: Path) -> str:
    """The home's own, as importers call it."""
    return str((tmp_path / "inbox").resolve())


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


def test_one_of_the_home_that_has_gone_silent_is_wrong(
    installation: Installation, store: Store, clock: SteppingClock, inbox: str
) -> None:
    importers.announce(store, an_importer(root=inbox))
    clock.advance(300)

    [finding] = found(installation, store)

    assert finding.state is findings.State.WRONG
    assert finding.text == (
        f"process 4711 on host, which watched {inbox}, has said nothing for 5 minutes"
    )
    assert (finding.remedy, finding.command) == ("If it has ended: resumes up", "resumes up")


def test_one_of_another_folder_that_has_gone_silent_is_told_and_not_to_be_typed_for(
    installation: Installation, store: Store, clock: SteppingClock
) -> None:
    importers.announce(store, an_importer(root="/srv/original/inbox"))
    clock.advance(300)

    [finding] = found(installation, store)

    assert finding.state is findings.State.NOTICE
    assert "watched /srv/original/inbox, has said nothing for 5 minutes" in finding.text
    assert "is forgotten after 24 hours" in (finding.remedy or "")
    assert finding.command is None
    assert "watch" not in (finding.remedy or "")


def test_one_of_another_machine_is_not_started_here(
    installation: Installation, store: Store, clock: SteppingClock, inbox: str
) -> None:
    store.database = _OfAServer(store.database)
    importers.announce(store, an_importer(root=inbox))
    clock.advance(300)

    [elsewhere] = iter_importer_findings(installation, store, host="other")
    [here] = iter_importer_findings(installation, store, host="host")

    assert elsewhere.state is findings.State.NOTICE
    assert here.command == "resumes up"


def test_one_that_was_replaced_is_not_wrong(
    installation: Installation, store: Store, clock: SteppingClock
) -> None:
    importers.announce(store, an_importer("1" * 24))
    clock.advance(300)
    importers.announce(store, an_importer("2" * 24))

    first, second = found(installation, store)

    assert (first.remedy, second.remedy) == (None, None)
    assert second.text.endswith("for 5 minutes; another one watches it")


def test_files_that_were_asked_for_and_nobody_takes_up_are_told(
    installation: Installation, store: Store, account: AccountInfo, inbox: str
) -> None:
    asking.ask(store, [a_file(store, account, "1" * 24, root=inbox)], Action.RETRY)
    asking.ask(store, [a_file(store, account, "2" * 24, root=None)], Action.RETRY)

    assert [(finding.text, finding.remedy) for finding in found(installation, store)] == [
        (
            "files were asked for again, and no importer takes them up",
            "Start one: resumes up",
        ),
        (
            f"files of {inbox} were asked for again, and no importer takes them up",
            "Start one: resumes up",
        ),
    ]
    importers.announce(store, an_importer(root=inbox))
    assert [finding.remedy for finding in found(installation, store)] == [None]


def test_for_files_of_another_folder_no_command_is_named(
    installation: Installation, store: Store, account: AccountInfo
) -> None:
    asking.ask(store, [a_file(store, account, root="/srv/moved")], Action.RETRY)

    [finding] = found(installation, store)

    assert finding.text.startswith("files of /srv/moved were asked for again")
    assert (finding.state, finding.command) == (findings.State.NOTICE, None)
    assert (finding.remedy or "").startswith("Start the one of /srv/moved again, or `resumes up`")


def test_files_that_are_held_while_no_importer_runs_are_told(
    installation: Installation, store: Store, account: AccountInfo, inbox: str
) -> None:
    a_file(store, account, "2" * 24, FileOutcome.HELD, reason="quota_reached", root="/srv/original")
    [elsewhere] = found(installation, store)
    a_file(store, account, outcome=FileOutcome.HELD, reason="quota_reached", root=inbox)

    [finding] = found(installation, store)

    assert "files are held" in finding.text
    assert (elsewhere.state, elsewhere.command) == (findings.State.NOTICE, None)
    assert finding.remedy == "Start one: resumes up"
    importers.announce(store, an_importer())
    assert [finding.remedy for finding in found(installation, store)] == [None]
