"""Labels: what may be one, and lists and searches of the resumes that have one."""

from collections.abc import Sequence
from functools import partial

import pytest

from resumes.errors import InvalidArgument
from resumes.store import Store, creation, search, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Duplicate
from resumes.store.labels import check_label, label_of_folder
from resumes.store.stored_resumes import Sort
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    MakeAccount,
    a_person,
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


def test_a_duplicate_keeps_the_label_that_is_stored(store: Store, ana: AccountInfo) -> None:
    new = a_resume(with_digest=True)
    (made,) = made_ids(creation.create(store, ana.id, [new._replace(label="first")]))
    again = creation.create(store, ana.id, [new._replace(label="second")])
    assert again == [Duplicate(made)]
    assert stored_resumes.get_entry(store, ana.id, made).label == "first"
