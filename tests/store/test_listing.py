"""Lists of resumes, page by page, one resume, and the first rows from a file."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from resumes.errors import InvalidArgument, NotFound
from resumes.store import Store, creation, identifiers, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.sqlite.driver import dbapi
from resumes.store.sqlite.first_rows import FirstRows, read_first_rows
from resumes.store.stored_resumes import Sort
from resumes.text import family_name_order, name_order
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    MakeAccount,
    a_person,
    add_people,
    add_resumes,
    damage,
    entries_of,
    listed_ids,
    made_ids,
    path_of,
    run_python,
)

pytestmark = pytest.mark.engines


def walk(store: Store, account: AccountInfo, limit: int) -> list[str]:
    read = partial(stored_resumes.list_page, store, account.id, limit=limit)
    return [entry.id for entry in entries_of(read)]


def after(store: Store, account: AccountInfo, cursor: str) -> list[str]:
    return [
        entry.id for entry in stored_resumes.list_page(store, account.id, cursor=cursor).entries
    ]


def test_every_id_that_was_seen_is_a_position_that_of_a_deleted_resume_too(
    store: Store, ana: AccountInfo, an_account: MakeAccount
) -> None:
    add_resumes(store, an_account("theirs"), 3)
    assert stored_resumes.list_page(store, ana.id) == stored_resumes.Page([], None)
    first, second, third = add_resumes(store, ana, 3)
    stored_resumes.delete_resume(store, ana.id, second)
    assert after(store, ana, second) == [third]
    assert walk(store, ana, 1) == [first, third]
    (new,) = add_resumes(store, ana, 1)
    assert after(store, ana, third) == [new]
    assert after(store, ana, "0" * 24) == [first, third, new]


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_lists_in_other_orders_come_page_by_page_and_names_alike_in_the_order_of_ids(
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
    in_order = [
        "Ed Adams Jr.", "Zoe Adams, PhD", "Óscar Álvarez", "Ada  van der  Berg II", "Ada Lovelace",
        "Lovelace, Zed", "Madonna", "Élodie Żak", "佐藤花子", "李小龙", "田中 太郎", "鈴木 一郎",
    ]  # fmt: skip
    add_people(store, ana, *sorted(in_order))
    read = partial(stored_resumes.list_sorted, store, ana.id, Sort.FAMILY_NAME, limit=2)
    assert [entry.name for entry in entries_of(read)] == in_order


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


@pytest.mark.parametrize("cursor", ["x", "0" * 23, "0" * 25, "0" * 23 + "G", "A" * 24, " " * 24])
def test_a_malformed_cursor_is_refused_and_by_name_one_that_is_no_resume(
    store: Store, ana: AccountInfo, cursor: str
) -> None:
    with pytest.raises(InvalidArgument, match="Invalid cursor"):
        stored_resumes.list_page(store, ana.id, cursor=cursor)
    with pytest.raises(InvalidArgument, match=f"no resume of this account has the ID {'0' * 24}"):
        stored_resumes.list_sorted(store, ana.id, Sort.NAME, cursor="0" * 24)


def test_coroutines_read_what_threads_read(
    store: Store, ana: AccountInfo, an_account: MakeAccount
) -> None:
    made = add_resumes(store, ana, 101)
    other = an_account("bo")

    async def read() -> None:
        for after, limit in (
            ("", -5),
            ("", 0),
            ("", 2),
            ("", 100),
            ("", 10**30),
            (made[1], 99),
            (made[100], 2),
        ):
            page = await stored_resumes.list_page_async(store, ana.id, cursor=after, limit=limit)
            assert page == stored_resumes.list_page(store, ana.id, cursor=after, limit=limit)
            rest = made[made.index(after) + 1 if after else 0 :]
            expected = rest[: max(1, min(limit, 100))]
            assert [entry.id for entry in page.entries] == expected
            # It is null on the last page also when that is exactly full.
            assert page.cursor == (expected[-1] if len(rest) > len(expected) else None)
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
    document = stored_resumes.get_resume(store, mine.id, kept).document
    assert document == batch[1].resume.document.decode()
    with store.read() as connection:
        documents = connection.execute(text("SELECT document FROM documents")).scalars()
        assert sorted("Ada" in document for document in documents) == [False, False, True]
    ada, bo = creation.create(store, mine.id, batch)
    assert isinstance(ada, creation.Created)
    assert bo == creation.Duplicate(kept)


# The first rows, from a store's file alone: as the open store answers, or none

OF_A_FILE = pytest.mark.sqlite("they are read from its file")

READ = """
    import sys
    from pathlib import Path
    from resumes.store.sqlite.first_rows import read_first_rows
    print(len(read_first_rows(Path(sys.argv[1]), None, 100).rows), "sqlalchemy" in sys.modules)
"""


@OF_A_FILE
def test_first_rows_are_those_of_the_named_account_or_of_the_first_that_holds_some(
    store: Store, an_account: MakeAccount
) -> None:
    path = path_of(store)
    _, bo, cy = an_account("ana"), an_account("bo"), an_account("cy")
    assert read_first_rows(path, None, 3) is None
    for account in (bo, cy):
        add_resumes(store, account, 4)
    for name, account in ((None, bo), ("bo", bo), ("cy", cy)):
        page = stored_resumes.list_page(store, account.id, limit=3)
        assert read_first_rows(path, name, 3) == FirstRows(account.name, page.entries)
    for name in ("ana", "nobody", "\udcff"):
        assert read_first_rows(path, name, 3) is None
    # They need nothing that takes long to import.
    run = run_python(READ, str(path))
    assert run.stdout == "4 False\n", run.stderr
    damage(store, "UPDATE accounts SET closed_at = created_at WHERE name = 'bo'")
    assert read_first_rows(path, "bo", 3) is None


@OF_A_FILE
def test_from_a_file_that_is_none_or_no_store_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no store " * 1_000)
    (tmp_path / "folder.db").mkdir()
    os.mkfifo(tmp_path / "pipe.db")
    for name in ("missing.db", "text.db", "folder.db", "pipe.db", "?mode=memory"):
        assert read_first_rows(tmp_path / name, None, 3) is None
    assert not (tmp_path / "missing.db").exists()


def changed(*statements: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with contextlib.closing(dbapi.connect(path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)

    return change


HARMS: dict[str, Callable[[Path], None]] = {
    "a pipe": lambda path: os.mkfifo(f"{path}-journal"),
    "a second name": lambda path: os.link(path, f"{path}.link"),
    "another program's": changed("PRAGMA application_id=1"),
    "endless": changed(
        "ALTER TABLE accounts RENAME TO others",
        "CREATE VIEW accounts AS WITH RECURSIVE endless(id) AS (SELECT 1 UNION ALL SELECT 1 FROM"
        " endless) SELECT id, 'ana' AS name, NULL AS closed_at FROM endless",
    ),
    "no UTF-8": changed("UPDATE resumes SET title = CAST(x'ff' AS TEXT)"),
    "no text": changed("UPDATE resumes SET title = x'00'"),
    "no bytes": changed("UPDATE resumes SET title = x''"),
}


@OF_A_FILE
@pytest.mark.parametrize("harm", HARMS)
def test_first_rows_of_a_file_that_is_not_to_be_opened_or_damaged_are_not_shown(
    store: Store, ana: AccountInfo, harm: str
) -> None:
    add_resumes(store, ana, 1)
    path = path_of(store)
    assert read_first_rows(path, "ana", 3) is not None
    HARMS[harm](path)
    assert read_first_rows(path, "ana", 3) is None
