"""The work of pending deletions: each resume is deleted when its time to undo is over."""

from textual.app import App

from resumes.store import accounts, stored_resumes
from resumes.store.store import Store
from tui.deletions import Deletion
from tui.session import UiSession
from tui.store_calls import Failure, call
from tui.text import tell
from tui.widgets.paged_list import PagedList

LOOK_S = 0.25


class DeletionRounds:
    """Looks a few times a second whether a deletion is due, whatever screen is shown."""

    def __init__(self, app: App[int], session: UiSession) -> None:
        self._app = app
        self._session = session
        self._timer = app.set_interval(LOOK_S, self.look)

    def look(self) -> None:
        """Delete what is due."""
        for deletion in self._session.deletions.take_due():
            self._app.run_worker(self._carry_out(deletion))

    def undo(self) -> None:
        """The deletion that was asked for last is taken back."""
        kept = self._session.deletions.undo()
        if kept is None:
            tell(self._app, "There is nothing to undo: no resume is about to be deleted.")
            return
        tell(self._app, f'"{kept.title}" stays.')
        self._redraw()

    def _redraw(self) -> None:
        for listed in self._app.screen.query(PagedList):
            listed.refresh()

    async def _carry_out(self, deletion: Deletion) -> None:
        try:
            await call(self._session.store, carry_out, deletion)
        except Failure as failure:
            tell(self._app, f'"{deletion.title}" was not deleted: {failure.message}', "error")
            self._redraw()
            return
        tell(self._app, f'"{deletion.title}" is deleted.')
        for listed in self._app.screen.query(PagedList):
            listed.refresh_rows()


def carry_out(store: Store, deletion: Deletion) -> None:
    """The resume is gone. Raises NotFound if it was before."""
    account = accounts.get_account(store, deletion.account)
    stored_resumes.delete_resume(store, account.id, deletion.resume_id)
