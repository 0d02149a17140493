from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resumes.errors import InvalidArgument
from resumes.store import Store, accounts, creating, listing, open_store, search, search_filler
from resumes.store.accounts import AccountInfo
from resumes.store.listing import Entry
from resumes.store.search import Found
from resumes.store.search_words import holds, parse_terms, searched_words
from tests.engines import Engine
from tests.resumes.store.builders import a_person, sqlite_of

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]

find_page = partial(search.find_page, monotonic=lambda: 0.0)
"""Takes no time, and so is never late."""


def fill(store: Store, account: AccountInfo, *names: str) -> list[str]:
    outcomes = creating.create(store, account.id, [a_person(name) for name in names])
    return [outcome.id for outcome in outcomes if isinstance(outcome, creating.Created)]


def ids(found: Found) -> list[str]:
    return [entry.id for entry in found.page.entries]


def walk(store: Store, account: AccountInfo, words: str, *, limit: int) -> list[Entry]:
    entries: list[Entry] = []
    cursor: str | None = ""
    while cursor is not None:
        page, unindexed = find_page(
            store, account.id, words, cursor=cursor, limit=limit, patience_s=60
        )
        assert unindexed == 0
        entries += page.entries
        cursor = page.cursor
    return entries


@pytest.mark.parametrize("is_indexed", [False, True])
def test_title_name_and_address_are_searched(
    store: Store, an_account: MakeAccount, is_indexed: bool
) -> None:
    account = an_account()
    people = [
        a_person(title="Séñior nurse"),
        a_person("Émile Zola"),
        a_person(title="CV", email="grace.hopper@example.org"),
    ]
    made = creating.create(store, account.id, people)
    nurse, zola, grace = (one.id for one in made if isinstance(one, creating.Created))
    if is_indexed:
        search_filler.fill(store)
    for words, found in {
        "senior": [nurse],
        "NUR seni": [nurse],
        "emile": [zola],
        "resume": [zola],
        "hopper@exam": [grace],
        "ho": [grace],
        "z": [zola],
        "nurse zola": [],
        "op": [],
    }.items():
        assert ids(find_page(store, account.id, words)) == found, words


def test_what_is_found_is_as_a_list_shows_it(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    fill(store, account, "Ada", "Bo")
    search_filler.fill(store)
    fill(store, account, "Ada")
    first, _, second = listing.list_page(store, account.id).entries
    assert walk(store, account, "ada", limit=100) == [first, second]


@pytest.mark.parametrize("indexed", [0, 3, 7, 10])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_pages_of_any_size_give_the_same_wherever_the_index_ends(
    store: Store, an_account: MakeAccount, indexed: int, limit: int
) -> None:
    account = an_account()
    names = ["Ada" if number % 3 else "Bo" for number in range(10)]
    first = fill(store, account, *names[:indexed])
    search_filler.fill(store)
    made = first + fill(store, account, *names[indexed:])
    found = [entry.id for entry in walk(store, account, "ada", limit=limit)]
    assert found == [one for one, name in zip(made, names, strict=True) if name == "Ada"]


def test_the_cursor_is_null_when_the_page_is_exactly_full(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    ada, *_ = fill(store, account, "Ada", "Bo", "Ada")
    search_filler.fill(store)
    assert find_page(store, account.id, "ada", limit=2).page.cursor is None
    assert find_page(store, account.id, "ada", limit=1).page.cursor == ada


def test_a_deleted_resume_is_not_found_and_its_id_is_a_position(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    made = fill(store, account, "Ada", "Ada", "Ada")
    search_filler.fill(store)
    made += fill(store, account, "Ada", "Ada")
    for gone in (made[1], made[3]):
        listing.delete_resume(store, account.id, gone)
    assert ids(find_page(store, account.id, "ada")) == made[::2]
    assert ids(find_page(store, account.id, "ada", cursor=made[1])) == [made[2], made[4]]
    assert ids(find_page(store, account.id, "ada", cursor=made[3])) == [made[4]]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_nothing_of_another_account_is_found(
    store: Store, an_account: MakeAccount, is_indexed: bool
) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    fill(store, theirs, *["Ada"] * 5)
    (my_id,) = fill(store, mine, "Ada")
    if is_indexed:
        search_filler.fill(store)
    assert ids(find_page(store, mine.id, "ada")) == [my_id]
    assert find_page(store, "0" * 16, "ada") == Found(listing.Page([], None), 0)


@pytest.mark.parametrize("words", ["", " ", "\t\n", "\u2003"])
def test_blank_words_are_refused(store: Store, an_account: MakeAccount, words: str) -> None:
    with pytest.raises(InvalidArgument, match="Nothing to search for"):
        find_page(store, an_account().id, words)


def test_a_malformed_cursor_is_refused(store: Store, an_account: MakeAccount) -> None:
    with pytest.raises(InvalidArgument, match="Invalid cursor"):
        find_page(store, an_account().id, "ada", cursor="x")


HOSTILE = [
    '"', '""', '"ada', "ada*", "*", "NEAR(ada bo)", "ada NOT bo", "-ada", "^ada", "pieces:ada",
    "{pieces}: ada", "ada + bo", "'", "';--", "\x00", "ada\x00", "\ud800", "ad\udfff", "\U0010ffff",
    "(", ")", "%", "_", "\\", "ada" * 7_000, "ada " * 7_000, "́" * 20_000, "ﷺ" * 200,
]  # fmt: skip


@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_no_words_raise_or_mean_more_than_themselves(
    store: Store, an_account: MakeAccount, words: str
) -> None:
    account = an_account()
    fill(store, account, "Ada", "Bo")
    search_filler.fill(store)
    fill(store, account, "Ada", "Bo")
    terms = parse_terms(words)
    if not terms:
        with pytest.raises(InvalidArgument):
            find_page(store, account.id, words)
        return
    expected = 2 if all(term == "ada" for term in terms) else 0
    assert len(ids(find_page(store, account.id, words))) == expected


def test_what_there_is_no_time_to_look_through_is_counted(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    fill(store, account, "Ada")
    search_filler.fill(store)
    fill(store, account, *["Ada"] * 30, *["Bo"] * 470)
    seconds = count()
    page, unindexed = find_page(
        store, account.id, "ada", patience_s=2.0, monotonic=lambda: float(next(seconds))
    )
    # One look at the clock to begin with, and one before each 200.
    assert (len(page.entries), page.cursor, unindexed) == (31, None, 300)
    assert find_page(store, account.id, "ada", patience_s=0).unindexed == 500
    assert find_page(store, account.id, "ada", patience_s=60).unindexed == 0


def test_what_has_all_pieces_of_a_term_and_not_the_term_is_not_compared_for_ever(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = an_account()
    fill(store, account, *["abcd bcdef"] * 30)
    search_filler.fill(store)
    monkeypatch.setattr(search, "CANDIDATES", 10)
    assert find_page(store, account.id, "abcdef", patience_s=0).unindexed == 20
    assert find_page(store, account.id, "abcdef", patience_s=60).unindexed == 0


def test_a_full_page_looks_no_further(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    fill(store, account, "Ada", "Ada")
    search_filler.fill(store)
    fill(store, account, "Ada")
    page, unindexed = find_page(store, account.id, "ada", limit=1, patience_s=0)
    assert (len(page.entries), page.cursor, unindexed) == (1, page.entries[0].id, 0)


@pytest.mark.sqlite("its log")
def test_a_search_leaves_no_statement_behind_that_holds_back_the_log(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    fill(store, account, *["Ada"] * 300)
    search_filler.fill(store)
    assert len(ids(find_page(store, account.id, "ada", limit=1))) == 1
    fill(store, account, "Bo")
    with open_store(store.url) as other:
        row = sqlite_of(other).reader().exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
    assert row[0] == 0  # not busy: no reader stood in the way


def test_what_a_thousand_resumes_have_in_common_is_found_with_and_without_what_one_has(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    names = [f"Common {'rare' if number == 900 else 'often'} {number}" for number in range(1_000)]
    made = fill(store, account, *names)
    search_filler.fill(store)
    assert ids(find_page(store, account.id, "com rare")) == [made[900]]
    assert ids(find_page(store, account.id, "common", cursor=made[499])) == made[500:600]


LETTERS = st.text(st.sampled_from("abcß éł-.@_1 山"), max_size=8)
PEOPLE = st.lists(st.tuples(LETTERS | st.none(), LETTERS | st.none(), LETTERS | st.none()))
NAMES = map(str, count())


@pytest.mark.parametrize("examples", [25, pytest.param(300, marks=pytest.mark.slow)])
def test_any_search_gives_what_comparing_each_resume_gives(shared: Store, examples: int) -> None:
    @settings(max_examples=examples)
    @given(
        indexed=PEOPLE,
        later=PEOPLE,
        gone=st.sets(st.integers(0, 20)),
        words=st.lists(LETTERS, min_size=1),
        limit=st.integers(1, 5),
    )
    def run(**drawn: Any) -> None:
        search_and_compare(shared, **drawn)

    run()


def search_and_compare(
    shared: Store,
    indexed: list[tuple[str | None, str | None, str | None]],
    later: list[tuple[str | None, str | None, str | None]],
    gone: set[int],
    words: list[str],
    limit: int,
) -> None:
    account = accounts.create_account(shared, next(NAMES), plan="business")
    people = {}
    for some in (indexed, later):
        outcomes = creating.create(
            shared,
            account.id,
            [a_person(name, title=title, email=email) for title, name, email in some],
        )
        for outcome, person in zip(outcomes, some, strict=True):
            assert isinstance(outcome, creating.Created)
            people[outcome.id] = person
        if some is indexed:
            search_filler.fill(shared)
    for position in sorted(gone, reverse=True):
        if position < len(people):
            resume_id = list(people)[position]
            listing.delete_resume(shared, account.id, resume_id)
            del people[resume_id]
    for text in words:
        terms = parse_terms(text)
        if terms:
            expected = [key for key, one in people.items() if holds(searched_words(*one), terms)]
            assert [entry.id for entry in walk(shared, account, text, limit=limit)] == expected


@pytest.fixture(scope="module")
def shared(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all examples; each has an account of its own."""
    with engine.a_store(tmp_path_factory.mktemp("shared")) as url, open_store(url) as store:
        yield store
