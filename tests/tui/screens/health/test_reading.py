"""What the screen shows, as it is read."""

from pathlib import Path

import pytest

from resumes.errors import StoreUnavailable
from resumes.health.findings import State
from resumes.health.slow import SlowAnswers
from resumes.settings import Settings
from resumes.store import accounts
from resumes.store.engine import Store
from tui.screens.health.reading import Health, read_health


def read(store: Store, home: Path) -> Health:
    return read_health(
        store,
        settings=Settings(home=home),
        program="resumes --home '/srv/a b'",
        slow=SlowAnswers(),
    )


def test_the_store_stays_open(store: Store, tmp_path: Path) -> None:
    read(store, tmp_path)

    assert accounts.list_accounts(store)


def test_what_is_wrong_comes_first_and_then_the_order_of_the_checks(
    store: Store, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "inbox" / "nobody").mkdir(parents=True)

    health = read(store, tmp_path)

    assert [one.subject for one in health.findings][:4] == ["inbox", "settings", "home", "disk"]
    assert health.findings[0].state is State.WRONG
    assert health.gauges.accounts == 1


def test_a_store_that_is_away_is_no_finding(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Store) -> None:
        raise StoreUnavailable("The store is locked")

    monkeypatch.setattr(accounts, "list_accounts", fail)
    with pytest.raises(StoreUnavailable):
        read(store, tmp_path)
