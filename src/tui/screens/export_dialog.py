"""The export dialog, and the export, which runs in a thread."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Final

from textual import on
from textual.worker import get_current_worker

from resumes.analyzer.schema import LAYOUTS
from resumes.errors import InvalidArgument, NotFound
from resumes.export import (
    ExportFormat,
    export_resumes,
    iter_resumes,
    list_for_book,
    new_file,
    open_exporter,
)
from resumes.output_files import OutputFile
from resumes.rendering import FileType, PageOptions
from resumes.rendering.page import Paper
from resumes.store import accounts, search_index, stored_resumes
from resumes.store.search import describe_unsearched
from resumes.store.store import Store
from resumes.store.stored_resumes import StoredResume
from resumes.text import counted
from tui.pdf_files import describe, describe_boxes
from tui.screens.dialogs import Dialog
from tui.session import ExportChoice, UiSession
from tui.text import safe_text
from tui.widgets.forms import Choices, LabelledField, SafeInput

FOLDER: Final = "exported-resumes"
MAX_PATH_CHARS = 4_000
INDEX_TIMEOUT_S: Final = 30.0
"""How long to wait for the search index to include all resumes."""

PDF, BOOK = "PDF", "PDFs in one book"
KINDS: Final = {
    PDF: ExportFormat.PDF,
    BOOK: ExportFormat.PDF,
    "Word": ExportFormat.WORD,
    "CSV table": ExportFormat.CSV,
    "JSON, as imported": ExportFormat.ANALYZER,
    "JSON Resume": ExportFormat.JSON_RESUME,
}
"""The formats by their names in the dialog."""

OWN: Final = "as each resume says"
PAPERS: Final = {OWN: None, "A4": Paper.A4, "US Letter": Paper.LETTER}
NO, YES = "no", "yes"


def page_options(choice: ExportChoice) -> PageOptions:
    """Return the page options of the choice. The layout and the paper apply only to PDFs."""
    is_anonymous = choice.anonymous == YES
    if KINDS[choice.kind] is not ExportFormat.PDF:
        return PageOptions(is_anonymous=is_anonymous)
    layout = None if choice.layout == OWN else choice.layout
    return PageOptions(layout, PAPERS[choice.paper], is_anonymous)


class ExportDialog(Dialog[ExportChoice]):
    """Asks what to export, and how.

    `chosen` describes the selected resumes; `listed` describes all listed resumes, or is None if
    they cannot be exported. `last` is the previous choice.
    """

    VERB = "Export"

    def __init__(self, chosen: str, listed: str | None, last: ExportChoice) -> None:
        self._listed = listed
        self._what = Choices([chosen] if listed is None else [chosen, listed], chosen)
        self._kind = Choices(list(KINDS), last.kind or PDF)
        self._folder = SafeInput(
            last.folder or _usual_folder(), parse=_check_folder, max_length=MAX_PATH_CHARS
        )
        self._layout = Choices([OWN, *LAYOUTS], last.layout or OWN)
        self._paper = Choices(list(PAPERS), last.paper or OWN)
        self._anonymous = Choices([NO, YES], last.anonymous or NO)
        self._for_pdf = LabelledField("Layout", self._layout), LabelledField("Paper", self._paper)
        self._for_pages = LabelledField("Anonymous", self._anonymous)
        super().__init__(
            f"Export {chosen}" if listed is None else "Export",
            *([] if listed is None else [LabelledField("Resumes", self._what)]),
            LabelledField("Format", self._kind),
            LabelledField("Folder", self._folder),
            *self._for_pdf,
            self._for_pages,
        )

    @on(Choices.Changed)
    def show_options(self) -> None:
        """Show the options that apply to the format."""
        kind = KINDS[self._kind.chosen]
        for each in self._for_pdf:
            each.display = kind is ExportFormat.PDF
        self._for_pages.display = kind in (ExportFormat.PDF, ExportFormat.WORD)

    def submit(self) -> None:
        self.dismiss(
            ExportChoice(
                self._kind.chosen,
                self._folder.parsed,
                self._layout.chosen,
                self._paper.chosen,
                self._anonymous.chosen,
                is_all=self._what.chosen == self._listed,
            )
        )


def _check_folder(text: str) -> str:
    if not text:
        raise InvalidArgument("Enter a folder.")
    return text


def _usual_folder() -> str:
    with suppress(OSError):  # the working directory may have been removed
        folder = str(Path.cwd() / FOLDER)
        if folder == safe_text(folder):
            return folder
    return ""


def export_chosen(
    store: Store,
    session: UiSession,
    account: str,
    resume_ids: Sequence[str],
    choice: ExportChoice,
    *,
    text: str | None,
) -> str:
    """Export the resumes or, with `choice.is_all`, all that match `text` (None matches all).

    Must run in a worker's thread. Return a summary: how many were exported, which failed, what was
    left out. Raises the same errors as `export_resumes`, and InvalidArgument if the folder belongs
    to an unknown user.
    """
    try:
        target = Path(choice.folder).expanduser()
    except RuntimeError:
        raise InvalidArgument(f'No such user: "{choice.folder}"') from None
    owner, settings = accounts.get_account(store, account), session.settings
    kind, is_book, unsearched = KINDS[choice.kind], choice.kind == BOOK, 0
    worker = get_current_worker()

    def check_canceled(_: int) -> None:
        if worker.is_cancelled:  # the error also removes the draft
            raise InvalidArgument("The export was canceled")

    with ExitStack() as stack:
        to: OutputFile | None = None
        if is_book or kind is ExportFormat.CSV:
            name = "book.pdf" if is_book else "resumes.csv"
            to = stack.enter_context(new_file(target, name))
        resumes: Iterable[StoredResume] = _iter_chosen(store, owner.id, resume_ids)
        if choice.is_all:
            if text is not None:
                timeout_s = 0.0 if session.read_only else INDEX_TIMEOUT_S
                unsearched = search_index.catch_up(store, owner.id, timeout_s=timeout_s)
            resumes = iter_resumes(store, owner.id, text, is_typing=True)
        if is_book:
            resumes = list_for_book(resumes)
        exporter = stack.enter_context(
            open_exporter(settings, account, kind, page_options(choice), is_book=is_book)
        )
        write = partial(exporter.write, target, overwrite=False)
        summary = export_resumes(exporter, resumes, to or write, on_count=check_canceled)
    place = target if to is None else to.path
    said = f"Exported {counted(summary.exported - summary.existing, 'resume')} to {place}."
    if summary.existing:
        said += f" Kept {counted(summary.existing, 'file')} from an earlier export."
    if summary.failed:
        noun = FileType(kind).noun
        failed = counted(len(summary.failed), noun)
        said += f" {failed} could not be generated. {describe(summary.failed[0][1], noun)}"
    if summary.missing:
        said += describe_boxes(summary.missing[0][0], settings.home)
    if unsearched:
        said += f" Incomplete: {describe_unsearched(unsearched)}. Export again later."
    if summary.left_out:
        said += f" Not supported by JSON Resume, left out: {', '.join(summary.left_out)}."
    return said


def _iter_chosen(
    store: Store, account_id: str, resume_ids: Sequence[str]
) -> Iterator[StoredResume]:
    """Yield the resumes, but skip those deleted since they were listed. If there is only one ID, a
    deleted resume raises NotFound."""
    for resume_id in resume_ids:
        with nullcontext() if len(resume_ids) == 1 else suppress(NotFound):
            yield stored_resumes.get_resume(store, account_id, resume_id)
