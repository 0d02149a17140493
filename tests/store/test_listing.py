"""Lists of resumes, page by page, and one resume."""

import asyncio
from contextlib import suppress
from functools import partial

import pytest
from sqlalchemy import text

from resumes.errors import InvalidArgument, NotFound
from resumes.store import Store, creation, identifiers, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.entry import Entry
from resumes.store.stored_resumes import Sort
from resumes.text import family_name_order, name_order
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    MakeAccount,
    a_person,
    add_resumes,
    entries_of,
    listed_ids,
    made_ids,
)

pytestmark = pytest.mark.engines


def walk(store: Store, account: AccountInfo, limit: int) -> list[str]:
    read = partial(stored_resumes.list_page, store, account.id, limit=limit)
    return [entry.id for entry in entries_of(read)]


def after(store: Store, account: AccountInfo, cursor: str) -> list[str]:
    return [
        entry.id for entry in stored_resumes.list_page(store, account.id, cursor=cursor).entries
    ]


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_pages_of_any_size_give_the_same_resumes_in_the_same_order(
    store: Store, ana: AccountInfo, limit: int
) -> None:
    made = add_resumes(store, ana, 120)
    assert walk(store, ana, limit) == made == sorted(made)


def test_the_cursor_is_null_on_the_last_page_also_when_it_is_exactly_full(
    store: Store, ana: AccountInfo
) -> None:
    assert stored_resumes.list_page(store, ana.id) == stored_resumes.Page([], None)
    made = add_resumes(store, ana, 7)
    assert stored_resumes.list_page(store, ana.id, limit=7).cursor is None
    assert stored_resumes.list_page(store, ana.id, limit=6).cursor == made[5]


def test_every_id_that_was_seen_is_a_position_that_of_a_deleted_resume_too(
    store: Store, ana: AccountInfo, an_account: MakeAccount
) -> None:
    add_resumes(store, an_account("theirs"), 3)
    first, second, third = add_resumes(store, ana, 3)
    stored_resumes.delete_resume(store, ana.id, second)
    assert after(store, ana, second) == [third]
    assert walk(store, ana, 1) == [first, third]
    (new,) = add_resumes(store, ana, 1)
    assert after(store, ana, third) == [new]
    assert after(store, ana, "0" * 24) == [first, third, new]


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_lists_in_other_orders_come_page_by_page(
    store: Store, ana: AccountInfo, an_account: MakeAccount, limit: int
) -> None:
    names = ["bo", "Ada", None, "Émile", "ADA", "Bo", "cy", "Дмитрий", "Emma", "Elle"]
    creation.create(store, an_account("theirs").id, [a_person("Abe")])
    made = made_ids(creation.create(store, ana.id, [a_person(name) for name in names]))
    by_name = [made[at] for at in (2, 1, 4, 0, 5, 6, 9, 3, 8, 7)]

    for sort, expected in (
        (Sort.OLDEST, made),
        (Sort.NEWEST, made[::-1]),
        (Sort.NAME, by_name),
        (Sort.FAMILY_NAME, by_name),
    ):
        read = partial(stored_resumes.list_sorted, store, ana.id, sort, limit=limit)
        assert [entry.id for entry in entries_of(read)] == expected, sort


def test_family_names_are_last_words_without_degrees(store: Store, ana: AccountInfo) -> None:
    names = [
        "Óscar Álvarez", "Zoe Adams, PhD", "Ada Lovelace", "Lovelace, Zed", "Ed Adams Jr.", "Élodie Żak",
        "Madonna", "李小龙", "Ada  van der  Berg II", "鈴木 一郎", "田中 太郎", "佐藤花子",
    ]  # fmt: skip
    made = made_ids(creation.create(store, ana.id, [a_person(name) for name in names]))
    read = partial(stored_resumes.list_sorted, store, ana.id, Sort.FAMILY_NAME, limit=2)
    by_id = dict(zip(made, names, strict=True))
    assert [by_id[entry.id] for entry in entries_of(read)] == [
        "Ed Adams Jr.", "Zoe Adams, PhD", "Óscar Álvarez", "Ada  van der  Berg II", "Ada Lovelace",
        "Lovelace, Zed", "Madonna", "Élodie Żak", "佐藤花子", "李小龙", "田中 太郎", "鈴木 一郎",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["a" + " " * 20_000 + "b", "a, " * 6_000, "phd " * 5_000])
def test_names_of_any_kind_are_sorted(name: str) -> None:
    assert family_name_order(name) == family_name_order(f"{name} ")


def test_a_resume_that_is_deleted_while_names_are_sorted_is_left_out(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_ids(creation.create(store, ana.id, [a_person(name) for name in "abcd"]))

    def delete_first(name: str) -> str:
        with suppress(NotFound):
            stored_resumes.delete_resume(store, ana.id, made[1])
        return name_order(name)

    monkeypatch.setattr("resumes.store.stored_resumes.name_order", delete_first)
    page = stored_resumes.list_sorted(store, ana.id, Sort.NAME, limit=3)
    assert [entry.id for entry in page.entries] == [made[0], made[2]]
    assert page.cursor == made[2]


def test_resumes_of_one_name_are_in_the_order_of_their_ids(store: Store, ana: AccountInfo) -> None:
    made = made_ids(creation.create(store, ana.id, [a_person("Ada")] * 60))
    read = partial(stored_resumes.list_sorted, store, ana.id, Sort.NAME, limit=7)
    assert [entry.id for entry in entries_of(read)] == made


@pytest.mark.parametrize("sort", Sort)
def test_lists_in_any_order_have_the_same_limits_and_end_with_an_exactly_full_page(
    store: Store, ana: AccountInfo, sort: Sort
) -> None:
    *_, last = add_resumes(store, ana, 101)
    read = partial(stored_resumes.list_sorted, store, ana.id, sort)
    counts = [len(read(limit=limit).entries) for limit in (-5, 0, 1, 100, 10**30)]
    assert counts == [1, 1, 1, 100, 100]
    assert read() == read(cursor="", limit=stored_resumes.DEFAULT_LIMIT)
    assert read(limit=100).cursor is not None
    stored_resumes.delete_resume(store, ana.id, last)
    assert read(limit=100).cursor is None


def test_by_name_the_cursor_has_to_be_a_resume(store: Store, ana: AccountInfo) -> None:
    add_resumes(store, ana, 1)
    with pytest.raises(InvalidArgument, match=f"no resume of this account has the ID {'0' * 24}"):
        stored_resumes.list_sorted(store, ana.id, Sort.NAME, cursor="0" * 24)


@pytest.mark.parametrize("cursor", ["x", "0" * 23, "0" * 25, "0" * 23 + "G", "A" * 24, " " * 24])
def test_a_malformed_cursor_is_refused(store: Store, ana: AccountInfo, cursor: str) -> None:
    with pytest.raises(InvalidArgument, match="Invalid cursor"):
        stored_resumes.list_page(store, ana.id, cursor=cursor)


def test_the_limit_is_brought_into_1_to_100(store: Store, ana: AccountInfo) -> None:
    add_resumes(store, ana, 101)
    for asked, given in ((-5, 1), (0, 1), (1, 1), (100, 100), (10**30, 100)):
        assert len(stored_resumes.list_page(store, ana.id, limit=asked).entries) == given


def test_coroutines_read_what_threads_read(
    store: Store, ana: AccountInfo, an_account: MakeAccount
) -> None:
    made = add_resumes(store, ana, 5)
    other = an_account("bo")

    async def read() -> None:
        for after, limit in (("", 2), ("", 5), ("", 10**30), (made[1], 2), (made[4], 2), ("", 0)):
            page = await stored_resumes.list_page_async(store, ana.id, cursor=after, limit=limit)
            assert page == stored_resumes.list_page(store, ana.id, cursor=after, limit=limit)
        page = await stored_resumes.list_page_async(store, ana.id)
        assert page == stored_resumes.list_page(store, ana.id)
        with pytest.raises(InvalidArgument, match="Invalid cursor"):
            await stored_resumes.list_page_async(store, ana.id, cursor="x")
        one = await stored_resumes.get_resume_async(store, ana.id, made[0])
        assert one == stored_resumes.get_resume(store, ana.id, made[0])
        for account_id, resume_id in ((other.id, made[0]), (ana.id, "0" * 24), (ana.id, "x")):
            with pytest.raises(NotFound):
                await stored_resumes.get_resume_async(store, account_id, resume_id)

    asyncio.run(read())


def test_a_page_as_json_is_what_a_client_gets() -> None:
    entry = Entry("1" * 24, None, "Ada", "AdaResume.pdf", "2026-01-31T09:00:00.000Z", "u")
    assert stored_resumes.Page([entry], "1" * 24).as_json(limit=1) == {
        "resumes": [
            {
                "id": "1" * 24,
                "title": "Ada Resume",
                "filename": "AdaResume.pdf",
                "createdAt": "2026-01-31T09:00:00.000Z",
                "updatedAt": "u",
            }
        ],
        "pagination": {"cursor": "1" * 24, "limit": 1},
    }


def test_an_id_is_its_position_and_8_random_digits_and_compares_as_its_position_does() -> None:
    positions = [0, 1, 9, 10, 15, 16, 255, 1_800_000_000_000_000, 2**53]
    ids = [identifiers.resume_id(position) for position in positions]
    assert all(map(identifiers.RESUME_ID.fullmatch, ids))
    assert ids == sorted(ids)
    assert ids[6].startswith("00000000000000ff")
    assert ids[6] != identifiers.resume_id(255)
    tails = list(identifiers.tails(200))
    assert len(tails) == len(set(tails)) == 200
    assert all(identifiers.RESUME_ID.fullmatch(identifiers.resume_id(1, tail)) for tail in tails)
    assert identifiers.resume_id(255, tails[0]) == f"00000000000000ff{tails[0]}"


# One resume


def test_one_resume_is_its_entry_and_its_document(store: Store, ana: AccountInfo) -> None:
    new = a_resume("Ada Example")
    creation.create(store, ana.id, [new, a_resume("Bo Example")])
    entry, other = stored_resumes.list_page(store, ana.id).entries
    assert stored_resumes.get_resume(store, ana.id, entry.id) == stored_resumes.StoredResume(
        entry, new.resume.document.decode()
    )
    assert stored_resumes.get_resume(store, ana.id, other.id).entry == other
    assert stored_resumes.get_entry(store, ana.id, other.id) == other


def test_what_is_no_id_of_a_resume_of_the_account_is_not_found(
    store: Store, ana: AccountInfo, an_account: MakeAccount
) -> None:
    (theirs,) = add_resumes(store, an_account("theirs"), 1)
    for resume_id in ("", "x", "A" * 24, "0" * 24, "0" * 25, theirs):
        for call in (
            stored_resumes.get_entry,
            stored_resumes.get_resume,
            stored_resumes.delete_resume,
        ):
            with pytest.raises(NotFound, match=r"^Resume not found$"):
                call(store, ana.id, resume_id)
        with pytest.raises(NotFound, match=r"^Resume not found$"):
            asyncio.run(stored_resumes.delete_resume_async(store, ana.id, resume_id))


def test_deleting_frees_the_place(store: Store, an_account: MakeAccount) -> None:
    account = an_account(plan="free")
    made = add_resumes(store, account, 6)
    assert len(made) == 5
    stored_resumes.delete_resume(store, account.id, made[0])
    assert len(add_resumes(store, account, 2)) == 1


def texts(store: Store) -> list[str]:
    """All documents in the store, of whatever account."""
    with store.read() as connection:
        return list(connection.execute(text("SELECT document FROM documents")).scalars())


@pytest.mark.parametrize("is_async", [False, True])
def test_deleting_takes_one_resume_with_its_document_and_its_digest_and_nothing_else(
    store: Store, an_account: MakeAccount, is_async: bool
) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    batch = [a_resume(name, with_digest=True) for name in ("Ada", "Bo")]
    gone, kept = made_ids(creation.create(store, mine.id, batch))
    creation.create(store, theirs.id, batch)

    if is_async:
        asyncio.run(stored_resumes.delete_resume_async(store, mine.id, gone))
    else:
        stored_resumes.delete_resume(store, mine.id, gone)

    assert listed_ids(store, mine) == [kept]
    assert len(listed_ids(store, theirs)) == 2
    assert (
        stored_resumes.get_resume(store, mine.id, kept).document
        == batch[1].resume.document.decode()
    )
    assert sorted("Ada" in document for document in texts(store)) == [False, False, True]
    ada, bo = creation.create(store, mine.id, batch)
    assert isinstance(ada, creation.Created)
    assert bo == creation.Duplicate(kept)
