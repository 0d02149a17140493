"""Finding resumes by the words of their title, name and address: the same wherever the index ends,
which is written behind the creates and never wrong."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text as sql

from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.store import Store, accounts, creation, open_store, search, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.entry import Entry
from resumes.store.search import SearchResult, holds, parse_terms
from resumes.store.search_index import (
    BUSY_SHARE,
    CANDIDATE_ROWS,
    IDLE_SHARE,
    MAX_FIELD_CHARS,
    SLICE_ACCOUNTS,
    SLICE_RESUMES,
    YIELD_S,
    Indexer,
    list_behind,
    searched_words,
    trigrams_of_terms,
    trigrams_of_words,
)
from resumes.store.stored_resumes import Page
from tests.support.engines import Engine
from tests.support.store.builders import (
    MakeAccount,
    a_person,
    add_people,
    add_resumes,
    count_rows,
    damage,
    entries_of,
    execute,
    index_all,
    indexed_trigrams,
    lose_table,
    made_ids,
)
from tests.support.waiting import wait_until

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
def test_title_name_and_address_are_searched_in_the_account(
    store: Store, an_account: MakeAccount, is_indexed: bool
) -> None:
    ana, other = an_account("ana"), an_account("bo")
    people = [
        a_person(title="Séñior nurse"),
        a_person("Émile Zola"),
        a_person(title="CV", email="grace.hopper@example.org"),
    ]
    creation.create(store, other.id, people)
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
    assert find_page(store, "0" * 16, "emile") == SearchResult(stored_resumes.Page([], None), 0)


@pytest.mark.parametrize("indexed", [0, 13, 25])
@pytest.mark.parametrize("limit", [1, 4, 100])
def test_pages_of_any_size_give_the_same_wherever_the_index_ends_and_the_other_way_round(
    store: Store, ana: AccountInfo, indexed: int, limit: int
) -> None:
    names = ["Ada", "Bo", "Adam", "Zoe", "Nevada"] * 5
    made = add_people(store, ana, *names[:indexed]) if indexed else []
    index_all(store)
    made += add_people(store, ana, *names[indexed:]) if names[indexed:] else []
    stored_resumes.delete_resume(store, ana.id, made[2])
    listed = stored_resumes.list_page(store, ana.id, limit=100).entries
    for words, hits in (("ada", ["Ada", "Adam", "Nevada"]), ("a", ["Ada", "Adam"]), ("nobody", [])):
        found = walk(store, ana, words, limit=limit)
        assert found == [entry for entry in listed if entry.name in hits]  # as a list shows them
        newest_first = walk(store, ana, words, limit=limit, is_newest_first=True)
        assert newest_first == found[::-1]
        # It is null on the last page also when that is exactly full.
        if len(found) > 1:
            full = partial(find_page, store, ana.id, words, timeout_s=60)
            assert full(limit=len(found)).page.cursor is None
            assert full(limit=len(found) - 1).page.cursor == found[-2].id


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


def test_without_time_the_newest_first_goes_on_with_what_is_indexed(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "CANDIDATES", 10)
    (first,) = add_people(store, ana, "abcdef")
    # What has all trigrams of a term, and not the term, is not compared for ever.
    add_people(store, ana, *["abcd bcdef"] * 30)
    index_all(store)
    assert find_page(store, ana.id, "abcdef", timeout_s=0).unindexed == 21
    assert find_page(store, ana.id, "abcdef", timeout_s=60).unindexed == 0
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


# Words

ADA = searched_words("Señor Engineer (C++)", "Ada Lovelace", "ada.lovelace@mail.example.com")


JAPANESE = searched_words("東京エンジニア15年", "山田太郎Taro", None)
UNSEEN = searched_words("Da\u00adten\u200bbank", "\ufeffMehr\u200cdad", None)
FOLDED = searched_words(
    "ÀÉÎÕÜ Straße ŁÓDŹ Ørsted", "Æsir œuvre İstanbul \u0131s\u0131", "ﬁne Ελένη"
)


@pytest.mark.parametrize(
    ("words", "held", "others"),
    [
        (
            ADA,
            [
                "ngin",
                "senor",
                "LOVELACE",
                "ada lov",
                "lov ada",
                "e@mail.ex",
                "c++",
                "a",
                "lo",
                "co",
            ],
            ["da", "g", "om", "ada love lady", "adalovelace", "lovelace ng"],
        ),
        # Each character begins a word where there are no blanks.
        (JAPANESE, ["太郎", "郎", "山田", "東京", "ta", "エンジ", "ジニ", "15"], ["ar"]),
        # What nobody sees in a word makes no difference, nor do case and accents.
        (UNSEEN, ["datenbank mehrdad", "Daten\u00adbank"], []),
        (
            FOLDED,
            ["aeiou STRASSE", "lodz orsted", "aesir oeuvre", "istanbul isi", "fine ΕΛΈΝΗ"],
            [],
        ),
    ],
)
def test_parts_of_words_of_three_characters_and_beginnings_are_found(
    words: str, held: list[str], others: list[str]
) -> None:
    for text in held:
        assert holds(words, parse_terms(text)), text
        assert trigrams_of_terms(parse_terms(text)) <= trigrams_of_words(words)
    for text in others:
        assert not holds(words, parse_terms(text)), text


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


# The index: written behind the creates by any number of processes, and never wrong

INTERVAL_S = 0.01


def indexed(store: Store) -> int:
    return count_rows(store, "search_entries")


def found(store: Store, account: AccountInfo, words: str, *, after: str = "") -> list[str]:
    """The resumes that the index finds, without a moment to look through what it lacks."""

    def read(cursor: str) -> Page:
        return search.find_page(store, account.id, words, cursor=cursor, timeout_s=0)[0]

    return [entry.id for entry in entries_of(read, after=after)]


def test_behind_more_candidates_than_are_read_at_once_are_others(
    store: Store, ana: AccountInfo
) -> None:
    add_people(store, ana, *["abcd bcdef"] * (CANDIDATE_ROWS + 50))
    ids = add_people(store, ana, "abcdef", "abcdef")
    index_all(store)
    assert found(store, ana, "abcdef") == ids


def test_an_account_is_a_range_of_rows_of_its_own(store: Store, an_account: MakeAccount) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    for account in (mine, theirs, mine):
        add_people(store, account, "Ada")
        index_all(store)
    assert len(found(store, mine, "ada")) == 2
    assert len(found(store, theirs, "ada")) == 1
    with store.read() as connection:
        numbers = connection.execute(sql("SELECT number FROM search_progress ORDER BY number"))
        assert numbers.scalars().all() == [1, 2]
        if store.path is None:
            rows = connection.execute(sql("SELECT trigrams FROM search_trigrams")).scalars().all()
            assert len({frozenset(row) for row in rows}) == 2  # in common they have none


def test_a_slice_is_added_without_what_went_since_it_was_read(
    store: Store, ana: AccountInfo
) -> None:
    gone, *_ = add_people(store, ana, "Ada", "Adam", "Bo")
    assert step(store, lambda: stored_resumes.delete_resume(store, ana.id, gone)) == INTERVAL_S
    assert indexed(store) == 2
    assert len(found(store, ana, "ada")) == 1
    assert list_behind(store) == []


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_slice_of_an_account_that_is_gone_or_going_is_not_added(
    store: Store, ana: AccountInfo, is_gone: bool
) -> None:
    add_resumes(store, ana, 501)

    def delete() -> None:
        accounts.delete_account(
            store, "ana", with_resumes=True, should_continue=lambda gone: is_gone
        )

    assert step(store, delete) == YIELD_S
    assert (indexed(store), count_rows(store, "search_progress")) == (0, 0)
    assert list_behind(store) == []


def test_what_is_deleted_takes_its_trigrams_along_and_no_number_is_used_again(
    store: Store, ana: AccountInfo
) -> None:
    for _ in range(2):
        (made,) = add_people(store, ana, "Ada Łukasz-Wójcik 山田")
        index_all(store)
        assert indexed_trigrams(store) != []
        stored_resumes.delete_resume(store, ana.id, made)
        assert indexed_trigrams(store) == []
        assert found(store, ana, "ada") == []
        assert list_behind(store) == []  # although its newest resume went
    with store.read() as connection:
        assert connection.execute(sql("SELECT last_seq FROM search_progress")).scalars().one() == 2


def test_a_large_account_goes_with_its_entries_also_when_some_were_removed_by_hand(
    store: Store, an_account: MakeAccount
) -> None:
    account, other = an_account("ana"), an_account("bo")
    for some in (account, other):
        add_resumes(store, some, 600)
    index_all(store)
    few = f"id IN (SELECT id FROM search_entries WHERE account_id = '{account.id}' LIMIT 2)"
    damage(store, f"DELETE FROM search_entries WHERE account_id = '{account.id}' AND {few}")
    assert accounts.delete_account(store, "ana", with_resumes=True) == 600
    assert len(found(store, other, "ada")) == 600
    with store.read() as connection:
        rows = connection.execute(sql("SELECT DISTINCT account_id FROM search_entries"))
        assert rows.scalars().all() == [other.id]


# The indexer


def test_a_step_is_for_several_accounts(store: Store, an_account: MakeAccount) -> None:
    one, two = an_account("one"), an_account("two")
    add_resumes(store, one, SLICE_RESUMES // 2)
    add_resumes(store, two, SLICE_RESUMES)
    Indexer(store).step()
    assert indexed(store) == SLICE_RESUMES
    for number in range(SLICE_ACCOUNTS + 3):
        add_resumes(store, an_account(f"account-{number}"), 1)
    while list_behind(store):
        with suppress(StoreUnavailable):  # on a server, new accounts race for their numbers
            Indexer(store).step()
    assert indexed(store) == SLICE_RESUMES + SLICE_RESUMES // 2 + SLICE_ACCOUNTS + 3


@pytest.mark.parametrize(
    "change",
    [
        "documents SET document = 'Ada is no JSON'",
        "documents SET document = CAST(x'7b22f67d' AS TEXT)",
        "resumes SET title = CAST('Ada' AS BLOB)",
        "resumes SET name = CAST('Ada' AS BLOB)",
        "resumes SET name = CAST(x'416461f6' AS TEXT)",
    ],
)
def test_a_damaged_resume_keeps_no_other_out_of_the_index(
    store: Store, an_account: MakeAccount, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    if store.path is None and "CAST" in change:
        pytest.skip("PostgreSQL looks at what it takes")
    damaged, other = an_account("damaged"), an_account("other")
    before, broken, after = add_people(store, damaged, "Ada", "Ada", "Ada")
    add_people(store, other, "Ada")
    damage(store, f"UPDATE {change} WHERE id = :id", id=broken)

    with caplog.at_level(logging.WARNING, "resumes.store"):
        index_all(store)

    assert found(store, damaged, "ada") == [before, after]
    assert len(found(store, other, "ada")) == 1
    assert [record.getMessage() for record in caplog.records] == [
        f"The account {damaged.id} has 1 damaged resume, which searches do not find. "
        "`resumes db check` says what to do"
    ]
    stored_resumes.delete_resume(store, damaged.id, broken)
    assert indexed(store) == 3


def test_two_indexers_of_one_store_index_each_resume_once_as_it_comes_in(
    url: str, store: Store, ana: AccountInfo
) -> None:
    with open_store(url) as other, Indexer(store, interval_s=0), Indexer(other, interval_s=0):
        for _ in range(20):
            add_resumes(store, ana, 20)
        wait_until(lambda: list_behind(store) == [])
        add_resumes(store, ana, 1)
        wait_until(lambda: indexed(store) == 401)
    with store.read() as connection:
        rows = connection.execute(sql("SELECT count(*), max(seq) FROM search_entries"))
        assert rows.one() == (401, 401)
    assert not any(thread.name == "search-indexer" for thread in threading.enumerate())


class Looks:
    """An indexer's clock: it is looked at before and after resumes are read, which take a second."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self) -> float:
        self.seconds.append(float(len(self.seconds)))
        return self.seconds[-1]


def step(store: Store, meanwhile: Callable[[], object]) -> float:
    """An indexer's step, with something that is done after its resumes were read, and before they are
    added."""
    looks = Looks()

    def clock() -> float:
        if looks() == 1:
            meanwhile()
        return looks.seconds[-1]

    return Indexer(store, interval_s=INTERVAL_S, clock=clock).step()


@pytest.mark.timing
def test_a_step_adds_a_slice_and_rests_longer_while_more_comes_in_or_there_is_other_work(
    store: Store, ana: AccountInfo
) -> None:
    # Adding took little of the real clock.
    busy = pytest.approx(1 / BUSY_SHARE - 1, rel=0.5)
    idle = pytest.approx(1 / IDLE_SHARE - 1, rel=0.5)
    is_busy = iter([False, False, True, False, False]).__next__
    indexer = Indexer(store, interval_s=INTERVAL_S, clock=Looks(), is_busy=is_busy)
    add_resumes(store, ana, 5 * SLICE_RESUMES)
    assert [indexer.step() for _ in range(4)] == [busy, idle, busy, idle]
    assert indexed(store) == 4 * SLICE_RESUMES
    assert [indexer.step(), indexer.step()][1] == INTERVAL_S
    assert indexed(store) == 5 * SLICE_RESUMES


@pytest.mark.sqlite("its version")
def test_a_store_that_nobody_wrote_to_is_asked_for_its_version_alone(
    store: Store, an_account: MakeAccount
) -> None:
    looks = Looks()
    indexer = Indexer(store, clock=looks)
    add_resumes(store, an_account(), 1)
    while list_behind(store):
        indexer.step()
    indexer.step()
    seen = len(looks.seconds)
    indexer.step()
    assert len(looks.seconds) == seen
    an_account("another")
    indexer.step()
    assert len(looks.seconds) > seen


def test_an_indexer_leaves_the_store_to_another_that_was_sooner(
    store: Store, ana: AccountInfo
) -> None:
    add_resumes(store, ana, 1)
    assert step(store, lambda: index_all(store)) == YIELD_S
    assert indexed(store) == 1


@pytest.mark.parametrize("is_unknown", [False, True])
def test_failures_are_logged_once_and_what_failed_is_tried_again(
    store: Store, ana: AccountInfo, caplog: pytest.LogCaptureFixture, is_unknown: bool
) -> None:
    looks = Looks()

    def clock() -> float:
        if looks() < 3 and is_unknown:
            raise ZeroDivisionError
        return looks.seconds[-1]

    add_resumes(store, ana, 1)
    if not is_unknown:
        lose_table(store, "search_progress")
    with (
        caplog.at_level(logging.WARNING, "resumes.store"),
        Indexer(store, interval_s=INTERVAL_S, retry_s=INTERVAL_S, clock=clock),
    ):
        wait_until(lambda: len(looks.seconds) > 4)
        if not is_unknown:
            execute(store, "ALTER TABLE elsewhere RENAME TO search_progress")
        wait_until(lambda: indexed(store) == 1)
    (told,) = [record for record in caplog.records if "search index" in record.getMessage()]
    assert "will retry" in told.getMessage()
    assert (told.exc_info is not None) is is_unknown


def test_an_indexer_outlives_its_store(
    url: str, store: Store, ana: AccountInfo, caplog: pytest.LogCaptureFixture
) -> None:
    add_resumes(store, ana, 1)
    closed = open_store(url)
    closed.close()
    with Indexer(closed, interval_s=INTERVAL_S, retry_s=INTERVAL_S):
        wait_until(lambda: any("store is closed" in one.getMessage() for one in caplog.records))
        assert "search-indexer" in [thread.name for thread in threading.enumerate()]
    assert indexed(store) == 0
    assert len(search.find_page(store, ana.id, "ada", timeout_s=60).page.entries) == 1
