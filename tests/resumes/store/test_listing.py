import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import select

from resumes.errors import InvalidArgument, NotFound
from resumes.store import Store, creating, listing
from resumes.store.accounts import AccountInfo
from resumes.store.schema import documents
from tests.resumes.builders import a_resume

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def fill(store: Store, account: AccountInfo, count: int) -> list[str]:
    outcomes = creating.create(store, account.id, [a_resume(f"P {n}") for n in range(count)])
    return [outcome.id for outcome in outcomes if isinstance(outcome, creating.Created)]


def walk(store: Store, account: AccountInfo, limit: int) -> list[str]:
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = listing.list_page(store, account.id, cursor=cursor, limit=limit)
        seen += [entry.id for entry in page.entries]
        cursor = page.cursor
    return seen


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_pages_of_any_size_give_the_same_resumes_in_the_same_order(
    store: Store, an_account: MakeAccount, limit: int
) -> None:
    account = an_account()
    made = fill(store, account, 120)
    assert walk(store, account, limit) == made == sorted(made)


def test_the_cursor_is_null_when_the_page_is_exactly_full(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    fill(store, account, 7)
    assert listing.list_page(store, account.id, limit=7).cursor is None
    assert listing.list_page(store, account.id, limit=6).cursor is not None


def test_an_empty_account_has_one_empty_page(store: Store, an_account: MakeAccount) -> None:
    assert listing.list_page(store, an_account().id) == listing.Page([], None)


def test_after_null_the_list_goes_on_with_the_last_id(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    *_, last = fill(store, account, 3)
    (new,) = fill(store, account, 1)
    page = listing.list_page(store, account.id, cursor=last)
    assert [entry.id for entry in page.entries] == [new]


def test_the_id_of_a_deleted_resume_is_a_position(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    first, second, third = fill(store, account, 3)
    listing.delete_resume(store, account.id, second)
    page = listing.list_page(store, account.id, cursor=second)
    assert [entry.id for entry in page.entries] == [third]
    assert walk(store, account, 1) == [first, third]


def test_another_accounts_id_is_a_mere_position(store: Store, an_account: MakeAccount) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    (my_id,) = fill(store, mine, 1)
    fill(store, theirs, 3)
    shown = {entry.id for entry in listing.list_page(store, mine.id, cursor="0" * 24).entries}
    assert shown == {my_id}


@pytest.mark.parametrize("cursor", ["x", "0" * 23, "0" * 25, "0" * 23 + "G", "A" * 24, " " * 24])
def test_a_malformed_cursor_is_refused(store: Store, an_account: MakeAccount, cursor: str) -> None:
    with pytest.raises(InvalidArgument, match="Invalid cursor"):
        listing.list_page(store, an_account().id, cursor=cursor)


@pytest.mark.parametrize(("asked", "given"), [(-5, 1), (0, 1), (1, 1), (100, 100), (10**30, 100)])
def test_the_limit_is_brought_into_1_to_100(
    store: Store, an_account: MakeAccount, asked: int, given: int
) -> None:
    account = an_account()
    fill(store, account, 101)
    assert len(listing.list_page(store, account.id, limit=asked).entries) == given


def test_a_resume_of_another_account_is_not_found(store: Store, an_account: MakeAccount) -> None:
    (theirs,) = fill(store, an_account("theirs"), 1)
    mine = an_account("mine")
    for call in (listing.get_resume, listing.delete_resume):
        with pytest.raises(NotFound, match="Resume not found"):
            call(store, mine.id, theirs)


def test_deleting_frees_the_place(store: Store, an_account: MakeAccount) -> None:
    account = an_account(plan="free")
    made = fill(store, account, 6)
    assert len(made) == 5
    listing.delete_resume(store, account.id, made[0])
    assert len(fill(store, account, 2)) == 1


def test_a_page_as_json_is_what_a_client_gets() -> None:
    entry = listing.Entry("1" * 24, None, "Ada", "AdaResume.pdf", "2026-01-31T09:00:00.000Z", "u")
    assert listing.Page([entry], "1" * 24).as_json(limit=1) == {
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
    assert entry.shown_title == "Ada Resume"


# One resume


def texts(store: Store) -> list[str]:
    """All documents in the store, of whatever account."""
    with store.read() as connection:
        return [document for (document,) in connection.execute(select(documents.c.document))]


def test_one_resume_is_its_entry_and_its_document(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    new = a_resume("Ada Example")
    creating.create(store, account.id, [new, a_resume("Bo Example")])
    entry, other = listing.list_page(store, account.id).entries
    assert listing.get_resume(store, account.id, entry.id) == listing.StoredResume(
        entry, new.resume.document.decode()
    )
    assert listing.get_resume(store, account.id, other.id).entry == other


@pytest.mark.parametrize("resume_id", ["", "x", "A" * 24, "0" * 24, "0" * 25])
def test_what_is_no_resumes_id_is_not_found(
    store: Store, an_account: MakeAccount, resume_id: str
) -> None:
    account = an_account()
    for call in (listing.get_resume, listing.delete_resume):
        with pytest.raises(NotFound, match=r"^Resume not found$"):
            call(store, account.id, resume_id)
    with pytest.raises(NotFound, match=r"^Resume not found$"):
        asyncio.run(listing.delete_resume_soon(store, account.id, resume_id))


@pytest.mark.parametrize("is_soon", [False, True])
def test_deleting_takes_one_resume_with_its_document_and_its_digest_and_nothing_else(
    store: Store, an_account: MakeAccount, is_soon: bool
) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    batch = [a_resume(name, with_digest=True) for name in ("Ada", "Bo")]
    gone, kept = [
        one.id
        for one in creating.create(store, mine.id, batch)
        if isinstance(one, creating.Created)
    ]
    creating.create(store, theirs.id, batch)
    others = [document for document in texts(store) if "Ada" in document]

    if is_soon:
        asyncio.run(listing.delete_resume_soon(store, mine.id, gone))
    else:
        listing.delete_resume(store, mine.id, gone)

    assert walk(store, mine, 10) == [kept]
    assert len(walk(store, theirs, 10)) == 2
    assert listing.get_resume(store, mine.id, kept).document == batch[1].resume.document.decode()
    assert [document for document in texts(store) if "Ada" in document] == others[1:]
    assert len(texts(store)) == 3
    ada, bo = creating.create(store, mine.id, batch)
    assert isinstance(ada, creating.Created)
    assert bo == creating.Duplicate(kept)
