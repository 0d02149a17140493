"""Cursors that are no good: what they show is one's own, or nothing."""

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote

import pytest

from tests.chaos.campaign import Figures
from tests.support.api import load
from tests.support.api.load import RESUMES, Answer, Wire
from tests.support.api.scenes import Scene

FORGED: Final = 100_000
AT_ONCE: Final = 100
"""So many are sent before the answers are read."""

ENTRIES: Final = 30


@pytest.mark.chaos(
    28,
    fault="cursors that are forged, foreign or broken",
    promise="400, or the account's own entries after the cursor; never one of another account",
)
def test_a_forged_cursor_shows_nothing_foreign(
    tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """100,000 random queries with IDs of this and other accounts, cut, changed or doubled, and with
    noise."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    _, eve = scene.add_account("eve")
    with scene.served() as server, Wire(server.url) as wire:
        foreign = create(wire, scene.key)
        mine = create(wire, eve)
        foreign += create(wire, scene.key)
        shown = re.compile("|".join(foreign).encode())
        statuses: Counter[int] = Counter()
        leaks = shown_entries = 0
        for _ in range(FORGED // AT_ONCE):
            queries = [forged(seed, foreign, mine) for _ in range(AT_ONCE)]
            wire.send(b"".join(a_list(eve, query) for query in queries))
            for query in queries:
                answer = wire.read_answer()
                statuses[answer.status] += 1
                leaks += shown.search(answer.body) is not None
                assert ids_in(answer) == expected(query, answer, mine), (query, answer)
                shown_entries += len(ids_in(answer))

    figures["forged"] = statuses.total()
    figures["refused"] = statuses[400]
    figures["own_entries"] = shown_entries
    figures["foreign_entries"] = leaks
    assert leaks == 0
    assert shown_entries > FORGED // 10
    assert statuses.keys() == {200, 400}


def create(wire: Wire, key: str) -> list[str]:
    """The ids of some new resumes."""
    create = load.a_request(key, "POST", body=load.a_body("resume"))
    return [str(wire.call(create).json["id"]) for _ in range(ENTRIES)]


def a_list(key: str, query: str) -> bytes:
    """A request for a page."""
    return load.a_request(key, path=f"{RESUMES}?{query}")


def forged(chance: random.Random, foreign: list[str], mine: list[str]) -> str:
    """A query that a client without good intentions, or with a broken program, sends."""
    theirs, own = chance.choice(foreign), chance.choice(mine)
    noise = chance.randbytes(chance.randrange(30)).decode("latin-1")
    at = chance.randrange(24)
    cursor = chance.choice(
        [
            theirs,
            own,
            theirs[:at],
            theirs[:at] + chance.choice("0f/:.g%'\0 \n") + theirs[at + 1 :],
            theirs.upper(),
            theirs + own,
            f"{theirs}' OR '1'='1",
            f"{own}%",
            f"{chance.getrandbits(128):032x}",
            f"{chance.getrandbits(96):024x}",
            "f" * chance.choice((23, 24, 25, 4_000)),
            noise,
        ]
    )
    more = ["limit=2", f"limit={chance.randrange(-9, 10**9)}", f"cursor={theirs}", f"id={theirs}"]
    more += ["account=ada", "accountId=ada", "limit=", "filter=a", f"after={theirs}"]
    fields = [f"cursor={quote(cursor.encode('latin-1'), safe='')}", "limit=3", chance.choice(more)]
    return "&".join(fields[: chance.choice((2, 2, 3))])


def ids_in(answer: Answer) -> list[str]:
    """What a page holds; none on a refusal, which has the one shape."""
    said: dict[str, Any] = answer.json
    if answer.status != 200:
        assert said["status"] == answer.status == 400
        return []
    return [entry["id"] for entry in said["resumes"]]


def expected(query: str, answer: Answer, mine: list[str]) -> list[str]:
    """What the page of a query has to hold, if it is one: the first of one's own behind the cursor."""
    if answer.status != 200:
        return []
    fields = parse_qs(query, keep_blank_values=True)
    (cursor,), (limit,) = fields["cursor"], fields["limit"]
    return [resume_id for resume_id in mine if resume_id > cursor][: int(limit)]
