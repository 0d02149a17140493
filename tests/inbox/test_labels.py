"""The labels of imported resumes, by the folders that files were dropped in."""

import pytest

from resumes.store import accounts, stored_resumes
from resumes.store.import_requests import RequestKind
from tests.support.inbox.builders import Inbox, Moment, die, killing_at, lines, rounds_until
from tests.support.inbox.packing import zipped, zipped_as
from tests.support.resumes import a_document


def labels(inbox: Inbox) -> dict[str, str | None]:
    """The labels of ana's resumes, by the names on them."""
    entries = stored_resumes.list_page(inbox.store, inbox.ana.id, limit=100).entries
    return {entry.name or "": entry.label for entry in entries}


def test_the_first_folder_below_the_account_is_the_label(inbox: Inbox) -> None:
    for folder, name in {
        "ana/": "none",
        "ana/class-2026/": "first",
        "ana/class-2026/b/c/": "deep",
        "ana/ Zo\u0065\u0308\\\udcff/": "odd",
        f"ana/{'x' * 120}/": "long",
        "": "of the default account",
    }.items():
        inbox.drop(f"{folder}{name}.json", a_document(name))
    inbox.drop("ana/class-2027/of several.ndjson", lines("one", "", "two"))
    inbox.drain(account="ana")
    assert labels(inbox) == {
        "none": None,
        "first": "class-2026",
        "deep": "class-2026",
        "odd": "Zoë\\\\\\xff",
        "long": "x" * 100,
        "of the default account": None,
        "one": "class-2027",
        "two": "class-2027",
    }


def test_members_of_a_zip_have_the_label_of_its_folder_or_of_their_own(inbox: Inbox) -> None:
    def members(name: str) -> dict[str, bytes]:
        return {
            f"{name}0.json": a_document(f"{name}0"),
            f"./Zo\u0065\u0308/{name}1.json": a_document(f"{name}1"),
            f"b\\c\\{name}2.ndjson": a_document(f"{name}2") + b"\n" + a_document(f"{name}3"),
        }

    inbox.drop("ana/plain.zip", zipped(members("a")))
    inbox.drop("ana/class/inside.zip", zipped(members("b")))
    # macOS does not say that names are UTF-8; in Shift-JIS, a backslash may be half a character.
    inbox.drop("ana/mac.zip", zipped_as("utf-8", {"Zoë/c.json": a_document("c")}))
    inbox.drop("ana/jp.zip", zipped_as("cp932", {"表/d.json": a_document("d")}))
    inbox.drain()
    found = labels(inbox)
    assert (found.pop("d") or "").endswith("\\\\")
    assert found == {
        "a0": None,
        "a1": "Zoë",
        "a2": "b",
        "a3": "b",
        **dict.fromkeys(("b0", "b1", "b2", "b3"), "class"),
        "c": "Zoë",
    }


@pytest.mark.parametrize("has_report", [True, False])
def test_a_held_file_has_its_label_when_it_is_released(inbox: Inbox, has_report: bool) -> None:
    inbox.limit(0)
    inbox.drop("ana/class/a.json", a_document("a"))
    inbox.drop("ana/class/b.ndjson", lines("b", "c"))
    importer = inbox.importer(settle_s=0)
    rounds_until(importer, lambda: len(inbox.filed("_held")) == 2)
    if not has_report:
        for report in (inbox.root / "_held").rglob("*.report.json"):
            report.unlink()
    inbox.limit(None)
    rounds_until(importer, lambda: len(inbox.names()) == 3)
    assert labels(inbox) == dict.fromkeys("abc", "class")


def test_a_failed_file_has_its_label_when_it_is_mended_and_retried(inbox: Inbox) -> None:
    inbox.drop("ana/class/a.json", b"nonsense")
    importer = inbox.importer(settle_s=0)
    importer.round()
    (file,) = inbox.filed("_failed")
    file.write_bytes(a_document("a"))
    inbox.ask(RequestKind.RETRY)
    rounds_until(importer, lambda: inbox.names() == ["a"])
    assert labels(inbox) == {"a": "class"}


@pytest.mark.parametrize("moment", [Moment.NOTED, Moment.READ, Moment.COMMITTED, Moment.MOVED])
@pytest.mark.parametrize("name", ["a.json", "a.ndjson"])
def test_a_file_has_its_label_and_first_month_however_its_import_was_cut_off(
    inbox: Inbox, moment: Moment, name: str
) -> None:
    accounts.set_options(inbox.store, "ana", {"first_month": 1})
    inbox.drop(f"ana/class/{name}", a_document("a"))
    importer = inbox.importer(settle_s=0, observe=killing_at(moment))
    die(importer)
    rounds_until(inbox.importer(settle_s=0), lambda: len(inbox.filed("_done")) == 1)
    assert labels(inbox) == {"a": "class"}
    (entry,) = stored_resumes.list_page(inbox.store, inbox.ana.id).entries
    assert stored_resumes.get_resume(inbox.store, inbox.ana.id, entry.id).first_month == 1
