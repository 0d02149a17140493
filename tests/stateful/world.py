"""What all rules share: one installation, what the model says of it, and what holds after each."""

import contextlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
)

from resumes.store import accounts, api_keys, plans, stored_resumes
from resumes.store.plans import PlanChange
from tests.stateful import requests
from tests.stateful.files import LABEL, File, Item
from tests.stateful.imports import Imports
from tests.stateful.in_process import InProcess
from tests.stateful.model import (
    Account,
    Backup,
    Chain,
    Export,
    Key,
    Model,
    Plan,
    check,
    check_view,
    list_entries,
)
from tests.stateful.requests import Body, Look, a_body
from tests.support.documents import public_view, whole_view

KEYS: Final[Bundle[Key]] = Bundle("keys")
BODIES: Final[Bundle[Body]] = Bundle("bodies")
CHAINS: Final[Bundle[Chain]] = Bundle("chains")
EXPORTS: Final[Bundle[Export]] = Bundle("exports")
SavedStore = tuple[Backup, dict[File, dict[int, Item]]]
"""A store of one moment in a file, and the items that each dropped file had then."""

BACKUPS: Final[Bundle[SavedStore]] = Bundle("backups")

HOUR_US: Final = timedelta(hours=1) // timedelta(microseconds=1)

PLANS: Final = {"free": Plan(1, False), "pro": Plan(3, True), "business": Plan(4, True)}
"""As they are at the beginning: small, so that they are reached."""

FIRST_BODIES: Final = 6
"""More than the smaller plans have room for."""

NAMES: Final = st.sampled_from(["ana", "bo"])
LABELS: Final = st.sampled_from([None, "a", LABEL])
PLACES: Final = st.integers(0, 9)
"""Which of several, counted round and round, so that what is drawn never depends on how many."""

NO_KEY: Final = Key(
    Account("nobody", "0" * 16, "free", is_open=False), "key_000000000000", f"enh_live_{'0' * 64}"
)
"""What is used where there is no key to be had; it has the form of one."""


class World(RuleBasedStateMachine):
    """An installation with the accounts `ana`, on the business plan, and `bo`, on a smaller one."""

    def __init__(self, make: Callable[[], AbstractContextManager[InProcess]]) -> None:
        super().__init__()
        self._last = contextlib.ExitStack()
        self.reach = self._last.enter_context(make())
        self.model = Model()
        self.imports = Imports(self.model, self.reach.root)
        self._bodies = 0
        self.keys: list[Key] = []
        self.chains: list[Chain] = []

    @initialize(target=KEYS)
    def begin(self) -> MultipleResults[Key]:
        """There are plans, two accounts, and a key of each."""
        for name, plan in PLANS.items():
            self.set_plan(name, plan)
        made = [self.add_account("ana", "business"), self.add_account("bo", "pro")]
        return multiple(*(self.add_key(account) for account in made))

    @initialize(target=BODIES)
    def begin_with_bodies(self) -> MultipleResults[Body]:
        """There is something to send."""
        return multiple(*(self.new_body(Look.PLAIN) for _ in range(FIRST_BODIES)))

    def set_plan(self, name: str, plan: Plan) -> None:
        """The plan is so from now on."""
        change = PlanChange(name, plan.most, api_listing=plan.lists)
        plans.set_plan_limits(self.reach.store, change)
        self.model.plans[name] = Plan(plan.most, plan.lists)

    def add_account(self, name: str, plan: str) -> Account:
        """The account exists, with a folder."""
        made = accounts.create_account(self.reach.store, name, plan=plan, takes_folder=True)
        self.model.take_name(name)
        (self.reach.root / name).mkdir(exist_ok=True)
        self.model.accounts[name] = Account(name, made.id, plan)
        return self.model.accounts[name]

    def add_key(self, account: Account, hours: int | None = None) -> Key:
        """A new key, which never expires unless hours are given."""
        lifetime = None if hours is None else timedelta(hours=hours)
        expires_us = None if hours is None else self.reach.now_us() + hours * HOUR_US
        new = api_keys.create_key(self.reach.store, account.name, lifetime=lifetime)
        return self.keep(Key(account, new.id, new.secret, expires_us))

    def keep(self, key: Key) -> Key:
        """The key is the newest of its account."""
        self.keys.append(key)
        return key

    def find_key(self, account: Account) -> Key | None:
        """The account's newest key that counts; its newest if none does."""
        mine = [key for key in reversed(self.keys) if key.account is account]
        now_us = self.reach.now_us()
        return next((key for key in mine if key.counts(now_us)), mine[0] if mine else None)

    def key_of(self, name: str) -> Key:
        """A key of the account of this name, if there is one."""
        account = self.model.accounts.get(name)
        return (account and self.find_key(account)) or NO_KEY

    def use_all_keys(self) -> None:
        """Every key is as good as it should be."""
        for key in self.keys:
            expected = self.model.lists(key, self.reach.now_us())
            check(self.reach.ask(requests.listing("", 1), key.secret), expected)

    def new_body(self, look: Look) -> Body:
        """A resume like no other."""
        self._bodies += 1
        return a_body(self._bodies, look)

    def resume_of(self, name: str, place: int) -> str:
        """The id of one of the account's resumes; if it has none, one that there is not."""
        account = self.model.accounts.get(name)
        return "0" * 24 if account is None else account.nth(place)

    @invariant()
    def everything_is_where_it_was_put(self) -> None:
        """Counters are right, and each account has its resumes in their order, and no others."""
        store = self.reach.store
        assert accounts.list_wrong(store) == []
        known = {one.name: one.id for one in accounts.list_accounts(store)}
        mine = [one for one in self.model.accounts.values() if one.is_open]
        assert known == {account.name: account.id for account in mine}
        for account in mine:
            found = [(one.id, one.name, one.label) for one in list_entries(store, account)]
            resumes = account.resumes.items()
            assert found == [(id_, one.body.name, one.label) for id_, one in resumes]

    def teardown(self) -> None:
        """Unless a rule failed: what is left to import is imported, and all are as they were sent."""
        with self._last:
            if sys.exc_info()[0] is None:
                self.drain_folder()
                self._check_documents()

    def drain_folder(self) -> None:
        """An importer has drained the folder, and did so rightly."""
        since_us = self.reach.now_us()
        self.reach.drain()
        until_us = self.reach.now_us()
        self.imports.note(self.reach.store, since_us=since_us, until_us=until_us, is_drained=True)

    def _check_documents(self) -> None:
        for account in self.model.accounts.values():
            for resume_id in account.resumes:
                stored = stored_resumes.get_resume(self.reach.store, account.id, resume_id)
                assert whole_view(stored.document)["isImported"] is True
                check_view(public_view(stored.document), account, resume_id)
