import logging

import pytest
from sqlalchemy.exc import OperationalError

from resumes.store.sqlite.complaints import Complaints, words_of


def test_a_thing_is_told_once_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints("It is over")
    complaints.end()
    for _ in range(3):
        complaints.tell("A commit failed", OSError("disk I/O error"))
    complaints.tell("A commit failed", OSError("disk is full"))
    complaints.end()
    complaints.end()
    complaints.tell("A commit failed", OSError("disk I/O error"))
    assert caplog.messages == [
        "A commit failed: disk I/O error",
        "A commit failed: disk is full",
        "It is over",
        "A commit failed: disk I/O error",
    ]
    assert {(record.levelno, record.exc_info) for record in caplog.records} == {
        (logging.WARNING, None)
    }


def test_the_words_of_an_error_are_the_drivers_alone() -> None:
    error = OperationalError("INSERT INTO t VALUES (?)", ["Ada"], OSError("disk I/O error"))
    assert words_of(error) == "disk I/O error"
