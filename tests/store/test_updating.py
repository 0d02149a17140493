"""A resume that is updated: what changes, what stays, and who wins (docs/api.md, Update)."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from resumes.analyzer.person import person_of
from resumes.errors import NotFound, ResumeChanged
from resumes.store import Store, creation, search, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Duplicate
from resumes.store.schema import ResumeRow
from resumes.store.stored_resumes import StoredResume
from tests.support.clocks import SteppingClock
from tests.support.resumes import a_claim, a_resume
from tests.support.store.builders import (
    MakeAccount,
    a_person,
    add_people,
    add_resumes,
    damage,
    find_flaws,
    index_all,
    indexed_words,
    made_ids,
    python_running,
    read_lines,
)

pytestmark = pytest.mark.engines


def found(store: Store, account: AccountInfo, query: str) -> list[str]:
    page = search.find_page(store, account.id, query, timeout_s=60).page
    return [entry.id for entry in page.entries]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("moves_s", [-3_600, 0, 3_600])
def test_an_update_changes_the_content_and_the_time_and_nothing_else(
    store: Store, an_account: MakeAccount, clock: SteppingClock, is_async: bool, moves_s: int
) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    batch = [a_resume("Ada", with_digest=True), a_resume("Bo")]
    changed, other = made_ids(creation.create(store, mine.id, batch, claim=a_claim()))
    creation.create(store, theirs.id, batch)
    before = stored_resumes.get_resume(store, mine.id, changed)
    rest = [stored_resumes.get_resume(store, mine.id, other), *entries(store, theirs)]
    clock.advance(moves_s)

    new = a_person("Zoe", title="Nurse").resume
    if is_async:
        at, _ = asyncio.run(stored_resumes.update_resume_async(store, mine.id, changed, new))
    else:
        at, _ = stored_resumes.update_resume(store, mine.id, changed, new)

    after = stored_resumes.get_resume(store, mine.id, changed)
    assert after.document == new.document.decode()
    assert after.entry == before.entry._replace(
        title="Nurse", name="Zoe", filename=new.filename, updated_at=at
    )
    assert at > before.entry.updated_at
    assert [stored_resumes.get_resume(store, mine.id, other), *entries(store, theirs)] == rest
    assert find_flaws(store) == []


def entries(store: Store, account: AccountInfo) -> list[StoredResume]:
    ids = [entry.id for entry in stored_resumes.list_page(store, account.id).entries]
    return [stored_resumes.get_resume(store, account.id, resume_id) for resume_id in ids]


def test_the_file_of_a_corrected_resume_is_still_a_duplicate(
    store: Store, ana: AccountInfo
) -> None:
    original = a_resume("Ada", with_digest=True)
    (made,) = made_ids(creation.create(store, ana.id, [original], claim=a_claim()))

    stored_resumes.update_resume(store, ana.id, made, a_person("Zoe").resume)

    again = creation.create(store, ana.id, [original], claim=a_claim("1" * 24))
    assert again == [Duplicate(made)]
    assert [entry.name for entry in stored_resumes.list_page(store, ana.id).entries] == ["Zoe"]


def test_the_person_follows_an_update_and_label_file_and_first_month_are_kept(
    store: Store, ana: AccountInfo
) -> None:
    (made,) = add_resumes(store, ana, 1)
    damage(store, "UPDATE resumes SET label = 'class', claim_id = 'c', first_month = 1")

    for email, person in (("Z@b.example", person_of("z@b.example", "Zoe")), (None, None)):
        new = a_person("Zoe", email=email).resume
        stored_resumes.update_resume(store, ana.id, made, new)
        with store.session() as session:
            row = session.get_one(ResumeRow, (ana.id, made))
        assert (row.person, row.label, row.claim_id, row.first_month) == (person, "class", "c", 1)


def test_an_updated_resume_is_found_by_its_new_words_alone(store: Store, ana: AccountInfo) -> None:
    indexed, other = add_people(store, ana, "Ada", "Bo")
    index_all(store)
    (new,) = add_people(store, ana, "Ada")
    for resume_id in (indexed, new):
        stored_resumes.update_resume(store, ana.id, resume_id, a_person("Zoe").resume)
    assert (found(store, ana, "ada"), found(store, ana, "zoe")) == ([], [indexed])
    index_all(store)
    assert (found(store, ana, "ada"), found(store, ana, "zoe")) == ([], [indexed, new])
    assert found(store, ana, "bo") == [other]


def test_of_updates_of_what_was_read_at_once_exactly_one_is_stored(
    store: Store, ana: AccountInfo
) -> None:
    (made,) = add_resumes(store, ana, 1)
    read = stored_resumes.get_resume(store, ana.id, made)

    def check(stored: StoredResume) -> None:
        if stored != read:
            raise ResumeChanged

    def update(number: int) -> str | None:
        new = a_person(f"Zoe {number}").resume
        try:
            stored_resumes.update_resume(store, ana.id, made, new, check=check)
        except ResumeChanged:
            return None
        return new.name

    with ThreadPoolExecutor(8) as threads:
        done = [name for name in threads.map(update, range(32)) if name]
    (entry,) = stored_resumes.list_page(store, ana.id).entries
    assert done == [entry.name]


@pytest.mark.parametrize("lost", ["UPDATE documents SET document = '{'", "DELETE FROM documents"])
def test_an_update_replaces_a_document_that_is_damaged_or_lost(
    store: Store, ana: AccountInfo, lost: str
) -> None:
    (made,) = add_resumes(store, ana, 1)
    damage(store, lost)
    assert find_flaws(store)

    stored_resumes.update_resume(store, ana.id, made, a_person("Zoe").resume)

    assert find_flaws(store) == []


def test_what_is_no_resume_of_the_account_cannot_be_updated(
    store: Store, ana: AccountInfo, an_account: MakeAccount
) -> None:
    theirs = an_account("theirs")
    (foreign,) = add_resumes(store, theirs, 1)
    read = stored_resumes.get_resume(store, theirs.id, foreign)
    new = a_person("Zoe").resume
    for resume_id in ("", "x", "A" * 24, "0" * 24, foreign):
        for check in (None, lambda stored: None):
            with pytest.raises(NotFound, match=r"^Resume not found$"):
                stored_resumes.update_resume(store, ana.id, resume_id, new, check=check)
        with pytest.raises(NotFound, match=r"^Resume not found$"):
            asyncio.run(stored_resumes.update_resume_async(store, ana.id, resume_id, new))
    assert stored_resumes.get_resume(store, theirs.id, foreign) == read


UPDATING: Final = """
    import sys
    from itertools import count
    from resumes.store import open_store, stored_resumes
    from tests.support.store.builders import a_person

    _, url, account_id, resume_id = sys.argv
    with open_store(url) as store:
        for number in count():
            person = a_person(f"Zoe{number}", title=f"Nr {number}").resume
            stored_resumes.update_resume(store, account_id, resume_id, person)
            print(number, flush=True)
"""


@pytest.mark.slow
def test_after_a_kill_an_update_is_stored_whole_or_not_at_all(
    url: str, store: Store, ana: AccountInfo
) -> None:
    made, other = add_people(store, ana, "Zoe0", "Bo")
    index_all(store)
    for acknowledged in (1, 2, 5, 9, 20, 40):
        with python_running(UPDATING, url, ana.id, made) as process:
            read_lines(process, acknowledged)
            process.kill()
            assert process.stdout is not None
            told = acknowledged + len(process.stdout.readlines())
        stored = stored_resumes.get_resume(store, ana.id, made)
        name = stored.entry.name
        assert name in {f"Zoe{told - 1}", f"Zoe{told}"}
        assert json.loads(stored.document)["header"]["name"] == name
        assert (stored.entry.title or "").removeprefix("Nr ") == name.removeprefix("Zoe")
        assert found(store, ana, f'"{name}"') == [made]
        assert found(store, ana, "zoe*") == [made]
        words = {word[1:] for word in indexed_words(store) if word[1:].startswith("zoe")}
        assert max(words) == name.lower()  # all others are its beginnings
        assert all(map(name.lower().startswith, words))
        assert find_flaws(store) == []
    assert found(store, ana, "bo") == [other]
