"""Writes on their way to the engine."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Connection

from resumes.store import Store
from resumes.store.creating import Creation
from resumes.store.writes import ThreadMailbox, Write, apply_all, deliver, proved_by, was_committed

pytestmark = pytest.mark.engines


class Mailbox:
    def __init__(self) -> None:
        self.delivered: list[list[Any]] = []

    def deliver(self, writes: Sequence[Write]) -> None:
        self.delivered.append([write.request for write in writes])


def a_write(apply: Any, request: Any = None, mailbox: Any = None) -> Write:
    return Write(apply, request, deadline=0, mailbox=mailbox or ThreadMailbox(), waiter=None)


def doubled(_: Connection, requests: Sequence[int]) -> list[int]:
    return [2 * request for request in requests]


def counted(_: Connection, requests: Sequence[int]) -> list[int]:
    return [len(requests)] * len(requests)


def test_requests_of_one_kind_that_meet_are_applied_in_one_call(store: Store) -> None:
    batch = [a_write(counted, 1), a_write(counted, 2), a_write(doubled, 3), a_write(counted, 4)]
    with store.read() as connection:
        assert apply_all(connection, batch) == [2, 2, 6, 1]


def test_a_write_that_answers_too_few_is_a_defect(store: Store) -> None:
    def nothing(_: Connection, requests: Sequence[int]) -> list[int]:
        return []

    with store.read() as connection, pytest.raises(AssertionError, match="one result for each"):
        apply_all(connection, [a_write(nothing, 1)])


def test_a_request_says_whose_it_is_or_stands_alone() -> None:
    assert a_write(doubled, Creation("a" * 16, (), 1)).account_id == "a" * 16
    assert a_write(doubled, 1).account_id is None


def test_each_mailbox_has_its_writes_in_one_call() -> None:
    first, second = Mailbox(), Mailbox()
    deliver([a_write(doubled, number, (first, second)[number % 2]) for number in range(5)])
    assert (first.delivered, second.delivered) == ([[0, 2, 4]], [[1, 3]])


def test_the_first_that_can_tell_says_whether_a_batch_was_committed(store: Store) -> None:
    asked: list[int] = []

    def proof(_: Connection, requests: Sequence[int], results: Sequence[int]) -> bool | None:
        asked.extend(requests)
        return True if requests[0] == 2 else None

    @proved_by(proof)
    def provable(_: Connection, requests: Sequence[int]) -> Sequence[int]:
        return requests

    batch = [a_write(doubled, 0), *(a_write(provable, number) for number in (1, 2, 3))]
    with store.read() as connection:
        assert was_committed(connection, batch, [0, 1, 2, 3]) is True
        assert asked == [1, 2]
        assert was_committed(connection, batch[:2], [0, 1]) is None
