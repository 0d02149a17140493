"""One imported file, read from the store in a thread with all that is shown of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from resumes.analyzer import parse_imported
from resumes.errors import InvalidResume, Issue, ResumesError
from resumes.import_reasons import Reason
from resumes.store import import_ledger, import_requests
from resumes.store.import_ledger import FileRow, Item
from resumes.store.import_requests import Request
from resumes.store.store import Store
from tui.screens.imports.faults import fault_of
from tui.screens.imports.source_text import SourceText, lay_out

MOST_ITEMS: Final = 50
"""So many of the resumes of a file of several are named."""


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file. `resumes` are the first of those that it became or that it repeats.

    `source` is None for a file of which none is kept; `is_watched` whether an importer is there
    to take up what is asked, if something is.
    """

    file: FileRow
    request: Request | None
    is_watched: bool
    resumes: Sequence[Item]
    source: SourceText | None
    issues: Sequence[Issue] = ()
    """All that is wrong in it, of a file of one resume that was kept whole; the first included."""


def read_file(
    store: Store, *, account_id: str, claim_id: str, before: FileRead | None = None
) -> FileRead:
    """The file as it is now. What stands in `before` and cannot have changed is not read again.

    Raises NotFound.
    """
    file = import_ledger.get_file(store, claim_id, account_id=account_id)
    request = import_requests.find_request(store, account_id, claim_id)
    is_watched = request is None or request.root not in import_requests.list_unwatched_roots(store)
    if before is not None and before.file == file:
        return FileRead(file, request, is_watched, before.resumes, before.source, before.issues)
    source = import_ledger.find_source(store, file)
    return FileRead(
        file,
        request,
        is_watched,
        import_ledger.find_items(store, account_id, claim_id, limit=MOST_ITEMS),
        None if source is None else lay_out(source, fault_of(file)),
        () if source is None else find_issues(file, source),
    )


def find_issues(file: FileRow, source: bytes) -> Sequence[Issue]:
    """What is wrong in a file that is no valid resume; the ledger keeps the first of it alone.

    Empty when the source is not whole, or does not say now what it said to the importer.
    """
    if file.reason != Reason.INVALID_RESUME or len(source) != file.size_bytes:
        return ()
    try:
        parse_imported(source)
    except InvalidResume as error:
        issues = error.issues
        return issues if issues[0].path == (file.path or "") else ()
    except ResumesError:
        pass
    return ()
