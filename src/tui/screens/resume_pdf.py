"""Open a resume as a PDF: drawn in a thread, shown by another program or sent to the browser."""

from io import BytesIO
from pathlib import Path

from textual.notifications import SeverityLevel
from textual.screen import Screen

from resumes.rendering import RenderingFailed, TooLong
from resumes.store import accounts, stored_resumes
from resumes.store.store import Store
from tui.keys import Place, shown_key
from tui.pdf_files import (
    DrawnPdf,
    PdfFiles,
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


async def open_pdf(
    screen: Screen[None], session: UiSession, account: str, resume_id: str, *, place: Place
) -> None:
    """Draw the PDF and start what shows it; a toast says how that went. Raises Failure."""
    app = screen.app
    tell(screen, "Drawing the PDF…")
    made = await call(session.store, _make, account=account, resume_id=resume_id, pdfs=session.pdfs)
    if made is None:
        return
    if isinstance(made, str):
        tell(screen, made, "error")
        return
    pdf, path, viewer = made
    boxes = describe_boxes(pdf.missing, session.settings.home)
    severity: SeverityLevel = "warning" if boxes else "information"
    if path is None:
        # The folder is for terminals, where this is not called.
        folder, kind = Path("/"), "application/pdf"
        app.deliver_binary(
            BytesIO(pdf.body), save_directory=folder, save_filename=pdf.name, mime_type=kind
        )
        tell(screen, f"Sent {pdf.name} to the browser.{boxes}", severity)
        return
    command = find_viewer()
    copy_key = shown_key(f"{place.name.lower()}.copy", session.keymap)
    where = f"The PDF is {path}; press {copy_key} to copy the path."
    if command is None:
        tell(screen, f"No display. {where}{boxes}", severity)
    elif viewer is None:
        tell(screen, f"{command} is not installed. {where}{boxes}", "warning")
    else:
        tell(screen, f"Opened {pdf.name}.{boxes}", severity)

        def viewer_failed(code: int) -> None:
            said = f"{command} could not open it (exit code {code}). {where}"
            app.call_later(tell, app, said, "error")

        watch_viewer(viewer, viewer_failed)


def _make(
    store: Store, *, account: str, resume_id: str, pdfs: PdfFiles
) -> tuple[DrawnPdf, Path | None, Viewer | None] | str | None:
    """Return the PDF, for a terminal also its file and what shows it; or why there is none.

    None while another thread does the same. Raises NotFound.
    """
    with pdfs.turn(resume_id) as is_first:
        if not is_first:
            return None
        owner = accounts.get_account(store, account)
        stored = stored_resumes.get_resume(store, owner.id, resume_id)
        try:
            pdf = pdfs.draw(stored)
            if is_behind_a_page():
                return pdf, None, None
            path = pdfs.write(resume_id, pdf)
        except (TooLong, RenderingFailed) as error:
            return describe(error)
        except OSError as error:
            return f"Could not write the PDF: {error.strerror}."
    command = find_viewer()
    return pdf, path, None if command is None else start_viewer(command, path)
