"""What is found out about a server that keeps the store."""

from collections.abc import Iterator

import pytest

from resumes.health import checks, postgresql
from resumes.health.findings import State
from resumes.health.installation import Installation
from resumes.health.postgresql import ServerFacts, iter_server_findings, read_facts
from resumes.settings import Settings
from resumes.store import open_store
from resumes.store.postgresql.lanes import WRITERS
from server.readers import READERS
from tests import postgres
from tests.resumes.health.conftest import command_line

SOUND = ServerFacts("18.4", "on", "on", "on", "100", "3", "0")


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    with postgres.running("18", settings={"max_connections": "30"}) as server:
        yield server


def test_a_sound_server_is_named_alone() -> None:
    [finding] = iter_server_findings(SOUND, workers=1)

    assert (finding.state, finding.text) == (State.WELL, "version 18.4")


def test_a_server_that_says_little_is_well() -> None:
    [finding] = iter_server_findings(ServerFacts(None, None, None, None, None), workers=64)

    assert (finding.state, finding.text) == (State.WELL, "version unknown")


@pytest.mark.parametrize("setting", ["synchronous_commit", "fsync", "full_page_writes"])
def test_a_server_that_may_forget_is_worth_a_look(setting: str) -> None:
    facts = ServerFacts(**SOUND._asdict() | {setting: "off"})

    [_, finding] = iter_server_findings(facts, workers=1)

    assert finding.state is State.NOTICE
    assert finding.text.startswith(f"{setting} is off: ")
    assert finding.remedy == f"Set {setting} to on"


def test_a_standby_is_wrong() -> None:
    [_, finding] = iter_server_findings(SOUND._replace(is_standby=True), workers=1)

    assert finding.state is State.WRONG
    assert "target_session_attrs=read-write" in (finding.remedy or "")


def test_a_server_needs_room_for_the_workers() -> None:
    assert [one.state for one in iter_server_findings(SOUND, workers=5)] == [State.WELL]

    [_, finding] = iter_server_findings(SOUND, workers=6)

    assert finding.state is State.NOTICE
    assert finding.text == "takes 97 connections, and this machine alone may want 104"


def test_a_worker_has_as_many_connections_as_it_is_counted_for() -> None:
    readiness = figures = 1
    assert WRITERS + READERS + readiness + figures == postgresql.CONNECTIONS_OF_A_WORKER


def test_the_doctor_looks_at_the_server_in_place_of_sqlite(
    server: postgres.Server, settings: Settings
) -> None:
    url = server.url(server.make_database())
    settings = settings.model_copy(update={"database": url})
    with open_store(url) as store:
        facts = read_facts(store)
        installation = Installation(lambda: settings, lambda: open_store(url), command_line)

        found = list(checks.iter_findings(installation))

    assert facts.version is not None
    assert facts.version.startswith("18.")
    assert (facts.fsync, facts.room, facts.is_standby) == ("off", 27, False)
    # The servers of tests do not last, and are small.
    assert [(one.subject, one.about) for one in found if one.state is State.NOTICE] == [
        ("server", "fsync"),
        ("server", "full_page_writes"),
        ("server", "max_connections"),
    ]
    assert [one for one in found if one.state is State.WRONG] == []
    assert "SQLite" not in {one.subject for one in found}
    size = next(one for one in found if one.subject == "size")
    assert "log" not in size.text


def test_a_server_that_is_not_there_has_a_remedy(settings: Settings) -> None:
    url = "postgresql://ada:secret@127.0.0.1:1/resumes"
    settings = settings.model_copy(update={"database": url})
    installation = Installation(lambda: settings, lambda: open_store(url), command_line)

    last = list(checks.iter_findings(installation))[-1]

    assert (last.subject, last.state) == ("store", State.WRONG)
    assert "postgresql://127.0.0.1:1/resumes cannot be used now" in last.text
    assert "Connection refused" in last.text
    assert "secret" not in f"{last}"
    assert (last.remedy or "").startswith("See that the server runs")


def test_an_address_that_is_none_has_a_remedy(settings: Settings) -> None:
    settings = settings.model_copy(update={"database": "mysql://h/db"})
    installation = Installation(
        lambda: settings, lambda: open_store(settings.database_url), command_line
    )

    last = list(checks.iter_findings(installation))[-1]

    assert last.text.startswith('Invalid database "mysql://h/db"')
    assert (last.remedy or "").startswith("Correct the address")
