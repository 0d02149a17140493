"""What the accounts screen changes: each change from its dialog to its result."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from textual.message import Message

from resumes.store import accounts
from resumes.store.accounts import AccountInfo
from resumes.store.plans import PlanInfo
from resumes.text import counted
from tui.notices import Failure
from tui.screens.accounts.creating import CreateAccountDialog, Made
from tui.screens.accounts.deleting import DeleteAccountDialog, Losses, delete, read_losses
from tui.screens.accounts.planning import PlanChooser, PlanDialog, losses
from tui.screens.list_screen import ListScreen
from tui.toasts import tell


class SliceGone(Message):
    """So many resumes of an account that is being deleted are gone."""

    def __init__(self, name: str, gone: int) -> None:
        super().__init__()
        self.name = name
        self.gone = gone


@dataclass(frozen=True, slots=True)
class Going:
    """How many of the resumes of an account that is being deleted are gone."""

    gone: int
    total: int


class AccountChanges:
    """Makes, changes and deletes accounts for a screen, which is told `SliceGone`."""

    def __init__(self, screen: ListScreen[Any]) -> None:
        self._screen = screen
        self._session = screen.session
        self.going: dict[str, Going] = {}
        """The accounts that are being deleted from here, by name."""

    def create(self, plans: Sequence[PlanInfo], taken: Collection[str]) -> None:
        """The form for a new account is open."""
        dialog = CreateAccountDialog(self._session, plans, taken)
        self._screen.app.push_screen(dialog, self._created)

    def _created(self, made: Made | None) -> None:
        if made is None:
            return
        name, plan = made.account.name, made.account.plan
        if made.problem:
            trouble = f"but its folder {made.inbox} could not be made: {made.problem}."
            tell(self._screen, f'Account "{name}" is there, {trouble}', "warning")
        else:
            # In full it is often longer than the line.
            inbox = f"{made.inbox.parent.name}/{name}"
            tell(self._screen, f"{name} is there, on the plan {plan}. Its files go into {inbox}.")
        self._screen.action_reload()

    def change_plan(self, account: AccountInfo) -> None:
        """A dialog asks which plan the account shall be on."""
        chooser = PlanChooser(self._session, account)
        self._screen.app.push_screen(chooser, partial(self._plan_chosen, account))

    def _plan_chosen(self, account: AccountInfo, plan: PlanInfo | None) -> None:
        if plan is None:
            return
        if plan.name == account.plan:
            tell(self._screen, f"{account.name} is on the plan {plan.name} already.")
        elif losses(account, plan):
            answered = partial(self._plan_answered, account, plan)
            self._screen.app.push_screen(PlanDialog(account, plan), answered)
        else:
            self._plan_answered(account, plan, is_sure=True)

    def _plan_answered(self, account: AccountInfo, plan: PlanInfo, is_sure: bool | None) -> None:
        if is_sure:
            self._screen.client.change(
                partial(accounts.set_plan, name=account.name, plan=plan.name),
                then=lambda _: self._done(f"{account.name} is on the plan {plan.name}."),
                failed=self._screen.show_failure,
            )

    def delete(self, account: AccountInfo) -> None:
        """What would go is being counted, for the question whether to delete the account."""
        if account.name in self.going:
            tell(self._screen, f"{account.name} is being deleted.")
            return
        self._screen.client.read(
            "losses",
            partial(read_losses, account=account),
            then=self._ask_to_delete,
            failed=self._screen.show_failure,
        )

    def _ask_to_delete(self, found: Losses) -> None:
        # Counting takes a while in a large account; the reader may be elsewhere by now.
        if self._screen.is_active:
            answered = partial(self._delete_answered, found.account)
            self._screen.app.push_screen(DeleteAccountDialog(found), answered)

    def _delete_answered(self, account: AccountInfo, is_sure: bool | None) -> None:
        if not is_sure:
            return
        name = account.name

        def tell_gone(gone: int) -> None:
            self._screen.post_message(SliceGone(name, gone))

        self.going[name] = Going(0, account.resume_count)
        self._screen.show_heading()
        self._screen.client.change(
            partial(delete, name=name, tell_gone=tell_gone),
            then=partial(self._deleted, name),
            failed=partial(self._not_deleted, name),
        )

    def note_progress(self, slice_gone: SliceGone) -> None:
        """What is gone is known in `going`, and the list is read again after the first slice."""
        going = self.going.get(slice_gone.name)
        if going is not None:
            self.going[slice_gone.name] = replace(going, gone=slice_gone.gone)
            self._screen.show_heading()
            if not going.gone:
                self._screen.list.refresh_rows()

    def _deleted(self, name: str, gone: int) -> None:
        del self.going[name]
        session = self._session
        session.account = None if session.account == name else session.account
        session.keys_account = None if session.keys_account == name else session.keys_account
        session.imports_account = (
            None if session.imports_account == name else session.imports_account
        )
        self._done(f'Account "{name}" is gone, with {counted(gone, "resume")}.')

    def _not_deleted(self, name: str, failure: Failure) -> None:
        del self.going[name]
        self._screen.show_heading()
        self._screen.show_failure(failure)

    def _done(self, message: str) -> None:
        tell(self._screen, message)
        self._screen.action_reload()
