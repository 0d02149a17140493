"""What became of dropped files, as the watched folder and the ledger tell it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from resumes.store import Store, import_ledger
from resumes.store.import_history import FileRow
from tests.stateful.files import File, Item
from tests.stateful.model import Account
from tests.support.inbox import oracle

FILED: Final = re.compile(r"(?:([0-9a-f]{24})-[0-9a-f]{16}-)?(f\d+)(?:-[0-9a-f]{8,24})?\.[a-z.]+")
"""The name of a file that was put away: that of a held one begins with its claim's id."""


@dataclass(frozen=True, slots=True)
class End:
    """Where a file lies that was put away. `claim_id` is known by the name of a held one."""

    outcome: str
    path: Path
    claim_id: str

    @property
    def reason(self) -> str | None:
        """Why it is not done, as its report says."""
        if self.outcome == "done":
            return None
        return str(oracle.report_of(self.path)["reason"])


class Ends:
    """One look at a watched folder and its ledger."""

    def __init__(self, root: Path, store: Store, accounts: Iterable[Account]) -> None:
        self._root = root
        self._store = store
        self._ends = _find_ends(root)
        self._rows = _find_rows(store, accounts)

    def find(self, file: File) -> End | None:
        """Where the file was put away, if it was."""
        return self._ends.get(file.stem)

    def find_row(self, file: File) -> FileRow | None:
        """What the ledger of its account says of the file; None as well when that is gone."""
        return None if file.owner is None else self._rows.get((file.owner.id, file.name))

    def is_of(self, file: File, owner: Account | None) -> bool:
        """Whether the ledger has the file as one of the account's."""
        return owner is not None and (owner.id, file.name) in self._rows

    def is_waiting(self, file: File) -> bool:
        """Whether the file lies where it was dropped, and was not imported yet."""
        is_imported = any(name == file.name for _, name in self._rows)
        return not is_imported and (self._root / file.name).exists()

    def find_items(self, row: FileRow) -> dict[int, Item]:
        """The parts of a file that reached their end, by number."""
        items = import_ledger.find_items(self._store, row.account_id, row.claim_id)
        return {one.item: Item(one.outcome.value, one.resume_id) for one in items}


def _find_ends(root: Path) -> dict[str, End]:
    ends: dict[str, End] = {}
    for outcome in oracle.OUTCOMES:
        for path in oracle.files_of(root, outcome):
            match = FILED.fullmatch(path.name)
            assert match is not None, f"{path} was not dropped by us"
            assert match[2] not in ends, f"{match[2]} was put away twice"
            ends[match[2]] = End(outcome, path, match[1] or "")
    return ends


def _find_rows(store: Store, accounts: Iterable[Account]) -> dict[tuple[str, str], FileRow]:
    """By account and name; without the history that an account brought with it."""
    history = {(one.id, claim_id) for one in accounts for claim_id in one.history}
    rows: dict[tuple[str, str], FileRow] = {}
    for row in oracle.iter_rows(store):
        if (row.account_id, row.claim_id) not in history:
            assert (row.account_id, row.name) not in rows, f"{row.name} is in the ledger twice"
            rows[row.account_id, row.name] = row
    return rows
