"""Carries out pending deletions when the time to undo them is over."""

from collections.abc import Sequence

from textual.app import App

from resumes.store import accounts, stored_resumes
from resumes.store.store import Store
from tui.deletions import Deletion, named
from tui.session import UiSession
from tui.store_calls import Failure, call
from tui.text import tell, toast
from tui.widgets.paged_list import PagedList

LOOK_S = 0.25


class PendingDeletions:
    """Checks a few times a second whether a deletion is due, on any screen."""

    def __init__(self, app: App[int], session: UiSession) -> None:
        self._app = app
        self._session = session
        self._timer = app.set_interval(LOOK_S, self.look)

    def look(self) -> None:
        """Delete what is due."""
        if due := self._session.deletions.take_due():
            self._app.run_worker(self._carry_out(due))

    def undo(self) -> None:
        """Undo the deletions that were requested last."""
        kept = self._session.deletions.undo()
        if not kept:
            tell(self._app, "Nothing to undo.")
            return
        tell(self._app, f"Undid the deletion of {named(kept)}.")
        self._redraw()

    def _redraw(self) -> None:
        for listed in self._app.screen.query(PagedList):
            listed.refresh()

    async def _carry_out(self, due: Sequence[Deletion]) -> None:
        gone, problem = list[Deletion](), ""
        for deletion in due:
            try:
                await call(self._session.store, carry_out, deletion)
            except Failure as failure:
                problem = f'Could not delete "{deletion.title}": {failure.message}'
            else:
                gone.append(deletion)
                self._session.deletions.gone.add(deletion.resume_id)
        self._redraw()
        if problem:
            toast(self._app, problem, "error")
        else:
            toast(self._app, f"Deleted {named(gone)}.")
        for listed in self._app.screen.query(PagedList):
            listed.refresh_rows()


def carry_out(store: Store, deletion: Deletion) -> None:
    """Delete the resume. Raises NotFound if it is already deleted."""
    account = accounts.get_account(store, deletion.account)
    stored_resumes.delete_resume(store, account.id, deletion.resume_id)
