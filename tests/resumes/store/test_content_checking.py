"""What cannot be read back is found: each damage is really made, below the store."""

import pytest

from resumes.store import Store, content_checking, items, listing
from resumes.store.accounts import AccountInfo
from resumes.store.checking import STOPPED, Defect
from resumes.store.ledger import FileOutcome
from tests.resumes.store.builders import a_file
from tests.resumes.store.damages import ana, damage, found, the_one

pytestmark = pytest.mark.engines

__all__ = ["ana"]  # a fixture

ITEMS = '{"total":1,"done":1,"duplicate":0,"held":0,"failed":0,"problems":[]}'


@pytest.mark.parametrize(
    "document",
    [
        "{}",
        "not json",
        '{"header":[],"sections":{},"isImported":true}',
        '{"header":{},"sections":7,"isImported":true}',
        '{"header":{},"sections":{}}',
        '{"a":' * 900 + "1" + "}" * 900,
    ],
)
def test_documents_that_are_no_resumes(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch, document: str
) -> None:
    monkeypatch.setattr(content_checking, "ROWS_AT_ONCE", 2)
    ids = [entry.id for entry in listing.list_page(store, ana.id).entries]
    damage(
        store,
        "UPDATE documents SET document = :document WHERE account_id = :id AND id IN (:a, :b)",
        document=document,
        id=ana.id,
        a=ids[1],
        b=ids[3],
    )
    (flaw,) = found(store)
    assert (flaw.defect, flaw.account, flaw.count) == (Defect.BAD_DOCUMENT, "ana", 2)
    assert f"`resumes delete {ids[1]} --account ana`" in flaw.remedy


@pytest.mark.parametrize("text", ["not json", "[1,2]"])
def test_a_history_that_cannot_be_read(store: Store, ana: AccountInfo, text: str) -> None:
    a_file(store, ana, "8" * 24, items=ITEMS)
    assert found(store) == []
    damage(store, "UPDATE imported_files SET items = :text WHERE items IS NOT NULL", text=text)
    with pytest.raises(ValueError, match=r"."):
        items.parse_items(text)
    (flaw,) = found(store)
    assert (flaw.defect, flaw.account, flaw.count) == (Defect.BAD_ITEMS, "ana", 1)
    damage(store, flaw.remedy.removeprefix(STOPPED))
    assert found(store) == []


@pytest.mark.parametrize("table", ["imported_files", "imported_items"])
def test_an_outcome_that_there_is_not(store: Store, ana: AccountInfo, table: str) -> None:
    a_file(store, ana, "8" * 24, FileOutcome.HELD)
    damage(store, f"UPDATE {table} SET outcome = 'zz' WHERE account_id = :id", id=ana.id)
    (flaw,) = found(store)
    assert (flaw.defect, flaw.account) == (Defect.BAD_OUTCOME, "ana")
    assert table in flaw.what
    damage(store, flaw.remedy.removeprefix(STOPPED))
    assert found(store) == []


@pytest.mark.sqlite("PostgreSQL keeps text that is UTF-8 only")
def test_text_that_is_no_utf8_is_told_of_once(store: Store, ana: AccountInfo) -> None:
    damage(
        store,
        "UPDATE documents SET document = CAST(x'7bff7d' AS TEXT) WHERE account_id = :id",
        id=ana.id,
    )
    assert the_one(store)[0] is Defect.DAMAGED_TEXT
