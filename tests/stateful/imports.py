"""What importers may do to a watched folder and a store: the model's half that is about files.

    each file comes to one end             each resume made of a file is one part of one file
    nothing is imported that is stored     what a file has brought once it does not bring again
    a file is held only for want of room   who was held first is let in first
    files of no account stay               those of an account that is gone fail

Which file is taken when is the importer's affair; this only says what must be true afterwards.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from resumes.store import Store, import_requests
from resumes.store.entry import Entry
from resumes.store.import_ledger import FileOutcome
from tests.stateful.files import LABEL, End, Ends, File, Item, State
from tests.stateful.model import Account, Model, Stored, list_entries
from tests.stateful.requests import Body
from tests.support.inbox import oracle

ACCOUNT_DELETED = "account_deleted"
CRASHED = "crashed"
KILLS_TO_CRASH = 2
"""A file that was there when so many importers were killed may be taken for the cause."""


class Imports:
    """All dropped files of one installation."""

    def __init__(self, model: Model, root: Path) -> None:
        self._model = model
        self._root = root
        self.files: list[File] = []
        self.ignored: set[str] = set()
        """What lies below the watched folder and is nobody's business."""

    def note(self, store: Store, *, since_us: int, until_us: int, is_drained: bool) -> None:
        """An importer was at work; what it did is known, and was right.

        `is_drained`: it has come to its end, so nothing is left that it could have done.
        """
        queue = sorted((file for file in self.files if file.is_pending), key=_arrival)
        requested = {file for file in queue if file.is_asked_for}
        held = {file for file in queue if file.state is State.HELD}
        ends = Ends(self._root, store, self._model.accounts.values(), is_drained=is_drained)
        self._find_owners(queue, ends)
        for account in self._model.accounts.values():
            if account.is_open:
                for entry, body in self._find_new(store, account, queue):
                    stored = Stored(body, since_us, until_us, label=LABEL)
                    account.add(entry.id, stored, is_imported=True)
        brought = {file: self._note_items(file, ends) for file in queue}
        for file in queue:
            file.kills += not is_drained
            self._note_end(file, ends, is_drained=is_drained)
        if is_drained:
            self._check_drained(store)
            self._check_order(queue, brought, held, requested)

    def is_unsettled(self, known: Iterable[File]) -> bool:
        """Whether a store that knew these files would not be the only one to say what becomes of them.

        One that waits again, since its account was deleted before it was put away, is a new one for
        its importer and a duplicate for that store (tests/inbox/test_killed.py). A retry that an
        importer has begun is continued, whatever the store knows.
        """
        is_asked_for = any(file.is_asked_for for file in self.files)
        return is_asked_for or any(file.state is State.WAITING for file in known)

    def forget(self, items: Mapping[File, Mapping[int, Item]]) -> None:
        """The ledger is an older one. `items` are those of the files that it knew then."""
        for file in self.files:
            file.is_asked_for = False
            if file.state is State.ENDED:
                file.owner = None
            elif file.state is not State.WAITING:
                file.items = dict(items.get(file, {}))
                file.is_forgotten = True

    # The owner of a file is whoever has the account's name when it is taken.

    def _find_owners(self, pending: Iterable[File], ends: Ends) -> None:
        for file in pending:
            owner = self._model.owner_of(file.folder)
            if file.state is State.WAITING and not ends.is_waiting(file):
                assert owner is not None, f"{file.name} was taken, and is nobody's"
                file.owner = owner
                file.state = State.CLAIMED
            elif (
                file.state is State.CLAIMED and owner is not file.owner and ends.is_of(file, owner)
            ):
                # Who had it went before it was put away, and with them what was imported of it.
                file.owner, file.items = owner, {}

    # Resumes

    def _offered(self, queue: Iterable[File], account: Account) -> dict[str, Body]:
        """By name, what the account's files may bring: what none of them has brought before."""
        parts = [part for file in queue if file.owner is account for part in file.open_parts]
        return {part.body.name: part.body for part in parts if part.body is not None}

    def _find_new(
        self, store: Store, account: Account, queue: Iterable[File]
    ) -> list[tuple[Entry, Body]]:
        entries = list_entries(store, account)
        known = list(account.resumes)
        assert [entry.id for entry in entries[: len(known)]] == known, "an importer removes nothing"
        new = entries[len(known) :]
        offered = self._offered(queue, account)
        names = [entry.name or "" for entry in new]
        assert len(set(names)) == len(names), f"imported twice: {names}"
        for name in names:
            assert name in offered, f"{name} was imported, and no file is left that has it"
            assert offered[name].number not in account.contents, f"{name} was imported before"
        places = self._model.free_places(account)
        assert places is None or len(new) <= places, f"{len(new)} imported into {places} places"
        return [(entry, offered[name]) for entry, name in zip(new, names, strict=True)]

    def _note_items(self, file: File, ends: Ends) -> list[str]:
        """The ids of what the file has brought now."""
        row = ends.find_row(file)
        if row is None or file.owner is None:
            return []
        owner = file.owner
        items = ends.find_items(row)
        for number, item in file.items.items():
            assert items.get(number) == item, f"{file.name} forgot what became of item {number}"
        new = {number: item for number, item in items.items() if number not in file.items}
        for number, item in new.items():
            body = file.part(number).body
            assert owner.imported.get(item.resume_id) is body, f"{file.name}: {number} is {item}"
        brought = [item.resume_id for item in new.values() if item.outcome == "done"]
        for resume_id in brought:
            assert resume_id in owner.unexplained, f"two files brought {resume_id}"
            owner.unexplained.remove(resume_id)
        if owner.is_open:
            self._check_duplicates(file, new)
        file.items.update(new)
        return brought

    def _check_duplicates(self, file: File, new: dict[int, Item]) -> None:
        assert file.owner is not None
        for item in new.values():
            if item.outcome == "duplicate":
                assert item.resume_id in file.owner.resumes, f"{file.name} is no duplicate: {item}"

    # Ends

    def _note_end(self, file: File, ends: Ends, *, is_drained: bool) -> None:
        end = ends.find(file)
        if end is None:
            if ends.is_waiting(file) and ends.find_row(file) is None:
                # The ledger knows nothing of it any more.
                file.state, file.owner, file.items = State.WAITING, None, {}
            elif file.state is not State.WAITING:
                file.state = State.CLAIMED
            return
        row = ends.find_row(file)
        if not is_drained and end.outcome == "held" and row and row.outcome is not FileOutcome.HELD:
            file.state = (
                State.CLAIMED
            )  # it was released, and its importer ended before it was moved
            return
        file.is_forgotten &= end.outcome == "held"
        if file.owner is not None and file.owner.is_open:
            if not file.is_forgotten:
                assert row is not None, f"{file.name} is {end.outcome}, and not in the ledger"
                assert row.outcome.value == end.outcome, f"{file.name}: {row} but {end}"
            self._check_end(file, end)
        elif is_drained:
            self._check_end_of_nobody(file, end)
        file.claim_id = end.claim_id if row is None else row.claim_id
        file.state = State.HELD if end.outcome == "held" else State.ENDED
        file.outcome = end.outcome
        if is_drained:
            file.is_asked_for = False

    def _check_end(self, file: File, end: End) -> None:
        """The end follows from what became of the parts."""
        if end.outcome == "held":
            # A file to be unpacked waits for its turn, whatever is in it.
            assert file.open_parts or not file.content.is_single, f"{file.name} needs no place"
            assert end.reason == "quota_reached"
            return
        if end.reason == CRASHED:
            assert file.kills >= KILLS_TO_CRASH, f"{file.name} did not end {file.kills} importers"
            return
        assert not file.open_parts, f"lost of {file.name}: {file.open_parts}"
        reasons = [file.content.reason, *(part.reason for part in file.content.parts)]
        failures = [reason for reason in reasons if reason is not None]
        outcomes = {item.outcome for item in file.items.values()}
        if failures:
            assert (end.outcome, end.reason) == ("failed", failures[0]), f"{file.name}: {end}"
        else:
            expected = "duplicate" if outcomes == {"duplicate"} else "done"
            assert end.outcome == expected, f"{file.name}: {end}, of {file.items}"

    def _check_end_of_nobody(self, file: File, end: End) -> None:
        """Of an account that is gone nothing waits any more, and what was imported of one that is
        going is put away as that."""
        if end.outcome == "held" and file.is_forgotten:
            return  # an older store is back, and may not know the account yet
        assert end.outcome != "held", f"{file.name} waits for an account that is gone"
        is_going = file.owner is not None and self._model.accounts.get(file.folder) is file.owner
        if is_going and file.content.is_single and file.items and end.reason != CRASHED:
            assert end.outcome == file.items[0].outcome, f"{file.name}: {end}, of {file.items}"
        if end.outcome == "failed":
            reasons = [file.content.reason, *(part.reason for part in file.content.parts)]
            assert end.reason in (ACCOUNT_DELETED, CRASHED, *reasons), f"{file.name}: {end.reason}"

    # What holds when an importer has drained the folder

    def _check_drained(self, store: Store) -> None:
        waiting = {file for file in self.files if file.state is State.WAITING}
        left = self.ignored | {file.name for file in waiting}
        assert oracle.tally(self._root).left == left
        for file in waiting:
            assert self._model.owner_of(file.folder) is None, f"{file.name} was not taken"
        for account in self._model.accounts.values():
            if account.is_open:
                assert not account.unexplained, f"no file brought {account.unexplained}"
                self._check_room(account)
        assert import_requests.list_requests(store) == []
        notes = {*oracle.names_in(self._root / ".importer")} - {"store"}
        # Notes name files that may have ended an importer, and nobody's are not tried again.
        assert waiting or not notes, notes
        oracle.check_reports(self._root)

    def _check_room(self, account: Account) -> None:
        held = [file for file in self.files if file.owner is account and file.state is State.HELD]
        assert not held or self._model.free_places(account) == 0, f"held for no reason: {held}"

    def _check_order(
        self,
        queue: Sequence[File],
        brought: dict[File, list[str]],
        held: set[File],
        requested: set[File],
    ) -> None:
        """Nobody got a place before one who came first and wanted one.

        `held` were held before, `requested` were asked for. A bundle that is new
        may be overtaken: it is unpacked when those of one are stored.
        """
        for place, file in enumerate(queue):
            for later in queue[place + 1 :] if file.state is State.HELD else ():
                is_before = file in held or _are_single(file, later)
                if is_before and file.owner is later.owner and later not in requested:
                    assert not brought[later], f"{later.name} overtook {file.name}"
        singles = [file for file in queue if _are_single(file) and file not in requested]
        for account in self._model.accounts.values():
            mine = [file for file in singles if file.owner is account]
            ids = [resume_id for file in mine for resume_id in brought[file]]
            assert ids == sorted(ids), f"not in the order of arrival: {mine}"


def _are_single(*files: File) -> bool:
    return all(file.content.is_single for file in files)


def _arrival(file: File) -> tuple[bool, str, int]:
    """Files that were put away come first, in the order in which they were taken."""
    return not file.claim_id, file.claim_id, file.number
