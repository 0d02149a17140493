import asyncio

import pytest

from server.outgoing import Outgoing
from server.patience import BODY_BYTES_PER_S, LINGER_S, STOP_S, Patience, Reading, Verdict

CLIENT_S = 10.0
IDLE_S = 75.0
START_S = 1_000.0


@pytest.fixture
def patience() -> Patience:
    """A connection that was made at START_S."""
    return Patience(START_S, CLIENT_S, IDLE_S)


def judged(patience: Patience, after_s: float, reading: Reading, body_bytes: int = 0) -> Verdict:
    return patience.judge(START_S + after_s, reading, body_bytes)


@pytest.mark.parametrize(
    ("after_s", "reading", "verdict"),
    [
        (9.9, Reading.BETWEEN, Verdict.STAYS),
        (10, Reading.BETWEEN, Verdict.CLOSED),
        (9.9, Reading.HEAD, Verdict.STAYS),
        (10, Reading.HEAD, Verdict.LATE),
    ],
)
def test_the_first_head_is_whole_10_s_after_the_connection_was_made(
    patience: Patience, after_s: float, reading: Reading, verdict: Verdict
) -> None:
    assert judged(patience, after_s, reading) is verdict


@pytest.mark.parametrize(
    ("after_s", "reading", "verdict"),
    [
        (74.9, Reading.BETWEEN, Verdict.STAYS),
        (75, Reading.BETWEEN, Verdict.CLOSED),
        (10, Reading.HEAD, Verdict.LATE),
        (LINGER_S - 0.1, Reading.OVER, Verdict.STAYS),
        (LINGER_S, Reading.OVER, Verdict.CUT),
    ],
)
def test_later_everything_has_its_time_since_it_began(
    patience: Patience, after_s: float, reading: Reading, verdict: Verdict
) -> None:
    patience.begin(START_S + 500)

    assert judged(patience, 500 + after_s, reading) is verdict


def test_a_body_that_stands_still_for_10_s_is_late(patience: Patience) -> None:
    patience.begin(START_S)
    many_bytes = 1_000 * BODY_BYTES_PER_S

    assert judged(patience, 5, Reading.BODY, many_bytes) is Verdict.STAYS
    assert judged(patience, 14.9, Reading.BODY, many_bytes) is Verdict.STAYS
    assert judged(patience, 15, Reading.BODY, many_bytes) is Verdict.LATE


def test_a_body_that_trickles_is_late(patience: Patience) -> None:
    patience.begin(START_S)

    verdicts = [judged(patience, second, Reading.BODY, second) for second in range(1, 12)]

    assert verdicts == [Verdict.STAYS] * 10 + [Verdict.LATE]


def test_2_mib_at_36_kib_a_second_are_not_late(patience: Patience) -> None:
    patience.begin(START_S)
    per_second = 36 * 1024

    for second in range(1, 2 * 1024 * 1024 // per_second + 1):
        assert judged(patience, second, Reading.BODY, second * per_second) is Verdict.STAYS


@pytest.mark.parametrize("reading", [Reading.HEAD, Reading.BODY])
def test_half_a_request_has_2_s_when_the_service_stops(
    patience: Patience, reading: Reading
) -> None:
    patience.begin(START_S)
    patience.stop(START_S)

    assert judged(patience, STOP_S - 0.1, reading, 1) is Verdict.STAYS
    assert judged(patience, STOP_S, reading, 2) is Verdict.STOPPED


def test_when_the_service_stops_a_refused_client_is_not_waited_for(patience: Patience) -> None:
    assert judged(patience, 0, Reading.OVER) is Verdict.STAYS

    patience.stop(START_S)

    assert judged(patience, 0, Reading.OVER) is Verdict.CUT


class Pipe:
    """A transport whose client takes what it is told to have taken."""

    def __init__(self) -> None:
        self.unsent_bytes = 0

    def write(self, data: bytes) -> None:
        self.unsent_bytes += len(data)

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes


def test_a_client_that_reads_next_to_nothing_for_10_s_is_stuck(patience: Patience) -> None:
    async def run() -> list[bool]:
        pipe = Pipe()
        outgoing = Outgoing(pipe, asyncio.get_running_loop())
        outgoing.write(b"x" * 1_000_000)
        await asyncio.sleep(0)
        found = [patience.is_stuck(START_S, outgoing)]
        pipe.unsent_bytes -= 41_000
        found.append(patience.is_stuck(START_S + 9, outgoing))
        pipe.unsent_bytes -= 40_000
        found.append(patience.is_stuck(START_S + 18.9, outgoing))
        found.append(patience.is_stuck(START_S + 19, outgoing))
        pipe.unsent_bytes = 0
        found.append(patience.is_stuck(START_S + 50, outgoing))
        return found

    assert asyncio.run(run()) == [False, False, False, True, False]
