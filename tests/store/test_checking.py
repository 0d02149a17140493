"""What a store is checked for: each damage is really made, below the store, and found."""

from collections.abc import Sequence

import pytest
from sqlalchemy import text

from resumes.store import Store, creation, import_ledger, integrity, open_store, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import FileOutcome
from resumes.store.integrity import STOPPED, Defect
from resumes.store.sqlite.store import sqlite_engine
from tests.support.resumes import a_claim, a_resume
from tests.support.store.builders import (
    a_file,
    add_people,
    add_resumes,
    damage,
    find_flaws,
    index_all,
    path_of,
)

pytestmark = pytest.mark.engines


def test_a_store_that_was_used_is_well(store: Store, used: AccountInfo) -> None:
    entry = stored_resumes.list_page(store, used.id).entries[1]
    stored_resumes.delete_resume(store, used.id, entry.id)
    (made,) = creation.create(store, used.id, [a_resume("Eve")], claim=a_claim("6" * 24))
    assert isinstance(made, creation.Created)
    stored_resumes.delete_resume(store, used.id, made.id)  # its item outlives it (pitfalls I1)
    assert find_flaws(store) == []
    looked_at = [(one.account, one.resumes) for one in integrity.iter_accounts(store)]
    assert looked_at == [("ana", 3), ("bo", 4)]


FIRST = "SELECT min(id) FROM resumes WHERE account_id = :id"
NEWEST = "= (SELECT max(id) FROM resumes WHERE account_id = :id)"


RAISED = "UPDATE account_usage SET resume_count = resume_count + 1 WHERE account_id = :id"
LOWERED = "UPDATE account_usage SET last_id_us = last_id_us - 1 WHERE account_id = :id"
UNCOUNTED = "DELETE FROM account_usage WHERE account_id = :id"
NO_ID = (  # of the newest resume
    f"UPDATE documents SET id = 'zz' WHERE account_id = :id AND id {NEWEST}",
    "DELETE FROM imported_digests WHERE account_id = :id",
    "DELETE FROM search_entries WHERE account_id = :id",
    f"UPDATE resumes SET id = 'zz' WHERE account_id = :id AND id {NEWEST}",
)
TWO_DOCUMENTS = (
    "DELETE FROM documents WHERE account_id = :id AND id IN (SELECT id FROM resumes"
    " WHERE account_id = :id ORDER BY id LIMIT 2)"
)
A_RESUME = (
    f"DELETE FROM resumes WHERE account_id = :id AND id = ({FIRST})",
    "UPDATE account_usage SET resume_count = 3 WHERE account_id = :id",
)
DIGESTS = "UPDATE imported_digests SET resume_id = 'zz' WHERE account_id = :id"
REVOKED = "UPDATE api_keys SET revoked_at = '2027' WHERE account_id = :id AND revoked_at IS NULL"
NOT_REVOKED = "UPDATE api_keys SET revoked_at = NULL WHERE account_id = :id"
KEYS = "DELETE FROM api_keys WHERE account_id = :id"
FILES = "UPDATE imported_files SET outcome = 'zz' WHERE account_id = :id"
ITEMS = "UPDATE imported_items SET outcome = 'zz' WHERE account_id = :id"
STRAYS = {Defect.STRAY_DOCUMENT: 1, Defect.STRAY_DIGEST: 1, Defect.STRAY_SEARCH_ENTRY: 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "flaws"),
    [
        ([RAISED], {Defect.COUNTER: 1}),
        ([RAISED.replace("+", "-")], {Defect.COUNTER: 1}),
        ([LOWERED], {Defect.LAST_ID: 1}),
        ([UNCOUNTED], {Defect.NO_COUNTER: 1}),
        (NO_ID, {Defect.LAST_ID: 1}),
        ([TWO_DOCUMENTS], {Defect.NO_DOCUMENT: 2}),
        (A_RESUME, STRAYS),
        ([DIGESTS], {Defect.STRAY_DIGEST: 4}),
        ([REVOKED], {Defect.STRAY_KEY_HASH: 1}),
        ([NOT_REVOKED], {Defect.NO_KEY_HASH: 1}),
        ([KEYS], {Defect.STRAY_KEY_HASH: 1}),
        ([FILES], {Defect.BAD_OUTCOME: 1}),
        ([ITEMS], {Defect.BAD_OUTCOME: 4}),
    ],
)
def test_damage_is_found_and_a_remedy_in_sql_removes_it(
    store: Store, used: AccountInfo, harm: Sequence[str], flaws: dict[Defect, int]
) -> None:
    first = stored_resumes.list_page(store, used.id).entries[0].id
    damage(store, *harm, id=used.id)

    found = find_flaws(store)

    assert {one.defect: one.count for one in found} == flaws
    assert {one.account for one in found} == {"ana"}
    for flaw in found:
        if flaw.defect is Defect.NO_DOCUMENT:
            assert f"`resumes delete {first} --account ana`" in flaw.remedy
        if flaw.defect is Defect.NO_KEY_HASH:
            assert "`resumes keys create ana`" in flaw.remedy
        if flaw.remedy.startswith(STOPPED):
            damage(store, flaw.remedy.removeprefix(STOPPED))
            assert flaw.defect not in {one.defect for one in find_flaws(store)}


def test_rows_of_an_account_that_is_not_there(store: Store, used: AccountInfo) -> None:
    damage(store, "DELETE FROM accounts WHERE id = :id", id=used.id)
    flaws = find_flaws(store)
    assert {(one.defect, one.account) for one in flaws} == {(Defect.ORPHANS, used.id)}
    assert len(flaws) == 10
    for flaw in flaws:
        damage(store, flaw.remedy.partition("this SQL statement: ")[2])
    assert find_flaws(store) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [
        "{}",
        "not json",
        '{"header":[],"sections":{},"isImported":true}',
        '{"header":{},"sections":7,"isImported":true}',
        '{"a":' * 900 + "1" + "}" * 900,
    ],
)
def test_documents_that_are_no_resumes_or_in_which_a_letter_changed(
    store: Store, ana: AccountInfo, document: str
) -> None:
    ids = add_resumes(store, ana, 30)  # more than are read at once
    damage(store, "UPDATE documents SET document = replace(document, 'Ada 7', 'Adc 7')")
    damage(
        store,
        "UPDATE documents SET document = :document WHERE account_id = :id AND id IN (:a, :b)",
        document=document,
        id=ana.id,
        a=ids[1],
        b=ids[28],
    )
    bad, changed = sorted(find_flaws(store), key=lambda flaw: flaw.defect)
    assert (bad.defect, bad.account, bad.count) == (Defect.BAD_DOCUMENT, "ana", 2)
    assert f"`resumes delete {ids[1]} --account ana`" in bad.remedy
    assert (changed.defect, changed.account, changed.count) == (Defect.CHANGED_DOCUMENT, "ana", 1)


@pytest.mark.parametrize("content", ["not json", "[1,2]"])
def test_a_history_that_cannot_be_read(store: Store, used: AccountInfo, content: str) -> None:
    whole = '{"total":1,"done":1,"duplicate":0,"held":0,"failed":0,"problems":[]}'
    a_file(store, used, "8" * 24, FileOutcome.HELD, items=whole)
    assert find_flaws(store) == []
    damage(
        store, "UPDATE imported_files SET items = :content WHERE items IS NOT NULL", content=content
    )
    with pytest.raises(ValueError, match=r"."):
        import_ledger.parse_items(content)
    (flaw,) = find_flaws(store)
    assert (flaw.defect, flaw.account, flaw.count) == (Defect.BAD_ITEMS, "ana", 1)
    damage(store, flaw.remedy.removeprefix(STOPPED))
    assert find_flaws(store) == []


@pytest.mark.sqlite("a file")
def test_a_damaged_file(store: Store, used: AccountInfo, url: str) -> None:
    path = path_of(store)
    store.close()
    with sqlite_engine(path, transactions=False).connect() as connection:
        (page,) = connection.execute(
            text("SELECT rootpage FROM sqlite_schema WHERE name = 'imported_items'")
        ).one()
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
        (size,) = connection.exec_driver_sql("PRAGMA page_size").one()
    with path.open("r+b") as file:
        file.seek((page - 1) * size + 8)
        file.write(b"\xff" * 64)
    with open_store(url) as again:
        assert {one.defect for one in integrity.iter_damage(again)} == {Defect.DAMAGED}


DAMAGED_TEXT = (Defect.DAMAGED_TEXT, None, 4)


@pytest.mark.sqlite("PostgreSQL looks at what it takes")
@pytest.mark.parametrize(
    ("change", "flaws"),
    [
        ("documents SET document = CAST(x'7bf67d' AS TEXT) WHERE account_id", {DAMAGED_TEXT}),
        ("resumes SET title = CAST(x'f6' AS TEXT) WHERE account_id", {DAMAGED_TEXT}),
        ("resumes SET name = CAST(name AS BLOB) WHERE account_id", {DAMAGED_TEXT}),
        (
            "documents SET document = CAST(document AS BLOB) WHERE account_id",
            {DAMAGED_TEXT, (Defect.BAD_DOCUMENT, "ana", 4)},
        ),
        ("accounts SET plan = 'gone' WHERE id", {(Defect.FOREIGN_KEY, None, 1)}),
    ],
)
def test_what_only_a_file_lets_pass_is_told_of_once(
    store: Store, used: AccountInfo, change: str, flaws: set[tuple[Defect, str | None, int]]
) -> None:
    damage(store, f"UPDATE {change} = :id", id=used.id)
    found = find_flaws(store)
    assert {(flaw.defect, flaw.account, flaw.count) for flaw in found} == flaws
    assert len(found) == len(flaws)


@pytest.mark.sqlite("PostgreSQL looks at what it takes")
def test_an_id_that_cannot_be_read_hides_nothing_of_other_accounts(
    store: Store, used: AccountInfo
) -> None:
    damage(
        store,
        f"UPDATE resumes SET id = CAST(x'f6' AS TEXT) WHERE account_id = :id AND id {NEWEST}",
        "UPDATE account_usage SET resume_count = 9 WHERE account_id <> :id",
        "UPDATE documents SET document = '{}' WHERE account_id <> :id",
        id=used.id,
    )
    found = {(flaw.defect, flaw.account) for flaw in find_flaws(store)}
    assert found >= {
        (Defect.DAMAGED_TEXT, None), (Defect.COUNTER, "bo"), (Defect.BAD_DOCUMENT, "bo"),
    }  # fmt: skip


@pytest.mark.slow
def test_a_store_that_is_in_use_is_not_called_damaged(store: Store, ana: AccountInfo) -> None:
    """FTS5's check takes what a connection knew of the index before for what is in the file."""
    for number in range(30):
        kept, *others = add_people(store, ana, *(f"Ada {number} {other}" for other in range(4)))
        index_all(store)
        for resume_id in others if number % 2 else [kept]:
            stored_resumes.delete_resume(store, ana.id, resume_id)
        assert find_flaws(store) == []
