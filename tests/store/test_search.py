"""Finding resumes by a query, page by page: on both engines what comparing each resume finds."""

import random
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from resumes.analyzer import load_stored, parse
from resumes.errors import InvalidArgument
from resumes.search.query import MAX_QUERY_CHARS, MAX_TERMS, parse_query
from resumes.store import (
    Store,
    accounts,
    creation,
    open_store,
    plans,
    search,
    search_engine,
    stored_resumes,
)
from resumes.store.accounts import AccountInfo
from resumes.store.creation import NewResume
from resumes.store.entry import Entry
from resumes.store.plans import PlanChange
from resumes.store.search import SearchResult
from resumes.store.search_engine import SMALL_UNIT
from resumes.store.stored_resumes import Page
from tests.support.engines import Engine
from tests.support.finding import (
    HOSTILE_QUERIES,
    PREFIXES,
    has_all,
    is_found,
    iter_texts,
    iter_words,
)
from tests.support.resumes import a_document
from tests.support.store.builders import (
    MakeAccount,
    a_person,
    add_people,
    damage,
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
    store: Store,
    account: AccountInfo,
    query: str,
    *,
    limit: int = 100,
    is_newest_first: bool = False,
    find: Any = find_page,
    after: str = "",
) -> list[Entry]:
    def read(cursor: str) -> Page:
        found: SearchResult = find(
            store, account.id, query, cursor=cursor, limit=limit, is_newest_first=is_newest_first
        )
        return found.page

    return [*entries_of(read, after=after)]


def with_skills(name: str, *skills: str, text: str = "") -> NewResume:
    sections = {
        "skills": {"column": 0, "items": [{"tags": skills}]},
        "summaries": {"column": 0, "items": [{"text": text}]},
    }
    return NewResume(parse(a_document(name, sections=sections)))


def test_a_query_is_searched_in_the_whole_resumes_of_the_account(
    store: Store, an_account: MakeAccount
) -> None:
    ana, other = an_account("ana"), an_account("bo")
    people = [
        a_person("Émile Zola", title="Séñior nurse"),
        a_person(title="CV", email="grace.hopper@example.org"),
        with_skills("Łukasz", "C++", "machine learning", text="Learning by a machine in Porto"),
        with_skills("山田太郎", "C", "JavaScript"),
    ]
    creation.create(store, other.id, people)
    zola, grace, lukasz, yamada = made_ids(creation.create(store, ana.id, people))
    index_all(store)
    for query, found in {
        "senior": [zola],
        "NUR emi": [zola],
        "resume": [lukasz, yamada],
        "grace.hopper@example.org": [grace],
        "skill:c++": [lukasz],
        "skill:c": [yamada],
        "javascript": [yamada],
        "java": [],
        "java*": [yamada],
        "skill:porto": [],
        "porto": [lukasz],
        '"machine learning"': [lukasz],
        '"learning machine"': [],
        '-"machine learning"': [zola, grace, yamada],
        "-skill:c -porto": [zola, grace],
        "太郎": [yamada],
        "name:lukasz -skill:c++": [],
    }.items():
        assert ids(find_page(store, ana.id, query)) == found, query
        assert ids(find_page(store, ana.id, query, is_newest_first=True)) == found[::-1], query
    assert ids(find_page(store, ana.id, "skill:javasc", is_typing=True)) == [yamada]
    assert ids(find_page(store, ana.id, "skill:javasc")) == []
    assert find_page(store, "0" * 16, "emile") == SearchResult(Page([], None), 0)


@pytest.fixture(scope="module")
def shared(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store for the tests that change nothing in an account of others."""
    with engine.a_store(tmp_path_factory.mktemp("shared")) as url, open_store(url) as store:
        yield store


NAMES: Final = ("Ada", "Bo", "Adam", "Zoe", "Nevada")


@pytest.fixture(scope="module")
def large(shared: Store) -> tuple[AccountInfo, Sequence[Entry]]:
    """An account whose entries are in several windows, and all its resumes in order."""
    plans.set_plan_limits(shared, PlanChange("business", None))
    account = accounts.create_account(shared, "large", plan="business")
    many = [NAMES[number % 5] for number in range(2 * SMALL_UNIT + 500)]
    made = add_people(shared, account, "Once", *many, "Twice", *["Bo"] * 300)
    index_all(shared)
    for gone in made[1::97]:
        stored_resumes.delete_resume(shared, account.id, gone)
    read = partial(stored_resumes.list_page, shared, account.id, limit=100)
    return account, [*entries_of(read)]


@pytest.mark.parametrize("limit", [pytest.param(7, marks=pytest.mark.slow), 100])
def test_pages_of_any_size_give_the_same_in_both_directions(
    shared: Store, large: tuple[AccountInfo, Sequence[Entry]], limit: int
) -> None:
    account, listed = large
    for query, names in {
        "ada": {"Ada", "Adam"},
        "-ada -bo": {"Zoe", "Nevada", "Once", "Twice"},
        "once": {"Once"},
        "nobody": set(),
    }.items():
        expected = [entry for entry in listed if entry.name in names]  # as a list shows them
        found = walk(shared, account, query, limit=limit)
        assert found == expected, query
        assert walk(shared, account, query, limit=limit, is_newest_first=True) == found[::-1]


def test_the_cursor_is_null_on_the_last_page_also_when_that_is_exactly_full(
    store: Store, ana: AccountInfo
) -> None:
    made = add_people(store, ana, "Ada", "Bo", "Ada", "Ada")
    index_all(store)
    assert find_page(store, ana.id, "ada", limit=3).page.cursor is None
    assert find_page(store, ana.id, "ada", limit=2).page.cursor == made[2]
    newest = partial(find_page, store, ana.id, "ada", is_newest_first=True)
    assert newest(limit=3).page.cursor is None
    assert newest(limit=2).page.cursor == made[2]


def test_a_search_begins_after_any_resume(
    shared: Store, large: tuple[AccountInfo, Sequence[Entry]]
) -> None:
    account, listed = large
    for at in (0, 1, SMALL_UNIT, len(listed) - 1):
        cursor = listed[at].id
        after = walk(shared, account, "ada", after=cursor)
        assert after == [entry for entry in listed[at + 1 :] if entry.name in ("Ada", "Adam")]
        before = walk(shared, account, "ada", is_newest_first=True, after=cursor)
        assert before == [entry for entry in listed[:at] if entry.name in ("Ada", "Adam")][::-1]


def test_what_is_not_indexed_yet_is_counted_and_not_found(store: Store, ana: AccountInfo) -> None:
    (first,) = add_people(store, ana, "Ada")
    assert find_page(store, ana.id, "ada") == SearchResult(Page([], None), 1)
    index_all(store)
    later = add_people(store, ana, *["Ada"] * 30)
    for is_newest_first in (False, True):
        found = find_page(store, ana.id, "ada", is_newest_first=is_newest_first)
        assert (ids(found), found.page.cursor, found.unindexed) == ([first], None, 30)
    stored_resumes.delete_resume(store, ana.id, first)
    stored_resumes.delete_resume(store, ana.id, later[0])
    assert find_page(store, ana.id, "ada") == SearchResult(Page([], None), 29)


def test_blank_queries_and_a_malformed_cursor_are_refused(store: Store, ana: AccountInfo) -> None:
    for query in ("", " ", "\t\n", "\u2003", "...", "skill:", '"'):
        with pytest.raises(InvalidArgument, match="Nothing to search for"):
            find_page(store, ana.id, query)
    with pytest.raises(InvalidArgument, match="Invalid cursor"):
        find_page(store, ana.id, "ada", cursor="x")


def test_no_query_raises_or_means_more_than_its_words(store: Store, ana: AccountInfo) -> None:
    names = ("Ada", "Bo", "Ada or Bo")
    people = [load_stored(a_person(name).resume.document) for name in names]
    made = add_people(store, ana, *names)
    index_all(store)
    for text in HOSTILE_QUERIES:
        query = parse_query(text)
        if query.is_cut or not query.terms:
            with pytest.raises(InvalidArgument):
                find_page(store, ana.id, text)
            continue
        expected = [
            id_
            for id_, name, person in zip(made, names, people, strict=True)
            if is_found(person, text[:500], title=None, name=name)
        ]
        assert ids(find_page(store, ana.id, text)) == expected, text[:80]


# Proof, as far as there is time


def test_a_page_that_takes_long_ends_early_and_its_cursor_leads_on(
    shared: Store, large: tuple[AccountInfo, Sequence[Entry]]
) -> None:
    account, listed = large
    late = partial(search.find_page, timeout_s=0)
    page, _ = late(shared, account.id, '"ada resume"')
    assert (len(page.entries), page.cursor is None) == (0, False)
    for query, names in {'"once resume"': {"Once"}, "twice": {"Twice"}, "nobody": set()}.items():
        expected = [entry for entry in listed if entry.name in names]
        assert walk(shared, account, query, find=late) == expected
        assert walk(shared, account, query, find=late, is_newest_first=True) == expected[::-1]
    page, _ = late(shared, account.id, "-resume")
    assert (page.entries, page.cursor is None) == ([], False)


def test_many_words_with_a_beginning_are_proved_instead(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [with_skills(f"N{number}", f"Lang{number}") for number in range(8)]
    made = made_ids(creation.create(store, ana.id, [*many, with_skills("Ada", "Python")]))
    index_all(store)
    for most in (search_engine.MAX_BEGINNINGS, 3):
        monkeypatch.setattr(search_engine, "MAX_BEGINNINGS", most)
        assert ids(find_page(store, ana.id, "skill:lang*")) == made[:8]
        assert ids(find_page(store, ana.id, "lang* -lang3")) == made[:3] + made[4:8]
        assert ids(find_page(store, ana.id, "-lang*")) == made[8:]


def test_a_damaged_document_proves_nothing(store: Store, ana: AccountInfo) -> None:
    made = add_people(store, ana, "Ada", "Ada")
    index_all(store)
    damage(store, "UPDATE documents SET document = 'no JSON' WHERE id = :id", id=made[0])
    assert ids(find_page(store, ana.id, '"ada"')) == made[1:]
    damage(store, "DELETE FROM documents WHERE id = :id", id=made[1])
    assert ids(find_page(store, ana.id, '-"zoe"')) == []


# What comparing each resume finds

SAMPLES: Final = Path(__file__).parents[2] / "sample_data"


def a_query(choose: random.Random, texts: Sequence[str]) -> str:
    """A query of words and parts of words that are in the texts, or nearly."""
    items = []
    for _ in range(choose.choice((1, 1, 2, 2, 3, 5))):
        words = choose.choice(texts).split() or ["none"]
        at = choose.randrange(len(words))
        word = words[at]
        match choose.randrange(8):
            case 0:
                word = f'"{" ".join(words[at : at + choose.randint(1, 3)])}"'
            case 1:
                word = f"{word[: choose.randint(3, 6)]}*"
            case 2:
                word = word[: choose.randint(1, 4)]
            case 3:
                word = word.upper() if choose.random() < 0.5 else word[::-1]
        prefix = choose.choice(["", *[f"{name}:" for name in PREFIXES]] + [""] * 4)
        items.append(f"{'-' * (choose.random() < 0.25)}{prefix}{word}")
    return " ".join(items)


@pytest.mark.parametrize(
    ("queries", "seed"),
    [(120, 0), *(pytest.param(5_000, seed, marks=pytest.mark.campaign(6)) for seed in range(1, 5))],
)
def test_any_query_finds_what_comparing_each_resume_finds(
    shared: Store, queries: int, seed: int
) -> None:
    choose = random.Random(seed)
    bodies = [path.read_bytes() for path in sorted(SAMPLES.glob("*.json"))]
    choose.shuffle(bodies)
    account = accounts.create_account(shared, f"seed-{seed}", plan="business")
    labels = (None, "class-2026", "Größe")
    new = [NewResume(parse(body), label=labels[number % 3]) for number, body in enumerate(bodies)]
    resumes = dict(zip(made_ids(creation.create(shared, account.id, new)), new, strict=True))
    index_all(shared)
    for gone in [*resumes][::9]:
        stored_resumes.delete_resume(shared, account.id, gone)
        del resumes[gone]
    texts = {
        id_: [
            *iter_texts(
                load_stored(one.resume.document), one.resume.title, one.resume.name, one.label
            )
        ]
        for id_, one in resumes.items()
    }
    words = [text for of_one in texts.values() for _, text in of_one]
    ran, hits = 0, 0
    while ran < queries:
        text, is_typing = a_query(choose, words), choose.random() < 0.2
        query = [*iter_words(text, is_typing=is_typing)]
        if not 0 < len(query) <= MAX_TERMS or len(text) > MAX_QUERY_CHARS:
            continue
        expected = [id_ for id_, of_one in texts.items() if has_all(of_one, query)]
        is_newest_first = choose.random() < 0.5
        limit = 100 if len(expected) > 50 else choose.choice((3, 100))
        find = partial(find_page, is_typing=is_typing)
        found = walk(shared, account, text, limit=limit, find=find, is_newest_first=is_newest_first)
        in_order = expected[::-1] if is_newest_first else expected
        assert [entry.id for entry in found] == in_order, (text, is_typing)
        ran += 1
        hits += len(found)
    assert hits > queries


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
