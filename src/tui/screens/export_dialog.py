"""The export dialog, and the export in a thread."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from textual import on
from textual.worker import get_current_worker

from resumes.analyzer.schema import LAYOUTS
from resumes.errors import InvalidArgument, NotFound
from resumes.export import (
    Exporter,
    ExportFormat,
    export_resumes,
    export_to_file,
    iter_resumes,
    list_for_book,
    new_file,
)
from resumes.rendering import FileType, PageOptions
from resumes.rendering.book import Book
from resumes.rendering.branding import load_branding
from resumes.rendering.page import Paper
from resumes.settings import Settings
from resumes.store import accounts, search_index, stored_resumes
from resumes.store.search import describe_unsearched
from resumes.store.store import Store
from resumes.store.stored_resumes import StoredResume
from resumes.text import counted
from tui.pdf_files import describe, describe_boxes
from tui.screens.dialogs import Dialog
from tui.session import LastExport, UiSession
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


class ExportDialog(Dialog[Callable[[Store], str]]):
    """Asks what to export. The result is a function that exports and returns a summary.

    `chosen` names the given resumes; `listed`, if offered, names all that match `text`, or all of the
    account for None. The session remembers what was chosen last.
    """

    VERB = "Export"

    def __init__(
        self,
        session: UiSession,
        account: str,
        resume_ids: Sequence[str],
        *,
        chosen: str = "this resume",
        listed: str | None = None,
        text: str | None = None,
    ) -> None:
        self._session = session
        self._export = partial(
            export_chosen,
            account=account,
            text=text,
            settings=session.settings,
            read_only=session.read_only,
        )
        self._resume_ids, self._listed = resume_ids, listed
        last = session.last_export or LastExport(PDF, "", OWN, OWN)
        self._what = Choices([chosen] if listed is None else [chosen, listed], chosen)
        self._kind = Choices(list(KINDS), last.kind)
        self._folder = SafeInput(max_length=MAX_PATH_CHARS)
        self._folder.value = last.folder or _usual_folder()
        self._layout = Choices([OWN, *LAYOUTS], last.layout)
        self._paper = Choices(list(PAPERS), last.paper)
        self._anonymous = Choices([NO, YES], YES if last.is_anonymous else NO)
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

    def find_problem(self) -> str:
        return "" if self._folder.value.strip() else "Enter a folder."

    def submit(self) -> None:
        is_all = self._listed is not None and self._what.chosen == self._listed
        chosen = LastExport(
            self._kind.chosen,
            self._folder.value.strip(),
            self._layout.chosen,
            self._paper.chosen,
            self._anonymous.chosen == YES,
        )
        self._session.last_export = chosen
        choice = PageOptions(is_anonymous=chosen.is_anonymous)
        if KINDS[chosen.kind] is ExportFormat.PDF:
            layout = None if chosen.layout == OWN else chosen.layout
            choice = replace(choice, layout=layout, paper=PAPERS[chosen.paper])
        self.dismiss(
            partial(
                self._export,
                resume_ids=[] if is_all else self._resume_ids,
                kind=KINDS[chosen.kind],
                is_book=chosen.kind == BOOK,
                choice=choice,
                folder=chosen.folder,
            )
        )


def _usual_folder() -> str:
    with suppress(OSError):  # the working directory was removed
        folder = str(Path.cwd() / FOLDER)
        if folder == safe_text(folder):
            return folder
    return ""


def export_chosen(
    store: Store,
    *,
    account: str,
    resume_ids: Sequence[str],
    text: str | None,
    kind: ExportFormat,
    is_book: bool,
    choice: PageOptions,
    folder: str,
    settings: Settings,
    read_only: bool,
) -> str:
    """Export the resumes, or without IDs all that match `text`, to files, in a worker's thread.

    Return a summary: how many, which failed, what was left out. Raises as `export_resumes`, and
    InvalidArgument if the folder is that of an unknown user.
    """
    try:
        target = Path(folder).expanduser()
    except RuntimeError:
        raise InvalidArgument(f'No such user: "{folder}"') from None
    owner = accounts.get_account(store, account)
    unsearched = 0
    resumes: Iterable[StoredResume]
    if resume_ids:
        resumes = _iter_chosen(store, owner.id, resume_ids)
    else:
        if text is not None:
            timeout_s = 0.0 if read_only else INDEX_TIMEOUT_S
            unsearched = search_index.catch_up(store, owner.id, timeout_s=timeout_s)
        resumes = iter_resumes(store, owner.id, text, is_typing=True)
    brand = load_branding(settings.home, account).brand
    book = None
    if is_book:
        resumes = list_for_book(_until_canceled(resumes))
        book = Book(account, [], choice, brand)
    resumes = _until_canceled(resumes)
    with Exporter(
        kind,
        settings.format,
        home=settings.home,
        choice=choice,
        book=book,
        brand=brand,
        renderers=settings.renderers,
    ) as exporter:
        if is_book or kind is ExportFormat.CSV:
            new = new_file(target, "book.pdf" if is_book else "resumes.csv")
            target = new.path
            with new.opened() as file:
                summary = export_to_file(exporter, resumes, file)
                if get_current_worker().is_cancelled:  # the draft is removed
                    raise InvalidArgument("The export was canceled")
        else:
            write = partial(exporter.write, target, overwrite=False)
            summary = export_resumes(exporter, resumes, write)
    said = f"Exported {counted(summary.exported - summary.existing, 'resume')} to {target}."
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
    worker = get_current_worker()
    for resume in resumes:
        if worker.is_cancelled:
            return
        yield resume
