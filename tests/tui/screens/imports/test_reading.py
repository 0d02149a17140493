"""One file, read with all that is shown of it."""

import dataclasses

import pytest

from resumes.errors import NotFound
from resumes.store import accounts, asking, creating, importers
from resumes.store.engine import Store
from resumes.store.ledger import Claim, FileOutcome, FileRow
from resumes.store.requests import Action
from tests.resumes.builders import a_resume
from tests.resumes.store.builders import an_importer
from tests.tui.screens.imports.builders import ROOT, a_file, an_id
from tui.screens.imports.reading import MOST_ITEMS, FileRead, read_file
from tui.screens.imports.source_text import Mark


def read(store: Store, file: FileRow, before: FileRead | None = None) -> FileRead:
    return read_file(store, account_id=file.account_id, claim_id=file.claim_id, before=before)


def test_a_failed_file_comes_with_its_source_at_the_fault(store: Store) -> None:
    found = read(store, a_file(store, byte_offset=4, source=b"{\n  x\n"))
    assert found.source is not None
    assert (found.source.mark, found.source.lines[1]) == (Mark(2, 3, 2), "  x")
    assert (found.request, found.resumes) == (None, [])


def test_a_done_file_comes_with_the_resumes_that_it_became(store: Store) -> None:
    account = accounts.get_account(store, "ana")
    claim = Claim(an_id("1"), "ana/many.ndjson", 9, "2027-01-15T08:00:00.000Z", lambda: b"")
    count = MOST_ITEMS + 1
    creating.create(store, account.id, [a_resume(item=at) for at in range(count)], claim=claim)

    found = read_file(store, account_id=account.id, claim_id=an_id("1"))

    assert found.source is None
    assert [item.item for item in found.resumes] == list(range(MOST_ITEMS))


def test_what_is_asked_waits_where_no_importer_watches(store: Store) -> None:
    file = a_file(store)
    asking.ask(store, [file], Action.RETRY)
    found = read(store, file)
    assert found.request is not None
    assert (found.request.action, found.is_watched) == (Action.RETRY, False)

    importers.announce(store, an_importer(root=ROOT))

    assert read(store, file).is_watched


def test_what_cannot_have_changed_is_not_laid_out_again(store: Store) -> None:
    file = a_file(store)
    before = read(store, file)
    marked = dataclasses.replace(before, source=None)
    assert read(store, file, marked) == marked
    a_file(store, outcome=FileOutcome.HELD)
    assert read(store, file, marked).source == before.source


def test_a_file_that_is_gone_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        read_file(store, account_id="0" * 16, claim_id=an_id("1"))


def test_all_that_is_wrong_is_told_not_only_the_first(store: Store) -> None:
    source = b'{"title": 1, "header": {"email": 2}, "sections": {"nothings": {"column": 0}}}'
    file = a_file(
        store,
        reason="invalid_resume",
        message="Invalid field title: must be a string",
        path="title",
        source=source,
    )

    read = read_file(store, account_id=file.account_id, claim_id=file.claim_id)

    assert [issue.path for issue in read.issues] == ["title", "header.email", "sections.nothings"]


def test_a_source_that_is_cut_off_tells_only_what_the_ledger_does(store: Store) -> None:
    file = a_file(store, reason="invalid_resume", path="title", source=b"{}")

    read = read_file(store, account_id=file.account_id, claim_id=file.claim_id)

    assert read.issues == ()
