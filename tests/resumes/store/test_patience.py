import itertools
import time

import pytest

from resumes.store.patience import keep_trying


class Failing:
    """Fails so often before it gives how often it was tried."""

    def __init__(self, times: int, error: Exception) -> None:
        self.times = times
        self.error = error
        self.tried_at: list[float] = []

    def __call__(self) -> int:
        self.tried_at.append(time.monotonic())
        if len(self.tried_at) <= self.times:
            raise self.error
        return len(self.tried_at)


def is_busy(error: Exception) -> bool:
    return isinstance(error, BlockingIOError)


def test_what_passes_is_tried_until_it_has_passed() -> None:
    action = Failing(3, BlockingIOError())
    assert keep_trying(action, is_passing=is_busy, within_s=20, pauses_s=(0.001,)) == 4


def test_what_does_not_pass_in_time_is_raised() -> None:
    action = Failing(10**9, BlockingIOError())
    with pytest.raises(BlockingIOError):
        keep_trying(action, is_passing=is_busy, within_s=0.02, pauses_s=(0.001,))
    assert len(action.tried_at) > 1


def test_without_time_there_is_one_try() -> None:
    action = Failing(1, BlockingIOError())
    with pytest.raises(BlockingIOError):
        keep_trying(action, is_passing=is_busy, within_s=0, pauses_s=(0.001,))
    assert len(action.tried_at) == 1


def test_any_other_error_is_raised_at_once() -> None:
    action = Failing(1, PermissionError())
    with pytest.raises(PermissionError):
        keep_trying(action, is_passing=is_busy, within_s=20, pauses_s=(0.001,))
    assert len(action.tried_at) == 1


def test_the_last_pause_goes_on() -> None:
    action = Failing(4, BlockingIOError())
    keep_trying(action, is_passing=is_busy, within_s=20, pauses_s=(0.0, 0.02))
    times = action.tried_at
    waited_s = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert min(waited_s[1:]) >= 0.02
