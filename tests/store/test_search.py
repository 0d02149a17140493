"""Finding resumes by the words of their title, name and address: the same wherever the index ends."""

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resumes.errors import InvalidArgument
from resumes.store import (
    Store,
    accounts,
    creation,
    open_store,
    search,
    stored_resumes,
)
from resumes.store.accounts import AccountInfo
from resumes.store.entry import Entry
from resumes.store.search import SearchResult, holds, parse_terms
from resumes.store.search_index import (
    MAX_FIELD_CHARS,
    searched_words,
    trigrams_of_terms,
    trigrams_of_words,
)
from resumes.store.stored_resumes import Page
from resumes.text import folded
from tests.support.engines import Engine
from tests.support.store.builders import (
    MakeAccount,
    a_person,
    add_people,
    entries_of,
    index_all,
    made_ids,
)

pytestmark = pytest.mark.engines

find_page = partial(search.find_page, monotonic=lambda: 0.0)
"""Takes no time, and so is never late."""


def ids(found: SearchResult) -> list[str]:
    return [entry.id for entry in found.page.entries]


def walk(
    store: Store, account: AccountInfo, words: str, *, limit: int, is_newest_first: bool = False
) -> list[Entry]:
    def read(cursor: str) -> Page:
        page, unindexed = find_page(
            store,
            account.id,
            words,
            cursor=cursor,
            limit=limit,
            timeout_s=60,
            is_newest_first=is_newest_first,
        )
        assert unindexed == 0
        return page

    return [*entries_of(read)]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_title_name_and_address_are_searched(
    store: Store, ana: AccountInfo, is_indexed: bool
) -> None:
    people = [
        a_person(title="Séñior nurse"),
        a_person("Émile Zola"),
        a_person(title="CV", email="grace.hopper@example.org"),
    ]
    nurse, zola, grace = made_ids(creation.create(store, ana.id, people))
    if is_indexed:
        index_all(store)
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
        assert ids(find_page(store, ana.id, words)) == found, words


@pytest.mark.parametrize("indexed", [0, 3, 7, 10])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_pages_of_any_size_give_the_same_wherever_the_index_ends(
    store: Store, ana: AccountInfo, indexed: int, limit: int
) -> None:
    names = ["Ada" if number % 3 else "Bo" for number in range(10)]
    first = add_people(store, ana, *names[:indexed])
    index_all(store)
    made = first + add_people(store, ana, *names[indexed:])
    found = walk(store, ana, "ada", limit=limit)
    assert [one.id for one in found] == [
        one for one, name in zip(made, names, strict=True) if name == "Ada"
    ]
    # As a list shows them.
    assert [
        one for one in stored_resumes.list_page(store, ana.id).entries if one.name == "Ada"
    ] == found


def test_the_cursor_is_null_on_the_last_page_also_when_it_is_exactly_full(
    store: Store, ana: AccountInfo
) -> None:
    first, *_ = add_people(store, ana, "Ada", "Bo", "Ada")
    index_all(store)
    assert find_page(store, ana.id, "ada", limit=2).page.cursor is None
    assert find_page(store, ana.id, "ada", limit=1).page.cursor == first


def test_a_deleted_resume_is_not_found_and_its_id_is_a_position(
    store: Store, ana: AccountInfo
) -> None:
    made = add_people(store, ana, "Ada", "Ada", "Ada")
    index_all(store)
    made += add_people(store, ana, "Ada", "Ada")
    for gone in (made[1], made[3]):
        stored_resumes.delete_resume(store, ana.id, gone)
    assert ids(find_page(store, ana.id, "ada")) == made[::2]
    assert ids(find_page(store, ana.id, "ada", cursor=made[1])) == [made[2], made[4]]
    assert ids(find_page(store, ana.id, "ada", cursor=made[3])) == [made[4]]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_nothing_of_another_account_is_found(
    store: Store, an_account: MakeAccount, is_indexed: bool
) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    add_people(store, theirs, *["Ada"] * 5)
    (my_id,) = add_people(store, mine, "Ada")
    if is_indexed:
        index_all(store)
    assert ids(find_page(store, mine.id, "ada")) == [my_id]
    assert find_page(store, "0" * 16, "ada") == SearchResult(stored_resumes.Page([], None), 0)


def test_blank_words_and_a_malformed_cursor_are_refused(store: Store, ana: AccountInfo) -> None:
    for words in ("", " ", "\t\n", "\u2003"):
        with pytest.raises(InvalidArgument, match="Nothing to search for"):
            find_page(store, ana.id, words)
    with pytest.raises(InvalidArgument, match="Invalid cursor"):
        find_page(store, ana.id, "ada", cursor="x")


HOSTILE = [
    '"', '""', '"ada', "ada*", "*", "NEAR(ada bo)", "ada NOT bo", "-ada", "^ada", "trigrams:ada",
    "{trigrams}: ada", "ada + bo", "'", "';--", "\x00", "ada\x00", "\ud800", "ad\udfff", "\U0010ffff",
    "(", ")", "%", "_", "\\", "ada" * 7_000, "ada " * 7_000, "́" * 20_000, "ﷺ" * 200,
]  # fmt: skip


def test_no_words_raise_or_mean_more_than_themselves(store: Store, ana: AccountInfo) -> None:
    add_people(store, ana, "Ada", "Bo")
    index_all(store)
    add_people(store, ana, "Ada", "Bo")
    for words in HOSTILE:
        terms = parse_terms(words)
        if not terms:
            with pytest.raises(InvalidArgument):
                find_page(store, ana.id, words)
            continue
        expected = 2 if all(term == "ada" for term in terms) else 0
        assert len(ids(find_page(store, ana.id, words))) == expected, words[:80]


# The newest first


@pytest.mark.parametrize("indexed", [0, 13, 25])
@pytest.mark.parametrize("limit", [1, 4, 100])
def test_the_newest_first_is_the_same_the_other_way_round(
    store: Store, ana: AccountInfo, indexed: int, limit: int
) -> None:
    names = ["Ada", "Bo", "Adam", "Zoe", "Nevada"] * 5
    made = add_people(store, ana, *names[:indexed]) if indexed else []
    index_all(store)
    made += add_people(store, ana, *names[indexed:]) if names[indexed:] else []
    stored_resumes.delete_resume(store, ana.id, made[2])
    for words in ("ada", "a", "nobody"):
        forwards = [entry.id for entry in walk(store, ana, words, limit=limit)]
        newest_first = walk(store, ana, words, limit=limit, is_newest_first=True)
        found = [entry.id for entry in newest_first]
        assert found == forwards[::-1]


def test_without_time_the_newest_first_goes_on_with_what_is_indexed(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "CANDIDATES", 10)
    (first,) = add_people(store, ana, "abcdef")
    add_people(store, ana, *["abcd bcdef"] * 30)
    index_all(store)
    add_people(store, ana, *["Bo"] * 250)
    never = partial(find_page, store, ana.id, "abcdef", is_newest_first=True, timeout_s=0)
    page, unindexed = never()
    assert (page.entries, unindexed) == ([], 50)
    with monkeypatch.context() as patch:
        patch.setattr(search, "MAX_UNINDEXED", 40)
        assert never().unindexed == 40
    found: list[str] = []
    while page.cursor is not None:
        page, unindexed = never(cursor=page.cursor)
        found += [entry.id for entry in page.entries]
        assert unindexed == 0
    assert found == [first]


def test_a_full_page_of_the_newest_first_says_what_there_was_no_time_for(
    store: Store, ana: AccountInfo
) -> None:
    indexed = add_people(store, ana, *["Ada"] * 3)
    index_all(store)
    add_people(store, ana, *["Ada"] * 20, *["Bo"] * 200)
    page, unindexed = find_page(store, ana.id, "ada", limit=2, is_newest_first=True, timeout_s=0)
    assert ([entry.id for entry in page.entries], page.cursor) == (indexed[:0:-1], indexed[1])
    assert unindexed == 20


# As far as there is time


def test_what_there_is_no_time_to_look_through_is_counted(store: Store, ana: AccountInfo) -> None:
    add_people(store, ana, "Ada")
    index_all(store)
    add_people(store, ana, *["Ada"] * 30, *["Bo"] * 470)
    seconds = count()
    page, unindexed = find_page(
        store, ana.id, "ada", timeout_s=2.0, monotonic=lambda: float(next(seconds))
    )
    # One look at the clock to begin with, and one before each 200.
    assert (len(page.entries), page.cursor, unindexed) == (31, None, 300)
    assert find_page(store, ana.id, "ada", timeout_s=0).unindexed == 500
    assert find_page(store, ana.id, "ada", timeout_s=60).unindexed == 0
    # A full page looks no further.
    page, unindexed = find_page(store, ana.id, "ada", limit=1, timeout_s=60)
    assert (len(page.entries), page.cursor, unindexed) == (1, page.entries[0].id, 0)


def test_what_has_all_trigrams_of_a_term_and_not_the_term_is_not_compared_for_ever(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "CANDIDATES", 10)
    add_people(store, ana, *["abcd bcdef"] * 30)
    index_all(store)
    assert find_page(store, ana.id, "abcdef", timeout_s=0).unindexed == 20
    assert find_page(store, ana.id, "abcdef", timeout_s=60).unindexed == 0


@pytest.mark.sqlite("its log")
def test_a_search_leaves_no_statement_behind_that_holds_back_the_log(
    store: Store, ana: AccountInfo
) -> None:
    add_people(store, ana, *["Ada"] * 300)
    index_all(store)
    assert len(ids(find_page(store, ana.id, "ada", limit=1))) == 1
    add_people(store, ana, "Bo")
    with open_store(store.url) as other, other.read() as connection:
        row = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
    assert row[0] == 0  # not busy: no reader stood in the way


def test_what_a_thousand_resumes_have_in_common_is_found_with_and_without_what_one_has(
    store: Store, ana: AccountInfo
) -> None:
    names = [f"Common {'rare' if number == 900 else 'often'} {number}" for number in range(1_000)]
    made = add_people(store, ana, *names)
    index_all(store)
    assert ids(find_page(store, ana.id, "com rare")) == [made[900]]
    assert ids(find_page(store, ana.id, "common", cursor=made[499])) == made[500:600]


# Words

ADA = searched_words("Señor Engineer (C++)", "Ada Lovelace", "ada.lovelace@mail.example.com")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("ADA", "ada"),
        ("ÀÉÎÕÜ Ñ", "aeiou n"),
        ("Straße", "strasse"),
        ("ŁÓDŹ Ørsted Æsir œuvre", "lodz orsted aesir oeuvre"),
        ("İstanbul \u0131s\u0131", "istanbul isi"),
        ("ﬁne \uff21\uff22", "fine ab"),
        ("山田 Ελένη", "山田 ελενη"),
    ],
)
def test_case_and_accents_make_no_difference(text: str, plain: str) -> None:
    assert folded(text) == plain


def test_parts_of_words_of_three_characters_and_beginnings_are_found() -> None:
    for text in (
        "ngin", "senor", "LOVELACE", "ada lov", "lov ada", "e@mail.ex", "c++", "a", "ad", "lo", "co"
    ):  # fmt: skip
        assert holds(ADA, parse_terms(text)), text
    for text in ("da", "g", "om", "ada love lady", "adalovelace", "lovelace ng"):
        assert not holds(ADA, parse_terms(text)), text


@pytest.mark.parametrize("text", ["太郎", "郎", "山田", "東京", "ta", "エンジ", "ジニ", "15"])
def test_each_character_begins_a_word_where_there_are_no_blanks(text: str) -> None:
    words, terms = searched_words("東京エンジニア15年", "山田太郎Taro", None), parse_terms(text)
    assert holds(words, terms)
    assert trigrams_of_terms(terms) <= trigrams_of_words(words)
    assert not holds(words, parse_terms("ar"))


def test_what_nobody_sees_in_a_word_makes_no_difference() -> None:
    words = searched_words("Da\u00adten\u200bbank", "\ufeffMehr\u200cdad", None)
    assert holds(words, parse_terms("datenbank mehrdad"))
    assert holds(words, parse_terms("Daten\u00adbank"))


def test_what_is_searched_is_what_is_shown_up_to_its_limits() -> None:
    assert searched_words(None, "Ada", None) == "ada resume"
    assert searched_words(" ", None, None) == "new resume"
    words = searched_words("x" * 20_000, "y" * 20_000, "z" * 20_000)
    assert words.split(" ") == [char * MAX_FIELD_CHARS for char in "xyz"]
    assert parse_terms("ada ADA Ada") == ["ada"]
    assert parse_terms(" ".join(map(str, range(20)))) == [str(number) for number in range(10)]
    assert parse_terms("a" * 20_000) == ["a" * 200]


def test_a_short_term_is_looked_up_by_all_its_trigrams_and_a_long_one_by_half() -> None:
    assert trigrams_of_terms(["comple", "a", "an"]) == {"com", "omp", "mpl", "ple", "a", "an"}
    assert trigrams_of_terms(["engineering"]) == {"eng", "gin", "nee", "eri", "ing"}
    assert trigrams_of_terms(["engineers."]) == {"eng", "gin", "nee", "ers", "rs."}


TEXTS = st.text(st.sampled_from("abß ́-_.@+İ山\ud800\x00"), max_size=12) | st.text(max_size=12)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_words_that_hold_the_terms_have_their_trigrams_and_every_word_of_a_title_finds_it(
    title: str, name: str, email: str, text: str
) -> None:
    words, terms = searched_words(title, name, email), parse_terms(text)
    if holds(words, terms):
        assert trigrams_of_terms(terms) <= trigrams_of_words(words)
    assert holds(searched_words(title, None, None), parse_terms(title))


LETTERS = st.text(st.sampled_from("abcß éł-.@_1 山"), max_size=8)
PEOPLE = st.lists(st.tuples(LETTERS | st.none(), LETTERS | st.none(), LETTERS | st.none()))
NAMES = map(str, count())


@pytest.mark.parametrize("examples", [15, pytest.param(300, marks=pytest.mark.slow)])
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
    people: dict[str, tuple[str | None, str | None, str | None]] = {}
    for some in (indexed, later):
        new = [a_person(name, title=title, email=email) for title, name, email in some]
        made = made_ids(creation.create(shared, account.id, new))
        people.update(zip(made, some, strict=True))
        if some is indexed:
            index_all(shared)
    for position in sorted(gone, reverse=True):
        if position < len(people):
            resume_id = list(people)[position]
            stored_resumes.delete_resume(shared, account.id, resume_id)
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
