"""The rules of those who look after the service: accounts, plans, keys, its ending and beginning."""

from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from resumes.errors import Conflict, NotFound
from resumes.store import accounts, keys
from tests.stateful.model import Account, Key, Plan
from tests.stateful.world import HOUR_US, KEYS, NAMES, NO_KEY, PLANS, World

PLAN_NAMES = st.sampled_from(list(PLANS))
DELETIONS = st.sampled_from(["if empty", "if empty", "cut off", "with resumes"])


class Admins(World):
    """What is done at the command line and in the terminal UI."""

    @rule(target=KEYS, name=NAMES, plan=PLAN_NAMES)
    def create_account(self, name: str, plan: str) -> Key:
        """There is a new account with a key, unless the name is taken."""
        if name not in self.model.accounts:
            return self.add_key(self.add_account(name, plan))
        with pytest.raises(Conflict):
            accounts.create_account(self.reach.store, name, plan=plan)
        return NO_KEY

    @rule(name=NAMES, how=DELETIONS)
    def delete_account(self, name: str, how: str) -> None:
        """An account is gone, with its resumes only if that was said.

        Cut off, a deletion leaves an account that nobody can use.
        """
        account = self.model.accounts.get(name)
        if account is None or (account.resumes and how == "if empty"):
            with pytest.raises(NotFound if account is None else Conflict):
                self._delete_account(name, how)
            return
        there = len(account.resumes)
        gone = self._delete_account(name, how)
        assert gone == (min(accounts.SLICE_RESUMES, there) if how == "cut off" else there)
        if how != "cut off" or not gone:  # without resumes there is nothing to be cut off in
            del self.model.accounts[name]
        self._end(account, gone)

    def _delete_account(self, name: str, how: str) -> int:
        return accounts.delete_account(
            self.reach.store,
            name,
            with_resumes=how != "if empty",
            goes_on=lambda gone: how != "cut off",
        )

    def _end(self, account: Account, gone: int) -> None:
        """The account is closed, and so many of its resumes are gone, oldest first."""
        account.is_open = False
        for resume_id in list(account.resumes)[:gone]:
            del account.resumes[resume_id]
        account.contents.clear()

    @rule(name=NAMES, plan=PLAN_NAMES)
    def choose_plan(self, name: str, plan: str) -> None:
        """An account is on another plan."""
        account = self.model.find_open(name)
        if account is not None:
            accounts.set_plan(self.reach.store, name, plan)
            account.plan = plan
            return
        with pytest.raises(NotFound):
            accounts.set_plan(self.reach.store, name, plan)

    @rule(
        name=PLAN_NAMES,
        most=st.sampled_from([0, 1, 2, 3, 5, None]),
        lists=st.sampled_from([True, True, False]),
    )
    def change_plan(self, name: str, most: int | None, lists: bool) -> None:
        """All on a plan may have more or fewer resumes, and list them or not."""
        self.set_plan(name, Plan(most, lists))

    @rule(target=KEYS, name=NAMES, hours=st.sampled_from([None, 1, 48]))
    def create_key(self, name: str, hours: int | None) -> Key:
        """An account has another key, perhaps for some hours only."""
        account = self.model.find_open(name)
        if account is not None:
            return self.add_key(account, hours)
        with pytest.raises(NotFound):
            keys.create_key(self.reach.store, name)
        return NO_KEY

    @rule(key=KEYS)
    def revoke_key(self, key: Key) -> None:
        """A key counts no more."""
        if not key.account.is_open:
            with pytest.raises(NotFound):
                keys.revoke_key(self.reach.store, key.id)
            return
        keys.revoke_key(self.reach.store, key.id)
        key.is_revoked = True
        self.use_all_keys()

    @rule(target=KEYS, key=KEYS, hours=st.sampled_from([0, 1, 48]))
    def rotate_key(self, key: Key, hours: int) -> Key:
        """Another key takes the place of one that counts, at once or after some hours."""
        now_us = self.reach.now_us()
        grace = timedelta(hours=hours)
        if not key.counts(now_us):
            with pytest.raises(Conflict if key.account.is_open else NotFound):
                keys.rotate_key(self.reach.store, key.id, grace=grace)
            return NO_KEY
        new = keys.rotate_key(self.reach.store, key.id, grace=grace)
        until_us = now_us + hours * HOUR_US
        key.expires_us = until_us if key.expires_us is None else min(key.expires_us, until_us)
        self.use_all_keys()
        return self.keep(Key(key.account, new.id, new.secret))

    @rule()
    def restart(self) -> None:
        """Everything is as it was before."""
        self.reach.restart()

    @rule(hours=st.sampled_from([1, 25, -2]))
    def pass_hours(self, hours: int) -> None:
        """It is later, or the clock was set back."""
        self.reach.pass_s(timedelta(hours=hours).total_seconds())
        self.use_all_keys()
