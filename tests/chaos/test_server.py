"""A server that is stopped under load, or whose keys end while they are used."""

from pathlib import Path
from typing import Final

import pytest

from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.support.api import ended_keys, load
from tests.support.api.scenes import Scene
from tests.support.api.stopping import GRACE_S, check_stops, stop_under_load

REVOKED: Final = 4
STOPS: Final = 5
"""For one worker, and as often for two."""


@pytest.mark.chaos(
    29,
    fault="a key is revoked or rotated, or its account closed, while it is used",
    promise="from that moment on no process accepts it",
)
def test_a_key_that_ended_is_accepted_nowhere(tmp_path: Path, figures: Figures) -> None:
    """Keys that several connections to each of two workers use, revoked by commands one by one."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    ends = [ended_keys.revoke] * REVOKED + [ended_keys.rotate, ended_keys.close_account]
    before = after = accepted = 0
    with scene.served("--workers", "2") as server:
        for number, end in enumerate(ends):
            account = f"account-{number}"
            _, key = scene.add_account(account)
            with ended_keys.sending(server, key) as clients:
                ended = end(scene, account)
                ended_keys.wait_for_requests_after(clients, ended.at_s)
            answered = [one for one in load.attempts_of(clients) if one.answer]
            late = [one for one in answered if one.began_s > ended.at_s]
            before += len(answered) - len(late)
            after += len(late)
            accepted += sum(one.answer is not None and one.answer.status != 401 for one in late)

    figures["keys"] = len(ends)
    figures["requests_before"] = before
    figures["requests_after"] = after
    figures["accepted_after"] = accepted
    assert accepted == 0


@pytest.mark.chaos(
    33,
    fault="SIGTERM under load",
    promise="what was accepted is answered, without a 5xx, and the server ends in time",
)
def test_a_stop_answers_what_was_accepted(tmp_path: Path, figures: Figures) -> None:
    """SIGTERM while 4 clients write and 2 read, 5 times to one worker and 5 times to two."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    stops = [stop_under_load(scene, workers) for workers in ("1", "2") * STOPS]
    attempts = [one for stop in stops for one in stop.attempts]
    figures["stops"] = len(stops)
    figures["requests"] = len(attempts)
    figures["answers_5xx"] = sum(one.answer.status >= 500 for one in attempts if one.answer)
    figures["accepted_and_unanswered"] = sum(
        one.was_known and one.lost is not None for one in attempts
    )
    with scene.store() as store:
        held = {resume_id for resume_id, _ in checker.iter_stored(store)}
    figures["lost"] = len(checker.told_of(attempts).keys() - held)
    figures["longest_stop_s"] = max(stop.took_s for stop in stops)
    assert figures["longest_stop_s"] < GRACE_S
    assert figures["accepted_and_unanswered"] == figures["lost"] == 0
    assert checker.count_out_of_order(attempts) == 0
    check_stops(scene, stops)
