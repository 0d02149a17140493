"""Several importers on a folder: one works, the others stand by."""

from concurrent.futures import ThreadPoolExecutor

from importer.notices import Summary
from importer.slots import Slot
from tests.support.inbox.builders import (
    Inbox,
    wait_until,
)
from tests.support.resumes import a_document


def test_an_importer_stands_by_while_another_works_and_says_so_once(inbox: Inbox) -> None:
    first = inbox.importer()
    second = inbox.importer(beside=True)
    inbox.drop("ana/1.json", a_document("1"))
    inbox.rounds(second, 2)
    assert second.stands_by
    assert inbox.names() == []
    (notice,) = inbox.notices
    assert notice.startswith(f"Another importer is running in {inbox.root}. This one is on standby")
    first.close()
    second.round()
    assert inbox.names() == ["1"]
    assert not second.stands_by


def test_no_new_file_is_taken_while_a_helper_of_an_importer_that_is_gone_lives(
    inbox: Inbox,
) -> None:
    helper = Slot(inbox.root, 1)
    assert helper.take()
    inbox.drop("ana/1.json", a_document("1"))
    importer = inbox.importer()
    importer.round()
    assert inbox.names() == []
    helper.leave()
    importer.round()
    assert inbox.names() == ["1"]


def test_once_waits_for_an_importer_that_is_running(inbox: Inbox) -> None:
    running = Slot(inbox.root, 0)
    assert running.take()
    inbox.drop("ana/1.json", a_document("1"))
    with ThreadPoolExecutor(1) as threads:
        draining = threads.submit(inbox.drain)
        wait_until(lambda: bool(inbox.notices) or draining.done())
        assert inbox.names() == []
        running.leave()
        assert draining.result() == Summary(done=1)
    assert "This one is on standby" in inbox.notices[0]
    assert inbox.names() == ["1"]
