"""What can be done with a resume, from the list as from its own page."""

from collections.abc import Callable
from functools import partial

from textual.screen import Screen
from textual.worker import get_current_worker

from resumes.store.store import Store
from tui import clipboard
from tui.deletions import GRACE_S
from tui.keymap import shown_key
from tui.notices import Failure
from tui.screens.resumes import exporting
from tui.screens.resumes.copying import Copyable, CopyDialog
from tui.screens.resumes.exporting import Export, ExportDialog, Wish
from tui.screens.resumes.views import Shown
from tui.session import Session
from tui.store_client import StoreClient
from tui.toasts import tell


def delete(
    screen: Screen[None], session: Session, account: str, resume_id: str, title: str
) -> None:
    """The resume will be deleted, unless that is undone."""
    undo = shown_key("everywhere.undo", session.keymap)
    if resume_id in session.deletions:
        tell(screen, f'"{title}" is about to be deleted already; {undo} keeps it.')
        return
    session.deletions.add(account, resume_id, title)
    tell(screen, f'"{title}" will be deleted in {GRACE_S:.0f} s. {undo} keeps it.', "warning")


def copy(screen: Screen[None], session: Session, shown: Shown) -> None:
    """A dialog asks what of the resume to copy."""

    def chosen(one: Copyable | None) -> None:
        if one is not None:
            clipboard.send(screen, one.text, what=one.what, instead="x exports it")

    screen.app.push_screen(
        CopyDialog(session.store, shown, session.pdfs.find(shown.entry.id)), chosen
    )


def export(
    screen: Screen[None],
    session: Session,
    client: StoreClient,
    account: str,
    *,
    resume_id: str,
    listed: str | None = None,
    text: str = "",
    failed: Callable[[Failure], None],
) -> None:
    """A dialog asks what to export and where to, and a thread does it. `listed`: what "all" is."""

    def wished(wish: Wish | None) -> None:
        if wish is None:
            return
        tell(screen, "Exporting…")
        client.change(
            partial(
                _export,
                account=account,
                resume_id=None if wish.is_all else resume_id,
                text=text,
                wish=wish,
                session=session,
            ),
            then=lambda said: tell(screen, said),
            failed=failed,
        )

    screen.app.push_screen(ExportDialog(listed=listed), wished)


def _export(
    store: Store, *, account: str, resume_id: str | None, text: str, wish: Wish, session: Session
) -> str:
    worker = get_current_worker()
    export = Export(
        account,
        resume_id,
        text,
        wish,
        session.settings.format,
        session.settings.home,
        lambda: worker.is_cancelled,
    )
    return exporting.carry_out(store, export)
