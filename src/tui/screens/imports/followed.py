"""Files that were asked for here, until it is known what became of them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from resumes.errors import NotFound
from resumes.import_reasons import plain_words
from resumes.store import import_ledger
from resumes.store.import_ledger import FileRow
from resumes.store.store import Store
from tui.notices import Failure
from tui.store_client import StoreClient

FOLLOWED: Final = "followed"

MOST_FOLLOWED: Final = 20
"""Further ones are seen in the list alone."""

MOST_NAME_CHARS: Final = 60
"""A message has one line."""


class Followed:
    """What became of a file that was asked for is told once, wherever in the list it is by then."""

    def __init__(self, client: StoreClient, tell: Callable[[str], None]) -> None:
        self._client = client
        self._tell = tell
        self._files: dict[str, FileRow] = {}
        self._is_looking = False

    def add(self, file: FileRow) -> None:
        """The file was asked for."""
        if len(self._files) < MOST_FOLLOWED:
            self._files[file.claim_id] = file

    def look(self) -> None:
        """Whatever came to a new end is being told."""
        # Asked again, the call that is under way would be for nothing.
        if self._files and not self._is_looking:
            self._is_looking = True
            self._client.read(
                FOLLOWED,
                partial(read_ended, files=list(self._files.values())),
                then=self._ended,
                failed=self._failed,
            )

    def _ended(self, ended: Sequence[FileRow]) -> None:
        self._is_looking = False
        for file in ended:
            if self._files.pop(file.claim_id, None) is not None:
                self._tell(ending(file))

    def _failed(self, _: Failure) -> None:
        # It is looked again soon, and the list says what is wrong.
        self._is_looking = False


def read_ended(store: Store, *, files: Sequence[FileRow]) -> list[FileRow]:
    """Those of the files that came to an end since they were read, as they are now."""
    now = [found for file in files if (found := _find(store, file)) is not None]
    before = {file.claim_id: file.finished_at for file in files}
    return [
        file for file in now if file.finished_at != before[file.claim_id] and not file.is_under_way
    ]


def _find(store: Store, file: FileRow) -> FileRow | None:
    try:
        return import_ledger.get_file(store, file.claim_id, account_id=file.account_id)
    except NotFound:
        return None


def ending(file: FileRow) -> str:
    """`Done: ana/cv.json`, `Failed, not a valid resume: ana/cv.json`."""
    why = "" if file.reason is None else f", {plain_words(file.reason)}"
    return f"{file.outcome.capitalize()}{why}: {file.name[-MOST_NAME_CHARS:]}"
