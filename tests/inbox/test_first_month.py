"""The number of January in an account's files: recorded as it was when a file was imported."""

import json

from resumes.store import accounts, stored_resumes
from tests.support.inbox.builders import Inbox
from tests.support.inbox.packing import zipped
from tests.support.json_resumes import COMPLETE
from tests.support.resumes import a_document

JOBS = {"column": 0, "items": [{"dateRange": {"fromYear": 2020, "fromMonth": 1, "toMonth": 12}}]}


def a_dated(name: str) -> bytes:
    """A resume with dates, in which a month 12 is warned of unless months count from 1."""
    return a_document(name, sections={"experiences": JOBS})


def recorded(inbox: Inbox) -> dict[str, int | None]:
    """What is known of each resume, by its name."""
    page = stored_resumes.list_page(inbox.store, inbox.ana.id, limit=100)
    return {
        entry.name or "": stored_resumes.get_resume(inbox.store, inbox.ana.id, entry.id).first_month
        for entry in page.entries
    }


def set_first_month(inbox: Inbox, first_month: int | None) -> None:
    accounts.set_options(inbox.store, "ana", {"first_month": first_month})


def test_files_and_bundles_count_as_their_account_says_and_json_resumes_from_0(
    inbox: Inbox,
) -> None:
    set_first_month(inbox, 1)
    inbox.drop("ana/one.json", a_dated("One"))
    inbox.drop("ana/lines.ndjson", a_dated("Two") + b"\n" + a_dated("Three") + b"\n")
    inbox.drop("ana/some.zip", zipped({"four.json": a_dated("Four")}))
    inbox.drop("ana/other.json", json.dumps(COMPLETE).encode())
    inbox.drain()

    name = COMPLETE["basics"]["name"]
    assert recorded(inbox) == {"One": 1, "Two": 1, "Three": 1, "Four": 1, name: 0}
    (plain,) = (row for row in inbox.rows() if row.name == "ana/one.json")
    assert plain.warnings == 0


def test_a_change_holds_for_later_files_and_held_ones(inbox: Inbox) -> None:
    inbox.limit(1)
    importer = inbox.importer()
    inbox.drop("ana/1.json", a_dated("1"))
    inbox.drop("ana/2.json", a_dated("2"))
    inbox.rounds(importer, 2, pause_s=5)
    assert list(recorded(inbox).values()) == [None]
    set_first_month(inbox, 1)
    inbox.limit(None)
    inbox.rounds(importer, 3, pause_s=5)
    assert sorted(map(str, recorded(inbox).values())) == ["1", "None"]


def test_the_setting_holds_for_accounts_without_a_first_month(inbox: Inbox) -> None:
    accepted = inbox.importer().job.options.format.for_account(1)
    inbox.drop("ana/1.json", a_dated("1"))
    inbox.importer(format=accepted).round()
    set_first_month(inbox, 0)
    inbox.drop("ana/2.json", a_dated("2"))
    inbox.importer(format=accepted).round()
    assert recorded(inbox) == {"1": 1, "2": 0}


def test_a_helper_is_told(inbox: Inbox) -> None:
    set_first_month(inbox, 1)
    for number in range(40):
        inbox.drop(f"ana/{number}.json", a_dated(str(number)))
    inbox.drain(helper_from=10, batch_files=5)
    assert set(recorded(inbox).values()) == {1}
