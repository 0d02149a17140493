import threading

import pytest

from importer.health import Finding, Health, HealthState

LIMIT_S = 60.0


@pytest.fixture
def told() -> list[Finding]:
    return []


@pytest.fixture
def health(told: list[Finding]) -> Health:
    return Health(told.append)


def test_without_findings_all_is_well(health: Health) -> None:
    assert health.state is HealthState.OK
    assert health.findings() == ()


def test_the_state_is_the_worst_of_the_findings_and_they_begin_with_it(health: Health) -> None:
    health.polling("mount", "On a share")
    states = [health.state]
    health.degraded("store", "Out of reach")
    states.append(health.state)
    assert [finding.key for finding in health.findings()] == ["store", "mount"]
    health.ok("store")
    states.append(health.state)
    assert states == [HealthState.POLLING, HealthState.DEGRADED, HealthState.POLLING]


def test_a_change_is_told_once(health: Health, told: list[Finding]) -> None:
    health.degraded("root", "Gone")
    health.degraded("root", "Gone")
    assert told == [Finding("root", HealthState.DEGRADED, "Gone")]


def test_another_sentence_and_another_state_are_changes(
    health: Health, told: list[Finding]
) -> None:
    health.degraded("root", "Gone")
    health.degraded("root", "No folder")
    health.polling("root", "No folder")
    assert [(finding.state, finding.sentence) for finding in told] == [
        (HealthState.DEGRADED, "Gone"),
        (HealthState.DEGRADED, "No folder"),
        (HealthState.POLLING, "No folder"),
    ]


def test_what_is_over_is_told_once_and_by_what_it_was(health: Health, told: list[Finding]) -> None:
    health.ok("root")
    assert told == []
    health.degraded("root", "Gone")
    health.ok("root")
    health.ok("root")
    assert told[1:] == [Finding("root", HealthState.OK, "Gone")]
    health.degraded("root", "Gone")
    assert len(told) == 3


def test_who_is_told_may_ask_and_change(told: list[Finding]) -> None:
    states: list[HealthState] = []

    def tell(finding: Finding) -> None:
        told.append(finding)
        states.append(asked.state)
        if finding.key == "root":
            asked.polling("other", "Found while telling")

    asked = Health(tell)
    asked.degraded("root", "Gone")
    assert [finding.key for finding in told] == ["root", "other"]
    assert states == [HealthState.DEGRADED, HealthState.DEGRADED]


def test_readers_do_not_wait_for_who_is_told() -> None:
    is_telling = threading.Event()
    may_end = threading.Event()

    def tell(finding: Finding) -> None:
        is_telling.set()
        assert may_end.wait(LIMIT_S)

    health = Health(tell)
    thread = threading.Thread(target=health.degraded, args=("root", "Gone"))
    thread.start()
    assert is_telling.wait(LIMIT_S)
    states: list[HealthState] = []
    reader = threading.Thread(target=lambda: states.append(health.state))
    reader.start()
    reader.join(LIMIT_S / 2)
    may_end.set()
    thread.join(LIMIT_S)
    assert states == [HealthState.DEGRADED]
