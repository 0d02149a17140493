"""The export dialog, and the export in a thread."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
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
"""How long to wait until all resumes are in the search index."""

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
    """Return how pages are drawn; layout and paper are for PDFs only."""
    options = PageOptions(is_anonymous=choice.anonymous == YES)
    if KINDS[choice.kind] is not ExportFormat.PDF:
        return options
    layout = None if choice.layout == OWN else choice.layout
    return replace(options, layout=layout, paper=PAPERS[choice.paper])


class ExportDialog(Dialog[ExportChoice]):
    """Asks what to export, and how.

    `chosen` names the given resumes; `listed`, if offered, names all that the list shows. `last` is what was
    chosen last.
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
        """Show the options that the format has."""
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
    with suppress(OSError):  # the working directory was removed
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
    """Export the resumes, or all that match `text`, or all if that is None, in a worker's thread.

    Return a summary: how many, which failed, what was left out. Raises as `export_resumes`, and
    InvalidArgument if the folder is that of an unknown user.
    """
    try:
        target = Path(choice.folder).expanduser()
    except RuntimeError:
        raise InvalidArgument(f'No such user: "{choice.folder}"') from None
    owner, settings, kind = (
        accounts.get_account(store, account),
        session.settings,
        KINDS[choice.kind],
    )
    is_book, unsearched = choice.kind == BOOK, 0
    with ExitStack() as stack:
        to: OutputFile | None = None
        if is_book or kind is ExportFormat.CSV:
            name = "book.pdf" if is_book else "resumes.csv"
            to = stack.enter_context(new_file(target, name))
        resumes = _iter_chosen(store, owner.id, resume_ids)
        if choice.is_all:
            if text is not None:
                timeout_s = 0.0 if session.read_only else INDEX_TIMEOUT_S
                unsearched = search_index.catch_up(store, owner.id, timeout_s=timeout_s)
            resumes = iter_resumes(store, owner.id, text, is_typing=True)
        resumes = _until_canceled(resumes)
        if is_book:
            resumes = _until_canceled(list_for_book(resumes))
        exporter = stack.enter_context(
            open_exporter(settings, account, kind, page_options(choice), is_book=is_book)
        )
        write = partial(exporter.write, target, overwrite=False)
        summary = export_resumes(exporter, resumes, to or write)
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
    """Yield the resumes, without those deleted since they were listed. Raises NotFound if there is only
    one."""
    for resume_id in resume_ids:
        with nullcontext() if len(resume_ids) == 1 else suppress(NotFound):
            yield stored_resumes.get_resume(store, account_id, resume_id)


def _until_canceled(resumes: Iterable[StoredResume]) -> Iterator[StoredResume]:
    """Yield the resumes. Raises InvalidArgument once the worker is canceled: a draft is then removed."""
    worker = get_current_worker()
    for resume in itertools.chain(resumes, [None]):
        if worker.is_cancelled:
            raise InvalidArgument("The export was canceled")
        if resume is not None:
            yield resume
