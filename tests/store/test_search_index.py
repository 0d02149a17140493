"""The search index: written behind the creates by any number of processes, and corrected with each
resume that is removed or changed."""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import pytest
from sqlalchemy import text as sql

from resumes.analyzer import parse
from resumes.store import (
    Store,
    accounts,
    creation,
    open_store,
    plans,
    search,
    search_index,
    stored_resumes,
)
from resumes.store.accounts import AccountInfo
from resumes.store.creation import NewResume
from resumes.store.plans import PlanChange
from resumes.store.search_index import (
    CLEANING_INTERVAL_S,
    SLICE_RESUMES,
    YIELD_S,
    IndexedCount,
    Indexer,
    count_indexed,
    list_behind,
)
from resumes.store.write_queue import Write
from tests.support.resumes import a_document, a_resume
from tests.support.store.builders import (
    MakeAccount,
    add_people,
    add_resumes,
    count_rows,
    damage,
    entries_of,
    execute,
    index_all,
    indexed_words,
    lose_table,
    made_ids,
    python_running,
    read_lines,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engines

INTERVAL_S = 0.01


def indexed(store: Store) -> int:
    return count_rows(store, "search_entries")


def found(store: Store, account: AccountInfo, query: str) -> list[str]:
    return [entry.id for entry in search.iter_entries(store, account.id, query)]


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


def test_what_is_deleted_takes_its_words_along_and_no_number_is_used_again(
    store: Store, ana: AccountInfo
) -> None:
    for _ in range(2):
        (made,) = add_people(store, ana, "Ada Łukasz-Wójcik 山田")
        index_all(store)
        assert {"nlukasz", "n山田"} <= indexed_words(store)
        stored_resumes.delete_resume(store, ana.id, made)
        assert indexed_words(store) == set()
        assert found(store, ana, "ada") == []
        assert list_behind(store) == []  # although its newest resume went
    with store.read() as connection:
        assert connection.execute(sql("SELECT last_seq FROM search_progress")).scalars().one() == 2


def test_a_resume_that_is_changed_while_it_is_indexed_is_read_again(
    store: Store, ana: AccountInfo
) -> None:
    (changed,) = add_people(store, ana, "Ada")
    change = f"UPDATE resumes SET name = 'Zoe', updated_at = 'later' WHERE id = '{changed}'"
    assert step(store, lambda: execute(store, change)) == YIELD_S
    index_all(store)
    assert found(store, ana, "title:zoe") == [changed]


def test_the_persons_of_resumes_that_are_older_than_the_column_are_filled_in(
    store: Store, ana: AccountInfo
) -> None:
    creation.create(store, ana.id, [a_resume(name) for name in ("Ada", "Bo", "Ada")])
    stored = persons(store)
    execute(store, "UPDATE resumes SET person = NULL")
    index_all(store)
    assert persons(store) == stored
    assert len(set(stored)) == 2


def persons(store: Store) -> list[bytes]:
    """Whose the resumes are, in order; all are somebody's."""
    with store.read() as connection:
        found = connection.execute(sql("SELECT person FROM resumes ORDER BY id")).scalars()
        return [*map(bytes, found)]


def test_how_far_the_store_is_indexed_is_counted(store: Store, an_account: MakeAccount) -> None:
    assert count_indexed(store) == IndexedCount(0, 0)
    one, two = an_account("one"), an_account("two")
    gone, *_ = add_people(store, one, "Ada", "Bo")
    index_all(store)
    add_people(store, one, "Zoe")
    add_people(store, two, "Ada")
    assert count_indexed(store) == IndexedCount(2, 4)
    stored_resumes.delete_resume(store, one.id, gone)
    assert count_indexed(store) == IndexedCount(1, 3)


def test_words_that_no_resume_has_anymore_are_removed_in_time(
    store: Store, ana: AccountInfo
) -> None:
    def listed() -> set[str]:
        with store.read() as connection:
            return set(connection.execute(sql("SELECT term FROM search_words")).scalars())

    def resume(skill: str) -> NewResume:
        skills = {"column": 0, "items": [{"tags": [skill, "Python"]}]}
        return NewResume(parse(a_document(sections={"skills": skills})))

    new = [resume(f"Language{number}") for number in range(60)]
    made = made_ids(creation.create(store, ana.id, new))
    index_all(store)
    for gone in made[:-1]:
        stored_resumes.delete_resume(store, ana.id, gone)
    now_s = 0.0
    indexer = Indexer(store, clock=lambda: now_s)
    for _ in range(2):
        indexer.step()
        now_s += CLEANING_INTERVAL_S
    for _ in range(5):
        indexer.step()
    assert listed() >= {"spython", "slanguage59"}
    assert "slanguage3" not in listed()
    assert found(store, ana, "lang*") == [made[-1]]


# The indexer


def test_a_step_ends_with_a_document_that_makes_it_large(
    store: Store, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "SLICE_BYTES", 500)
    add_resumes(store, ana, 6)
    Indexer(store).step()
    assert 0 < indexed(store) < 6
    index_all(store)
    assert indexed(store) == 6


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


def test_a_full_last_slice_leaves_nothing_for_searches_to_look_through(
    store: Store, ana: AccountInfo
) -> None:
    if store.path is not None:
        pytest.skip("only PostgreSQL writes to its index later")
    add_resumes(store, ana, SLICE_RESUMES)
    index_all(store)
    clean = sql("SELECT gin_clean_pending_list('ix_search_entries_words')")
    assert store.write(lambda session: session.connection().execute(clean).scalar_one()) == 0


@pytest.mark.slow
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


def step(store: Store, meanwhile: Callable[[], object]) -> float:
    """An indexer's step, with something that is done after its resumes were read, and before they are
    added."""
    commit = store.commit

    def commit_later(writes: Sequence[Write]) -> list[Any]:
        patch.undo()
        meanwhile()
        return commit(writes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "commit", commit_later)
        return Indexer(store, interval_s=INTERVAL_S).step()


@pytest.mark.sqlite("an index of parts")
def test_an_idle_indexer_merges_the_parts_of_the_index(store: Store, ana: AccountInfo) -> None:
    def count_parts() -> int:
        with store.read() as connection:
            parts = connection.execute(sql("SELECT count(DISTINCT segid) FROM search_tokens_idx"))
            return int(parts.scalar_one())

    is_busy = True
    indexer = Indexer(store, is_busy=lambda: is_busy)
    for number in range(7):
        add_people(store, ana, f"Ada{number}")
        while list_behind(store):
            indexer.step()
    before = count_parts()
    indexer.step()
    assert count_parts() == before >= 3
    is_busy = False
    for _ in range(5):
        indexer.step()
    assert count_parts() < before
    assert len(found(store, ana, "ada")) == 7


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
    looks: list[float] = []

    def clock() -> float:
        looks.append(float(len(looks)))
        if len(looks) <= 3 and is_unknown:
            raise ZeroDivisionError
        return looks[-1]

    add_resumes(store, ana, 1)
    if not is_unknown:
        lose_table(store, "search_progress")
    with (
        caplog.at_level(logging.WARNING, "resumes.store"),
        Indexer(store, interval_s=INTERVAL_S, retry_s=INTERVAL_S, clock=clock),
    ):
        wait_until(lambda: len(looks) > 4)
        if not is_unknown:
            execute(store, "ALTER TABLE elsewhere RENAME TO search_progress")
        wait_until(lambda: indexed(store) == 1)
    (told,) = [record for record in caplog.records if "search index" in record.getMessage()]
    assert "will retry" in told.getMessage()
    assert (told.exc_info is not None) is is_unknown


USING: Final = """
    import random, sys
    from resumes.store import accounts, open_store, stored_resumes
    from resumes.store.search_index import Indexer
    from tests.support.store.builders import add_people

    with open_store(sys.argv[1]) as store, Indexer(store, interval_s=0):
        account = accounts.get_account(store, "ana")
        for number in range(1_000):
            made = add_people(store, account, *[f"Ada {number}"] * random.randint(1, 60))
            print(number, flush=True)
            for gone in random.sample(made, len(made) // 3):
                stored_resumes.delete_resume(store, account.id, gone)
"""


@pytest.mark.slow
def test_r5_after_a_kill_every_resume_is_found_or_counted_and_none_that_is_gone(
    url: str, store: Store, ana: AccountInfo
) -> None:
    plans.set_plan_limits(store, PlanChange("business", None))
    for wanted in (1, 3, 6, 10, 15):
        with python_running(USING, url) as process:
            read_lines(process, wanted)
        read = partial(stored_resumes.list_page, store, ana.id, limit=100)
        stored = [entry.id for entry in entries_of(read)]
        unindexed = search.find_page(store, ana.id, "ada").unindexed
        assert found(store, ana, "ada") == stored[: len(stored) - unindexed]
        assert found(store, ana, "-nobody") == stored[: len(stored) - unindexed]
    index_all(store)
    assert found(store, ana, "ada") == stored
