"""The export dialog, and the export itself, in a thread."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from textual.worker import get_current_worker

from resumes.errors import InvalidArgument, NotFound
from resumes.export import Exporter, ExportFormat
from resumes.rendering import RenderingFailed, TooLong
from resumes.settings import Settings
from resumes.store import accounts, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.store import Store
from resumes.text import counted
from tui.pdf_files import describe, describe_boxes
from tui.screens.dialogs import Dialog
from tui.screens.resume_views import read_page
from tui.text import safe_text
from tui.widgets.forms import Choices, LabelledField, SafeInput

FOLDER: Final = "exported-resumes"
MAX_PATH_CHARS = 4_000
SEARCH_TIMEOUT_S = 30.0
"""How long to search resumes that are not in the index yet."""


PDF: Final = "PDF"
KINDS: Final = {
    PDF: ExportFormat.PDF,
    "JSON, as imported": ExportFormat.ANALYZER,
    "JSON Resume": ExportFormat.JSON_RESUME,
}
"""What the dialog calls the formats."""


class ExportDialog(Dialog[Callable[[Store], str]]):
    """Gives what exports and says how that went, None if it was canceled.

    `chosen` is what the resumes are called, `listed` all that fit `text`, if that is offered.
    """

    VERB = "Export"

    def __init__(
        self,
        account: str,
        resume_ids: Sequence[str],
        settings: Settings,
        *,
        chosen: str = "this resume",
        listed: str | None = None,
        text: str = "",
    ) -> None:
        self._export = partial(export_resumes, account=account, text=text, settings=settings)
        self._resume_ids, self._listed = resume_ids, listed
        self._what = Choices([chosen] if listed is None else [chosen, listed], chosen)
        self._kind = Choices(list(KINDS), PDF)
        self._folder = SafeInput(max_length=MAX_PATH_CHARS)
        with suppress(OSError):  # the working directory was removed
            folder = str(Path.cwd() / FOLDER)
            self._folder.value = folder if folder == safe_text(folder) else ""
        super().__init__(
            f"Export {chosen}" if listed is None else "Export",
            *([] if listed is None else [LabelledField("Resumes", self._what)]),
            LabelledField("Format", self._kind),
            LabelledField("Folder", self._folder),
        )

    def find_problem(self) -> str:
        return "" if self._folder.value.strip() else "Enter a folder."

    def submit(self) -> None:
        is_all = self._listed is not None and self._what.chosen == self._listed
        self.dismiss(
            partial(
                self._export,
                resume_ids=[] if is_all else self._resume_ids,
                kind=KINDS[self._kind.chosen],
                folder=self._folder.value.strip(),
            )
        )


def export_resumes(
    store: Store,
    *,
    account: str,
    resume_ids: Sequence[str],
    text: str,
    kind: ExportFormat,
    folder: str,
    settings: Settings,
) -> str:
    """Export the resumes, or without IDs all that fit `text`, to files, in a worker's thread.

    Return how many, which failed, and what was left out. Raises InvalidArgument for a folder that
    cannot be written to; what was written before stays, as does a file from an earlier export.
    """
    worker, home = get_current_worker(), settings.home
    try:
        target = Path(folder).expanduser()
    except RuntimeError:
        raise InvalidArgument(f'No such user: "{folder}"') from None
    owner = accounts.get_account(store, account)
    count, kept, unindexed, left_out = 0, 0, 0, dict[str, None]()
    failed = list[str]()
    missing: str | None = None
    with Exporter(kind, settings.format, home=home) as exporter:
        listed = [(resume_id, 0) for resume_id in resume_ids] or _iter_all(store, owner, text)
        for resume_id, not_looked_at in listed:
            unindexed = not_looked_at
            if worker.is_cancelled:
                break
            try:
                exported = exporter.export(stored_resumes.get_resume(store, owner.id, resume_id))
            except NotFound:
                if len(resume_ids) == 1:
                    raise
                continue  # deleted since it was listed
            except (TooLong, RenderingFailed) as error:
                failed.append(describe(error))
                continue
            try:
                is_kept = exporter.write(target, exported, overwrite=False)
            except InvalidArgument as error:
                before = f". {counted(count, 'resume')} already exported" if count else ""
                raise InvalidArgument(f"{error.message}{before}") from error
            left_out |= dict.fromkeys(exported.left_out)
            missing = missing or exported.missing
            kept += is_kept
            count += not is_kept
    said = f"Exported {counted(count, 'resume')} to {target}."
    if kept:
        said += f" Kept {counted(kept, 'file')} from an earlier export."
    if failed:
        said += f" {counted(len(failed), 'PDF')} could not be generated. {failed[0]}"
    said += describe_boxes(missing, home)
    if unindexed:
        said += f" Not searchable yet: {counted(unindexed, 'newer resume')}. Try again later."
    if left_out:
        said += f" Not supported by JSON Resume, left out: {', '.join(left_out)}."
    return said


def _iter_all(store: Store, account: AccountInfo, text: str) -> Iterator[tuple[str, int]]:
    """Yield the IDs that fit `text`, each with how many resumes could not be searched so far."""
    cursor: str | None = ""
    while cursor is not None:
        page = read_page(
            store, account=account, text=text, cursor=cursor, timeout_s=SEARCH_TIMEOUT_S
        )
        _, unindexed = page.about
        yield from [(entry.id, unindexed) for entry in page.rows]
        cursor = page.next_cursor
