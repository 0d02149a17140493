"""The rules of those who manage the service: accounts, plans, keys, its ending and beginning."""

import secrets
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import MultipleResults, multiple, rule

from resumes.errors import Conflict, NotFound
from resumes.store import accounts, api_keys, labels, search, stored_resumes
from resumes.store.identifiers import POSITION_DIGITS
from resumes.store.transfer.account_import import import_account
from tests.stateful.model import Account, Chain, Export, Key, Plan
from tests.stateful.world import (
    BACKUPS,
    EXPORTS,
    HOUR_US,
    KEYS,
    LABELS,
    NAMES,
    NO_KEY,
    PLACES,
    PLANS,
    SavedStore,
    World,
)
from tests.support.inbox import oracle
from tests.support.store.builders import exported

PLAN_NAMES = st.sampled_from(list(PLANS))
DELETIONS = st.sampled_from(["if empty", "if empty", "cut off", "with resumes"])


MOST_BACKUPS = 3
MOST_MOVES = 3
"""Of a store, copied or restored: they take longer than all else."""


class Admins(World):
    """What is done at the command line and in the terminal UI."""

    _backups = 0
    _moves = 0

    @rule(target=KEYS, name=NAMES, plan=PLAN_NAMES)
    def create_account(self, name: str, plan: str) -> Key:
        """There is a new account with a key, unless the name is taken; one that had it loses it."""
        if name not in self.model.accounts:
            return self.add_key(self.add_account(name, plan))
        with pytest.raises(Conflict):
            accounts.create_account(self.reach.store, name, plan=plan)
        return NO_KEY

    @rule(name=NAMES, places=st.lists(PLACES, min_size=1, max_size=3), label=LABELS)
    def label(self, name: str, places: list[int], label: str | None) -> None:
        """Some resumes have another label, or none."""
        account = self.model.find_open(name)
        if account is None:
            return
        ids = [*dict.fromkeys(account.nth(place) for place in places)]
        done = labels.set_label(self.reach.store, account.id, ids, label)
        assert done == len(account.resumes.keys() & ids)
        for resume_id in account.resumes.keys() & ids:
            account.label(resume_id, label)

    @rule(name=NAMES, label=LABELS.filter(bool))
    def delete_label(self, name: str, label: str) -> None:
        """All resumes of a label are gone."""
        account = self.model.find_open(name)
        if account is None:
            return
        found = search.iter_entries(self.reach.store, account.id, label=label)
        ids = [entry.id for entry in found]
        assert ids == account.with_label(label)
        assert stored_resumes.delete_resumes(self.reach.store, account.id, ids) == len(ids)
        for resume_id in ids:
            account.remove(resume_id)

    @rule(name=NAMES, new=NAMES)
    def rename_account(self, name: str, new: str) -> None:
        """An account has another name, unless that is taken; the folder of its old name stays its own."""
        account = self.model.find_open(name)
        if account is None or new in self.model.accounts:
            with pytest.raises(NotFound if account is None else Conflict):
                accounts.rename_account(self.reach.store, name, new, takes_folder=True)
            return
        renamed = accounts.rename_account(self.reach.store, name, new, takes_folder=True)
        self.model.rename(account, new)
        (self.reach.root / new).mkdir(exist_ok=True)
        assert renamed.folders == [new, *account.former]

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
            should_continue=lambda gone: how != "cut off",
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
            api_keys.create_key(self.reach.store, name)
        return NO_KEY

    @rule(key=KEYS)
    def revoke_key(self, key: Key) -> None:
        """A key counts no more."""
        if not key.account.is_open:
            with pytest.raises(NotFound):
                api_keys.revoke_key(self.reach.store, key.id)
            return
        api_keys.revoke_key(self.reach.store, key.id)
        key.is_revoked = True
        self.use_all_keys()

    @rule(target=KEYS, key=KEYS, hours=st.sampled_from([0, 1, 48]))
    def rotate_key(self, key: Key, hours: int) -> Key:
        """Another key takes the place of one that counts, at once or after some hours."""
        now_us = self.reach.now_us()
        grace = timedelta(hours=hours)
        if not key.can_be_rotated(now_us):
            with pytest.raises(Conflict if key.account.is_open else NotFound):
                api_keys.rotate_key(self.reach.store, key.id, grace=grace)
            return NO_KEY
        new = api_keys.rotate_key(self.reach.store, key.id, grace=grace)
        until_us = now_us + hours * HOUR_US
        key.expires_us = until_us if key.expires_us is None else min(key.expires_us, until_us)
        self.use_all_keys()
        key.successor = self.keep(Key(key.account, new.id, new.secret))
        return key.successor

    @rule(target=EXPORTS, name=NAMES, with_keys=st.booleans())
    def export_account(self, name: str, with_keys: bool) -> Export | MultipleResults[Export]:
        """An account is in a file as well."""
        account = self.model.find_open(name)
        if account is None:
            with pytest.raises(NotFound):
                exported(self.reach.store, self._export_path(), name)
            return multiple()
        keys_too = [key for key in self.keys if key.account is account and not key.is_revoked]
        return Export(
            exported(self.reach.store, self._export_path(), name, with_keys=with_keys),
            account,
            account.plan,
            account.last_id,
            dict(account.resumes),
            dict(account.contents),
            dict(account.imported),
            {key: replace(key) for key in keys_too} if with_keys else {},
        )

    def _export_path(self) -> Path:
        """Where no export is yet."""
        return self.reach.root.parent / f"{secrets.token_hex(8)}.account"

    @rule(export=EXPORTS, name=NAMES)
    def import_account(self, export: Export, name: str) -> None:
        """There is an account as it was in a file, under this name unless that or a key is taken, or another
        account had it."""
        if any(key.is_revoked and key.account.is_open for key in export.keys):
            return  # the key would be that of two accounts, of which one has revoked it
        had = any(name in account.former for account in self.model.accounts.values())
        if name in self.model.accounts or had or any(key.account.is_open for key in export.keys):
            with pytest.raises(Conflict):
                import_account(self.reach.store, export.path, name=name)
            return
        imported, counts = import_account(self.reach.store, export.path, name=name)
        assert counts["api_keys"] == len(export.keys)
        (self.reach.root / name).mkdir(exist_ok=True)
        account = export.as_account(name, imported.id)
        rows = oracle.iter_rows(self.reach.store)
        account.history = {row.claim_id for row in rows if row.account_id == account.id}
        self.model.accounts[name] = account
        self._hand_over(export, account)
        self.use_all_keys()

    def _hand_over(self, export: Export, account: Account) -> None:
        """Whoever has a key that came along goes on, also with the last id that they saw."""
        for key, was in export.keys.items():
            key.put_back(was, account)
        for chain in self.chains:
            if export.keys and chain.account is export.account:
                chain.account = account
        self._give_up_chains()

    def _give_up_chains(self) -> None:
        """Ids that an account has from its file are not given again. Above those that were given
        since and are not in it, only the clock leads."""
        for chain in self.chains:
            if chain.account.last_id < chain.cursor and self.reach.now_us() < _time_of(chain):
                chain.account = NO_KEY.account

    @rule(export=EXPORTS)
    def return_account(self, export: Export) -> None:
        """Whoever has the account's name goes, and it is as it was in a file."""
        name = export.account.name
        if name in self.model.accounts:
            self.delete_account(name=name, how="with resumes")
        self.import_account(export=export, name=name)

    @rule()
    def move_store(self) -> None:
        """Everything is in another store."""
        if self._may_move():
            self.reach.copy_store()
            self.use_all_keys()

    @rule(target=BACKUPS)
    def back_up(self) -> SavedStore | MultipleResults[SavedStore]:
        """The store of this moment is in a file as well."""
        self._backups += 1
        if self._backups > MOST_BACKUPS:
            return multiple()
        taken = (file for file in self.imports.files if file.owner is not None)
        items = {file: dict(file.items) for file in taken}
        return self.model.back_up(self.reach.back_up(), self.keys, self.reach.now_us()), items

    @rule(backup=BACKUPS)
    def restore(self, backup: SavedStore) -> None:
        """Everything is as it was in a backup, but for the folder, and for ids, which go on."""
        was, items = backup
        if self.imports.is_unsettled(items) or not self._may_move():
            return
        is_in_place = self.reach.restore(was.path)
        replaced = self.model.accounts.values() if is_in_place else ()
        last_ids = {account: account.last_id for account in replaced}
        for account in self.model.accounts.values():
            account.is_open = False
        for account in was.accounts:
            floor = max(last_ids.get(account, ""), f"{self.reach.now_us():016x}")
            was.put_back(account, floor)
        self.model.accounts = {account.name: account for account in was.accounts}
        self.model.plans = dict(was.plans)
        for key in self.keys:
            if key in was.keys:
                was.put_back_key(key)
            else:
                key.account = NO_KEY.account
        self.imports.forget(items)
        self._give_up_chains()
        self.use_all_keys()

    def _may_move(self) -> bool:
        self._moves += 1
        return self._moves <= MOST_MOVES

    @rule()
    def restart(self) -> None:
        """Everything is as it was before."""
        self.reach.restart()

    @rule(hours=st.sampled_from([1, 25, -2]))
    def pass_hours(self, hours: int) -> None:
        """It is later, or the clock was set back."""
        self.model.note_expired(self.reach.now_us())
        self.reach.pass_s(timedelta(hours=hours).total_seconds())
        self._give_up_chains()
        self.use_all_keys()


def _time_of(chain: Chain) -> int:
    return int(chain.cursor[:POSITION_DIGITS], 16)
