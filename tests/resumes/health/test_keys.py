"""Keys that nobody has."""

from resumes.health.findings import Finding, State
from resumes.health.installation import Installation
from resumes.health.keys import MANY, READING, iter_key_findings
from resumes.store import Store, keys
from resumes.store.accounts import AccountInfo
from tests.resumes.store.conftest import SteppingClock

LONG_S = READING.total_seconds() + 1


def found(installation: Installation, store: Store) -> list[Finding]:
    return list(iter_key_findings(installation, store))


def test_a_key_that_was_shown_or_is_being_shown_is_well(
    installation: Installation, store: Store, account: AccountInfo, clock: SteppingClock
) -> None:
    shown = keys.create_key(store, account.name)
    keys.mark_shown(store, shown.id)
    clock.advance(LONG_S)
    keys.create_key(store, account.name)

    [finding] = found(installation, store)

    assert (finding.state, finding.text) == (State.WELL, "2 keys in use or ready to be")


def test_a_key_that_was_never_shown_is_told_until_it_is_revoked(
    installation: Installation, store: Store, account: AccountInfo, clock: SteppingClock
) -> None:
    new = keys.create_key(store, account.name)
    clock.advance(LONG_S)

    [finding] = found(installation, store)

    assert finding.state is State.NOTICE
    assert finding.text == f"{new.id} of acme was never shown, so nobody can use it"
    assert finding.command == f"resumes keys revoke {new.id}"
    keys.revoke_key(store, new.id)
    assert [one.state for one in found(installation, store)] == [State.WELL]


def test_many_are_counted(
    installation: Installation, store: Store, account: AccountInfo, clock: SteppingClock
) -> None:
    for _ in range(MANY + 2):
        keys.create_key(store, account.name)
    clock.advance(LONG_S)

    findings = found(installation, store)

    assert len(findings) == MANY + 1
    assert findings[-1].text == "2 further keys never shown"
