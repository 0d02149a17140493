import time
from datetime import UTC, datetime, timedelta

from resumes.clock import later, minute, system_clock, timestamp


def test_a_timestamp_has_the_form_that_the_list_shows() -> None:
    moment = datetime(2026, 1, 31, 9, 0, tzinfo=UTC)
    assert timestamp(int(moment.timestamp() * 1_000_000)) == "2026-01-31T09:00:00.000Z"


def test_a_timestamp_is_cut_to_milliseconds_never_rounded_up() -> None:
    assert timestamp(999_999) == "1970-01-01T00:00:00.999Z"


def test_timestamps_compare_as_text() -> None:
    moments = [0, 1_000, 999_000, 1_000_000, 10**15, 2 * 10**15]
    texts = [timestamp(moment) for moment in moments]
    assert texts == sorted(texts)


def test_people_read_an_instant_to_the_minute() -> None:
    assert minute("2026-01-31T09:05:59.999Z") == "2026-01-31 09:05"


def test_later_and_earlier() -> None:
    assert later(0, timedelta(minutes=1)) == "1970-01-01T00:01:00.000Z"
    assert later(60_000_000, timedelta(minutes=-1)) == "1970-01-01T00:00:00.000Z"


def test_the_system_clock_counts_microseconds() -> None:
    assert abs(system_clock() - time.time() * 1e6) < 1e6
