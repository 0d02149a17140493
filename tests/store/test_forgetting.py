"""People who were erased, and do not come back."""

import gzip
import json
import re
from dataclasses import replace

import pytest
from sqlalchemy import select

from resumes import analyzer
from resumes.errors import PersonErased
from resumes.store import (
    Store,
    accounts,
    creation,
    forgetting,
    forgotten,
    import_history,
    import_ledger,
    schema,
    stored_resumes,
)
from resumes.store.creation import Created, IdempotencyKey, NewResume
from resumes.store.forgetting import Mentions
from resumes.store.forgotten import Subject
from resumes.store.import_ledger import Analysis, FileOutcome, Items, Problem, Verdict
from tests.support.resumes import a_claim, a_document
from tests.support.store.builders import (
    MakeAccount,
    a_person,
    index_all,
    indexed_words,
    listed_ids,
    made_ids,
)

pytestmark = pytest.mark.engines

ADA = "ada@example.com"


def create(store: Store, account: accounts.AccountInfo, new: NewResume) -> creation.Outcome:
    (outcome,) = creation.create(store, account.id, [new])
    return outcome


def test_nothing_of_a_forgotten_address_comes_in_until_it_is_lifted(
    store: Store, an_account: MakeAccount
) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    forgotten.remember(store, [Subject.of_email(" ADA@Example.com")])

    for account in (mine, theirs):
        for name in ("Ada", None):
            refused = create(store, account, a_person(name, email="Ada@example.com "))
            assert isinstance(refused, PersonErased)
            assert str(refused) == "This person was erased"
        assert isinstance(create(store, account, a_person("Ada", email="ada@example.org")), Created)
        assert isinstance(create(store, account, a_person("Ada")), Created)
        assert len(listed_ids(store, account)) == 2

    assert forgotten.lift(store, [Subject.of_email(ADA)])
    assert not forgotten.lift(store, [Subject.of_email(ADA)])
    assert isinstance(create(store, mine, a_person("Ada", email=ADA)), Created)


def test_an_account_can_forget_a_person_alone(store: Store, an_account: MakeAccount) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    (mine_id,) = made_ids([create(store, mine, a_person("Ada Lovelace", email=ADA))])
    stored = stored_resumes.get_resume(store, mine.id, mine_id)
    person = Subject.of_resume(stored.document, stored.entry.name)
    forgotten.remember(store, [person], mine.id)

    lovelace = a_person("LOVELACE, Ada", email=ADA)
    assert isinstance(create(store, mine, lovelace), PersonErased)
    assert isinstance(create(store, mine, a_person("Ada's school", email=ADA)), Created)
    assert isinstance(create(store, theirs, lovelace), Created)
    assert not forgotten.lift(store, [person])
    assert forgotten.lift(store, [person], mine.id)
    assert isinstance(create(store, mine, lovelace), Created)


def test_a_resume_without_an_address_is_known_by_its_content(
    store: Store, an_account: MakeAccount
) -> None:
    mine = an_account("mine")
    nameless = a_person("Ada")
    forgotten.remember(store, [Subject.of_resume(nameless.resume.document, "Ada")])
    assert isinstance(create(store, mine, nameless), PersonErased)
    assert isinstance(create(store, mine, a_person("Ada", title="Nurse")), Created)


def test_no_update_brings_a_forgotten_person_back(store: Store, an_account: MakeAccount) -> None:
    mine = an_account("mine")
    (made,) = made_ids([create(store, mine, a_person("Bo", email="bo@example.com"))])
    forgotten.remember(store, [Subject.of_email(ADA)])
    before = stored_resumes.get_resume(store, mine.id, made)
    with pytest.raises(PersonErased):
        stored_resumes.update_resume(store, mine.id, made, a_person("Bo", email=ADA).resume)
    assert stored_resumes.get_resume(store, mine.id, made) == before


def test_repeats_of_what_was_stored_are_refused_too_and_the_ledger_names_nobody(
    store: Store, an_account: MakeAccount
) -> None:
    mine = an_account("mine")
    new = a_person("Ada", email=ADA)
    items = json.dumps(Items(0, 0, 0, 0, 0, analysis=Analysis("0" * 64, 1.5, "Ada")).as_json())
    claim = a_claim(name="mine/class/ada-lovelace.json", source=b"all of Ada", items=items)
    (made,) = made_ids(creation.create(store, mine.id, [new], claim=claim))
    forgotten.remember(store, [Subject.of_email(ADA)])
    stored_resumes.delete_resume(store, mine.id, made)

    (again,) = creation.create(store, mine.id, [new], claim=claim)
    assert isinstance(again, PersonErased)
    file = import_history.get_file(store, claim.claim_id)
    assert (file.name, file.outcome) == ("mine/forgotten.json", FileOutcome.FAILED)
    assert (file.reason, file.analysis) == ("forgotten", None)
    assert not import_history.find_source(store, file)


def test_no_table_has_anything_of_a_person_and_all_of_others(
    store: Store, an_account: MakeAccount
) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    sections = {"summaries": {"column": 0, "items": [{"text": "Countess"}]}}
    header = {"name": "Ada Lovelace", "email": ADA}
    ada = NewResume(analyzer.parse(a_document(header=header, sections=sections)))
    keyed = ada._replace(idempotency=IdempotencyKey("ada lovelace's", b"x" * 32))
    named = a_claim(name="mine/ada-lovelace.json")
    bundle = a_claim("1" * 24, name="mine/class.zip", source=b"{ADA@EXAMPLE.COM")
    problem = Problem(2, "member Lovelace, Ada.json", "failed", "invalid_json", "x", None, 0)
    items = json.dumps(Items(2, 1, 0, 0, 1, (problem, replace(problem, place="b.json"))).as_json())
    creation.create(store, mine.id, [keyed])
    creation.create(store, mine.id, [ada], claim=named)
    creation.create(store, theirs.id, [a_person("Ada Lovelace", email=ADA)])
    import_ledger.record(
        store,
        mine.id,
        bundle._replace(items=items),
        Verdict(FileOutcome.FAILED, "invalid_json", "2 failed. member Lovelace, Ada.json: x"),
    )
    other = a_claim("2" * 24, name="mine/bo.json", source=b'{"header": {"email": "bo@b.com"}}')
    import_ledger.record(store, mine.id, other, Verdict(FileOutcome.FAILED, "invalid_resume"))
    creation.create(store, mine.id, [a_person("Bo", email="bo@b.com")])
    index_all(store)
    assert any("countess" in word for word in indexed_words(store))

    subjects = [Subject.of_email(ADA)]
    found = [*forgetting.find_resumes(store, subjects, [mine.id])]
    assert len(found) == 2
    forgotten.remember(store, subjects, mine.id)
    mentions = forgetting.mentions_of(subjects, found)
    for _ in range(2):  # and again
        forgetting.forget_resumes(store, mine.id, [each.id for each in found])
        forgetting.clean_ledger(store, mine.id, mentions)
        forgetting.clear_traces(store, found)

    left = {
        table.name: [
            row
            for row in map(str, store.fetch(select(table)))
            if mine.id in row and re.search("lovelace|ada@|countess", row, re.IGNORECASE)
        ]
        for table in schema.metadata.sorted_tables
    }
    assert left == {name: [] for name in left}
    with store.read() as connection:
        words = connection.exec_driver_sql("SELECT DISTINCT term FROM search_words").scalars()
        assert not [word for word in words if "countess" in word]
    assert listed_ids(store, theirs)
    assert len(listed_ids(store, mine)) == 1
    rows = {row.claim_id: row for row in import_history.list_files(store, account_id=mine.id)}
    assert import_history.find_source(store, rows[other.claim_id]) == other.source
    kept = rows[bundle.claim_id].items
    assert kept is not None
    assert [one.place for one in kept.problems] == ["b.json"]


@pytest.mark.parametrize(
    "text",
    [
        *("<lee@x.co>", "_lee@x.co_", "- lee@x.co, a", "lee@x.co.", "lee@x.co--", "-lee@x.co"),
        *("a\\nlee@x.co", "mailto%3Alee@x.co", "\\u003clee@x.co\\u003e", "LEE@X.CO"),
        *("Li Na", "na, li", "Li Nas CV", "a\\nLi-Na", "/in/lina"),
    ],
)
def test_a_person_is_found_in_the_text_of_a_file(text: str) -> None:
    assert Mentions(["lee@x.co"], ["Li Na"]).are_in(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        *("ashlee@x.co", "ash.lee@x.co", "ash_lee@x.co", "lee@x.com", "lee@x.co-op.org"),
        *("lee@x.co.uk", "Carolina", "Nalini", "Li Nathan"),
    ],
)
def test_longer_addresses_and_words_are_of_others(text: str) -> None:
    mentions = Mentions(["lee@x.co"], ["Li Na"])
    assert not mentions.are_in(text.encode())
    assert mentions.may_be_in(text.encode())


def test_each_stream_of_a_damaged_gzip_file_is_searched() -> None:
    streams = [gzip.compress(text) for text in (b"[1]\n" * 4_000, b"{}", b"<lee@x.co>\n")]
    assert Mentions(["lee@x.co"]).are_in(b"".join(streams)[:-4])


def test_names_of_underscores_are_not_searched() -> None:
    assert not Mentions([], ["_ _ _ _ x"]).are_in(b"_" * 1_000_000)  # this would take years


def test_the_beginning_of_a_long_name_and_no_long_address_is_sought() -> None:
    name, address = "a " * 9_000 + "b", "z" * 19_000 + "@x.co"
    mentions = Mentions([address], [name])
    assert mentions.may_be_in(b"a-" * 160)
    assert not mentions.may_be_in(b"a-" * 150)
    assert not mentions.may_be_in(address.encode())
