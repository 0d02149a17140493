"""Open a resume as a PDF: drawn in a thread, shown by another program or sent to the browser."""

from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path

from textual.app import App
from textual.notifications import SeverityLevel
from textual.screen import Screen

from resumes.rendering import RenderingFailed, TooLong
from resumes.store import accounts, stored_resumes
from resumes.store.store import Store
from tui.keys import Place, shown_key
from tui.pdf_files import (
    DrawnPdf,
    Viewer,
    describe,
    describe_boxes,
    find_viewer,
    start_viewer,
    watch_viewer,
)
from tui.session import UiSession
from tui.store_calls import call
from tui.text import tell
from tui.web.driver import is_behind_a_page


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result, in a sentence.

    `download` is still to be sent to the browser. `viewer` may fail yet, which `where` is for.
    """

    sentence: str
    severity: SeverityLevel = "information"
    download: DrawnPdf | None = None
    viewer: Viewer | None = None
    where: str = ""


async def open_pdf(
    screen: Screen[None], session: UiSession, account: str, resume_id: str, *, place: Place
) -> None:
    """Draw the PDF and start what shows it; a toast says how that went. Raises Failure."""
    app = screen.app

    def viewer_failed(where: str, code: int) -> None:
        said = f"{find_viewer()} could not open it (exit code {code}). {where}"
        app.call_later(tell, app, said, "error")

    tell(screen, "Drawing the PDF…")
    outcome = await call(
        session.store,
        _open,
        account=account,
        resume_id=resume_id,
        session=session,
        copy_key=shown_key(f"{place.name.lower()}.copy", session.keymap),
    )
    if outcome is None:
        return
    if outcome.download is not None:
        _deliver(app, outcome.download)
    tell(screen, outcome.sentence, outcome.severity)
    if outcome.viewer is not None:
        watch_viewer(outcome.viewer, partial(viewer_failed, outcome.where))


def _deliver(app: App[object], pdf: DrawnPdf) -> None:
    # The folder is for terminals, where this is not called.
    app.deliver_binary(
        BytesIO(pdf.body),
        save_directory=Path("/"),
        save_filename=pdf.name,
        mime_type="application/pdf",
    )


def _open(
    store: Store,
    *,
    account: str,
    resume_id: str,
    session: UiSession,
    copy_key: str,
) -> Outcome | None:
    """Return the result; None while another thread does the same. Raises NotFound."""
    with session.pdfs.turn(resume_id) as is_first:
        if not is_first:
            return None
        owner = accounts.get_account(store, account)
        stored = stored_resumes.get_resume(store, owner.id, resume_id)
        try:
            pdf = session.pdfs.draw(stored)
        except (TooLong, RenderingFailed) as error:
            return Outcome(describe(error), "error")
        boxes = describe_boxes(pdf.missing, session.settings.home)
        severity: SeverityLevel = "warning" if boxes else "information"
        if is_behind_a_page():
            return Outcome(f"Sent {pdf.name} to the browser.{boxes}", severity, pdf)
        try:
            path = session.pdfs.write(resume_id, pdf)
        except OSError as error:
            return Outcome(f"Could not write the PDF: {error.strerror}.", "error")
    where = f"The PDF is {path}; press {copy_key} to copy the path."
    command = find_viewer()
    if command is None:
        return Outcome(f"No display. {where}{boxes}", severity)
    viewer = start_viewer(command, path)
    if viewer is None:
        return Outcome(f"{command} is not installed. {where}{boxes}", "warning")
    return Outcome(f"Opened {pdf.name}.{boxes}", severity, viewer=viewer, where=where)
