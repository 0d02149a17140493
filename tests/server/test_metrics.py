"""Counting, in places that processes add up."""

import pytest

from server.counters import Counters
from server.metrics import OPERATIONS, OTHERS, PLACES, SECONDS, STATUSES, WRITES, Metrics


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(Counters.alone(PLACES.size))


def requests(metrics: Metrics, operation: str, status: int) -> float:
    at = STATUSES.index(status) if status in STATUSES else OTHERS
    return metrics.counters.sums()[PLACES.requests_of(OPERATIONS.index(operation), at)]


def test_every_place_is_for_one_thing() -> None:
    taken = [PLACES.started, PLACES.connections, PLACES.waiting_writes, PLACES.dropped_lines]
    for operation in range(len(OPERATIONS)):
        taken += [PLACES.requests_of(operation, at) for at in range(OTHERS + 1)]
    for spread in [*PLACES.durations, PLACES.commits, PLACES.batches]:
        taken += range(spread.at, spread.end)

    assert sorted(taken) == list(range(PLACES.size))


def test_requests_are_counted_by_operation_and_status(metrics: Metrics) -> None:
    for operation, status in (("list", 200), ("list", 200), ("create", 403), ("list", 500)):
        metrics.begin()
        metrics.end(operation, status, 0.002)

    assert requests(metrics, "list", 200) == 2
    assert requests(metrics, "create", 403) == 1
    assert requests(metrics, "list", 500) == 1
    assert metrics.counters.sums()[PLACES.started] == 4


def test_what_has_no_place_of_its_own_is_counted_with_the_others(metrics: Metrics) -> None:
    metrics.end("strange", 401, 0.0)
    metrics.end("list", 0, 0.0)
    metrics.end("list", 418, 0.0)

    assert requests(metrics, "", 401) == 1
    assert requests(metrics, "list", 418) == 2


@pytest.mark.parametrize(
    ("took_s", "bucket"), [(0.0, 0), (0.001, 0), (0.0011, 1), (10.0, 12), (11.0, 13)]
)
def test_a_duration_counts_for_the_first_bound_that_it_does_not_exceed(
    metrics: Metrics, took_s: float, bucket: int
) -> None:
    metrics.end("create", 201, took_s)

    spread = PLACES.durations[OPERATIONS.index("create")]
    sums = metrics.counters.sums()
    counted = [int(sums[spread.at + at]) for at in range(len(SECONDS) + 1)]
    assert counted == [int(at == bucket) for at in range(len(SECONDS) + 1)]
    assert sums[spread.sum_at] == took_s


def test_batches_are_counted_by_size_and_time(metrics: Metrics) -> None:
    metrics.observe_batch(3, 0.5)
    metrics.observe_batch(512, 0.25)

    sums = metrics.counters.sums()
    assert sums[PLACES.batches.at + WRITES.index(4)] == 1
    assert sums[PLACES.batches.at + WRITES.index(512)] == 1
    assert sums[PLACES.batches.sum_at] == 515
    assert sums[PLACES.commits.sum_at] == 0.75


def test_a_successor_goes_on_with_what_was_counted_and_not_with_what_was_so(
    metrics: Metrics,
) -> None:
    metrics.begin()
    metrics.end("list", 200, 0.001)
    metrics.begin()  # never to be over
    metrics.put(connections=3, waiting_writes=2, dropped_lines=5)

    successor = Metrics(metrics.counters)
    successor.put(connections=0, waiting_writes=0, dropped_lines=1)

    sums = metrics.counters.sums()
    assert requests(successor, "list", 200) == 1
    assert sums[PLACES.started] == 1
    assert sums[PLACES.connections] == 0
    assert sums[PLACES.dropped_lines] == 6
