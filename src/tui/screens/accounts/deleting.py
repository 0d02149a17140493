"""Deleting an account: what goes with it, and going through with it slice by slice."""

from collections.abc import Callable
from dataclasses import dataclass

from textual.worker import get_current_worker

from resumes.store import accounts, import_ledger
from resumes.store.accounts import AccountInfo, AccountSummary
from resumes.store.store import Store
from resumes.text import counted
from tui.screens.confirming import ConfirmDialog
from tui.times import minute


@dataclass(frozen=True, slots=True)
class Losses:
    """What goes with an account. `files` are those that the importer remembers."""

    account: AccountInfo
    summary: AccountSummary
    files: int


class DeleteAccountDialog(ConfirmDialog):
    """Gives whether to delete the account, whose name must be typed."""

    def __init__(self, losses: Losses) -> None:
        account, has = losses.account, losses.summary
        super().__init__(
            f"Delete the account {account.name} for good?",
            [
                ("Resumes", f"{account.resume_count:,}"),
                ("Keys", f"{has.keys:,}, of which {has.active_keys:,} active"),
                ("Last used", minute(has.last_used_at)),
                ("Files", f"{counted(losses.files, 'file')} in the history of imports"),
            ],
            consequence="All of this goes for good, and its keys are refused at once.",
            verb="Delete",
            typed=account.name,
        )


def read_losses(store: Store, account: AccountInfo) -> Losses:
    """What would go now. Raises NotFound."""
    return Losses(
        accounts.get_account(store, account.name, closed_too=True),
        accounts.get_summary(store, account.id),
        sum(one.files for one in import_ledger.count_files(store, account_id=account.id)),
    )


def delete(store: Store, *, name: str, tell_gone: Callable[[int], None]) -> int:
    """The account is gone; the number of resumes that went. In a worker's thread.

    `tell_gone` hears after each slice how many went. When the worker is cancelled, as the end
    of the program does, the rest stays for whoever deletes the account again.
    """
    worker = get_current_worker()

    def goes_on(gone: int) -> bool:
        tell_gone(gone)
        return not worker.is_cancelled

    return accounts.delete_account(store, name, with_resumes=True, goes_on=goes_on)
