"""A key that no longer counts: from the moment that it has ended, by a command or by time, in every worker."""

import itertools
import math
import random
import time
from datetime import timedelta
from pathlib import Path

import pytest

from resumes.store import Store, accounts, api_keys, open_store
from resumes.store.api_keys import NewKey
from tests.support import programs
from tests.support.api import load
from tests.support.api.load import Client
from tests.support.postgres import server, url
from tests.support.stores import make_account, make_store_file

pytestmark = pytest.mark.slow

__all__ = ["server", "url"]  # fixtures

CLIENTS = 4
AROUND = 4
"""Clients use keys that end soon, or have just ended: so many to either side."""
FIRST_S = 3.0
EVERY_S = 0.02
"""When the first key expires, and how long after it each further one."""


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of the store that the programs of `tmp_path` use."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("url"))
    return make_store_file(tmp_path / "resumes.db")


class Ending:
    """Keys that end in this order, and from when on each is known to have ended.

    They last until they are revoked, or expire one soon after the other.
    """

    def __init__(self, store: Store, count: int, *, expire: bool) -> None:
        self.made: list[NewKey] = []
        self.ended_s: list[float] = []
        self._random = random.Random(17)
        began_s = time.monotonic()
        for number in range(count):
            lifetime_s = began_s + FIRST_S + number * EVERY_S - time.monotonic()
            lifetime = timedelta(seconds=lifetime_s) if expire else None
            self.made.append(api_keys.create_key(store, "ana", lifetime=lifetime))
            self.ended_s.append(time.monotonic() + lifetime_s if expire else math.inf)

    def choose(self) -> int:
        """One that ends about now."""
        now_s = time.monotonic()
        ended = sum(at_s <= now_s for at_s in self.ended_s)
        near = ended + self._random.randint(-AROUND, AROUND)
        return max(0, min(near, len(self.made) - 1))


@pytest.mark.parametrize(
    ("revoked", "expired"), [(40, 20), pytest.param(1_000, 200, marks=pytest.mark.campaign)]
)
def test_no_request_that_begins_after_a_key_has_ended_is_let_in(
    address: str, tmp_path: Path, revoked: int, expired: int
) -> None:
    make_account(address, "ana")
    with open_store(address) as store, programs.serving(tmp_path, "--workers", "2") as api:
        by_hand = Ending(store, revoked, expire=False)
        by_time = Ending(store, expired, expire=True)
        kinds = {"hand": by_hand, "time": by_time}

        def make(number: int) -> tuple[str, bytes]:
            name = "time" if number % 3 == 0 else "hand"
            at = kinds[name].choose()
            secret = kinds[name].made[at].secret
            if number % 2:
                return f"{name} {at}", load.a_request(secret)
            return f"{name} {at}", load.a_request(secret, "POST", body=load.a_body(str(number)))

        clients = [Client(api, make) for _ in range(CLIENTS)]
        with load.running(clients):
            for at, key in enumerate(by_hand.made):
                api_keys.revoke_key(store, key.id)
                by_hand.ended_s[at] = time.monotonic()
            while time.monotonic() < by_time.ended_s[-1] + 0.2:
                time.sleep(0.05)
        attempts = load.attempts_of(clients)
        swept = [
            load.call(api, load.a_request(key.secret))
            for key in itertools.chain(by_hand.made, by_time.made)
        ]

        resumes = accounts.get_account(store, "ana").resume_count
    let_in, refused = [], 0
    for one in attempts:
        name, number = one.title.split()
        at = int(number)
        assert one.answer is not None
        if one.began_s > kinds[name].ended_s[at]:
            let_in += [one] if one.answer.status != 401 else []
            refused += 1
        elif name == "hand" and one.answer.status == 401:
            before = kinds[name].ended_s[at - 1] if at else 0.0
            assert one.ended_s > before, "refused before it was revoked"
    assert let_in == []
    assert refused > revoked + expired
    assert {answer.status for answer in swept} == {401}
    assert resumes == load.acknowledged(clients) > 0
