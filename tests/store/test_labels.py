"""Labels: what may be one, and lists and searches of the resumes that have one."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from resumes.errors import InvalidArgument
from resumes.search.words import index_tokens
from resumes.store import Store, accounts, creation, labels, search, search_index, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Duplicate
from resumes.store.labels import check_label, label_of_folder
from resumes.store.stored_resumes import Sort
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    MakeAccount,
    a_person,
    count_rows,
    damage,
    entries_of,
    index_all,
    made_ids,
)

pytestmark = pytest.mark.engines

# Their words are the same.
LABELS = ("class-2026", "Class 2026", None, '“2026” "class"', "☺")


def test_a_label_is_a_short_text_that_can_be_printed() -> None:
    assert check_label("  Zo\u0065\u0308 & Söhne/2026 ") == "Zoë & Söhne/2026"
    assert check_label("x" * 100) == "x" * 100
    for wrong in ("", " ", "x" * 101, "a\nb", "a\0b", "a\u202eb", "a\u200bb", "\ud800", "\ufffd"):
        with pytest.raises(InvalidArgument, match="1 to 100 printable characters"):
            check_label(wrong)
    assert label_of_folder(" Zo\u0065\u0308 ") == "Zoë"
    assert label_of_folder("x" * 99 + " yz") == "x" * 99
    assert label_of_folder(" ") is None


def ids(
    store: Store, account: AccountInfo, query: str | None, *, label: str | None = None
) -> list[str]:
    found = search.iter_entries(store, account.id, query, label=label)
    return [entry.id for entry in found]


def add_labelled(store: Store, account: AccountInfo, labels: Sequence[str | None]) -> list[str]:
    """The ids of new resumes with these labels."""
    new = [a_person(f"Ada {at:02}")._replace(label=label) for at, label in enumerate(labels)]
    return made_ids(creation.create(store, account.id, new))


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_the_resumes_of_a_label_are_listed_and_found_page_by_page_in_any_order(
    store: Store, ana: AccountInfo, an_account: MakeAccount, limit: int
) -> None:
    add_labelled(store, an_account("theirs"), LABELS)
    made = add_labelled(store, ana, LABELS * 4)
    index_all(store)
    for at, label in enumerate(LABELS):
        if label is None:
            continue
        expected = made[at :: len(LABELS)]
        for sort in Sort:
            read = partial(
                stored_resumes.list_sorted, store, ana.id, sort, label=label, limit=limit
            )
            in_order = expected[::-1] if sort is Sort.NEWEST else expected
            assert [entry.id for entry in entries_of(read)] == in_order
            assert {entry.label for entry in entries_of(read)} == {label}
        for query in ("ada", '"ada"', "-zoe", "label:2026 name:ad"):
            for is_newest_first in (False, True):
                find = partial(
                    search.find_page,
                    store,
                    ana.id,
                    query,
                    label=label,
                    limit=limit,
                    is_newest_first=is_newest_first,
                    timeout_s=60,
                )
                found = [entry.id for entry in entries_of(lambda find=find, **at: find(**at).page)]
                has_words = label != "☺" or "label:" not in query
                in_order = expected[::-1] if is_newest_first else expected
                assert found == (in_order if has_words else []), (label, query)
    of_2026 = search.find_page(store, ana.id, "label:2026", timeout_s=60).page.entries
    assert [entry.label for entry in of_2026] == [LABELS[0], LABELS[1], LABELS[3]] * 4
    assert stored_resumes.list_page(store, ana.id, label="2026").entries == []


def test_a_changed_label_is_listed_and_found_at_once(store: Store, ana: AccountInfo) -> None:
    made = add_labelled(store, ana, ["old"] * 3 + [None])
    index_all(store)
    before = stored_resumes.get_entry(store, ana.id, made[1])
    done: list[int] = []
    unknown = "0" * 24

    assert labels.set_label(store, ana.id, [*made[1:], unknown], "new", on_count=done.append) == 3

    assert done == [3]
    assert stored_resumes.get_entry(store, ana.id, made[1]) == before._replace(label="new")
    assert labels.list_labels(store, ana.id) == [("new", 3), ("old", 1)]
    assert ids(store, ana, "label:new") == made[1:]
    assert ids(store, ana, "label:old") == made[:1]
    assert ids(store, ana, "ada", label="new") == made[1:]
    labels.set_label(store, ana.id, made[:2], "Émile")
    assert labels.list_labels(store, ana.id) == [("Émile", 2), ("new", 2)]
    labels.set_label(store, ana.id, made, None)
    assert labels.list_labels(store, ana.id) == []
    assert ids(store, ana, "label:new") == ids(store, ana, "ada", label="new") == []
    assert ids(store, ana, "ada") == made


def test_a_label_that_changes_while_its_resume_is_read_to_be_indexed_is_found(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made,) = add_labelled(store, ana, ["old"])

    def change_first(*args: Any, **columns: Any) -> set[str]:
        monkeypatch.undo()
        labels.set_label(store, ana.id, [made], "new")
        return index_tokens(*args, **columns)

    monkeypatch.setattr("resumes.store.search_index.index_tokens", change_first)
    index_all(store)
    assert ids(store, ana, "label:new") == [made]
    assert ids(store, ana, "label:old") == []


def test_a_damaged_resume_is_labelled_too(store: Store, ana: AccountInfo) -> None:
    made = add_labelled(store, ana, [None, None])
    index_all(store)
    damage(store, f"UPDATE documents SET document = '[' WHERE id = '{made[0]}'")
    damage(store, f"DELETE FROM documents WHERE id = '{made[1]}'")
    assert labels.set_label(store, ana.id, made, "a") == 2
    assert labels.list_labels(store, ana.id) == [("a", 2)]
    assert ids(store, ana, "label:a") == []


def test_many_are_changed_and_deleted_a_part_at_a_time(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "MAX_CHANGED", 3)
    monkeypatch.setattr(stored_resumes, "MAX_DELETED", 3)
    new = [a_resume(f"Ada {at}", with_digest=True) for at in range(8)]
    made = made_ids(creation.create(store, ana.id, new))
    index_all(store)
    done: list[int] = []
    assert labels.set_label(store, ana.id, made, "a", on_count=done.append) == 8
    unknown = ["0" * 24, "f" * 24]
    deleted = stored_resumes.delete_resumes(
        store, ana.id, [*made[:4], *unknown, *made[4:7]], on_count=done.append
    )
    assert deleted == 7
    assert done == [3, 6, 8, 3, 4, 7]
    assert ids(store, ana, "ada") == made[7:]
    assert accounts.list_wrong(store) == []
    assert [count_rows(store, name) for name in ("documents", "imported_digests")] == [1, 1]
    assert search_index.count_indexed(store) == (1, 1)
    # What is deleted can be imported again.
    assert len(made_ids(creation.create(store, ana.id, new[:7]))) == 7


def test_a_newer_version_without_a_label_has_that_of_the_version_that_it_replaces(
    store: Store, ana: AccountInfo
) -> None:
    def add(*given: str | None) -> list[str | None]:
        person = a_person("Ada", email="ada@example.org")
        creation.create(store, ana.id, [person._replace(label=label) for label in given])
        return [entry.label for entry in stored_resumes.list_page(store, ana.id).entries]

    accounts.set_options(store, "ana", {"on_newer": "replace"})
    assert add(None, "first") == ["first"]
    assert add(None) == add(None, None) == ["first"]
    assert add("second", None) == ["second"]


def test_a_duplicate_keeps_the_label_that_is_stored(store: Store, ana: AccountInfo) -> None:
    new = a_resume(with_digest=True)
    (made,) = made_ids(creation.create(store, ana.id, [new._replace(label="first")]))
    again = creation.create(store, ana.id, [new._replace(label="second")])
    assert again == [Duplicate(made)]
    assert stored_resumes.get_entry(store, ana.id, made).label == "first"
