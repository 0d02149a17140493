"""Two accounts on one server: nothing that one does tells it anything of the other."""

import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.api import load
from tests.support.api.load import RESUMES, Wire
from tests.support.api.scenes import Scene

ROUNDS = 300
NEAR_S = 0.000_5
"""A median that differs by less than this on a busy machine tells nobody anything; what it was
is printed."""


BODIES = {"PUT": load.a_body("resume")}


class Tenants(NamedTuple):
    """Ids that mean different things to "eve", who asks."""

    url: str
    eve_key: str
    ada_key: str
    foreign: list[str]
    deleted: list[str]

    @property
    def unknown(self) -> list[str]:
        """Ids that nobody ever had, of the same times as the foreign ones."""
        return [f"{known[:-8]}{random.getrandbits(32):08x}" for known in self.foreign]

    def visible(self, key: str, method: str = "GET", path: str = RESUMES) -> Any:
        """All of an answer but what names the request and the moment."""
        answer = load.call(self.url, load.a_request(key, method, path, BODIES.get(method, b"")))
        hidden = {"x-request-id", "date"}
        headers = {name: value for name, value in answer.headers.items() if name not in hidden}
        body = answer.json
        body.pop("requestId", None)
        return answer.status, headers, json.dumps(body)


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    folder = tmp_path_factory.mktemp("tenants")
    scene = Scene(folder / "home", folder / "logs")
    _, eve_key = scene.add_account("eve")
    with scene.served() as server, Wire(server.url) as wire:
        body = load.a_body("resume")
        foreign, deleted = (
            [wire.call(load.a_request(key, "POST", body=body)).json["id"] for _ in range(40)]
            for key in (scene.key, eve_key)
        )
        for gone in deleted:
            answer = wire.call(load.a_request(eve_key, "DELETE", f"{RESUMES}/{gone}"))
            assert answer.status == 200
        yield Tenants(server.url, eve_key, scene.key, foreign, deleted)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_foreign_id_is_answered_as_one_that_never_was(tenants: Tenants, method: str) -> None:
    foreign, *others = (
        tenants.visible(tenants.eve_key, method, f"{RESUMES}/{ids[0]}")
        for ids in (tenants.foreign, tenants.deleted, tenants.unknown)
    )

    assert foreign[0] == 404
    assert others == [foreign, foreign]
    assert tenants.visible(tenants.ada_key, path=f"{RESUMES}/{tenants.foreign[0]}")[0] == 200


def test_a_wrong_key_is_answered_like_a_missing_one(tenants: Tenants) -> None:
    wrong = tenants.ada_key[:-1] + ("a" if tenants.ada_key[-1] != "a" else "b")
    keys = ["", "x", "enh_live_", wrong, tenants.ada_key + "a", tenants.ada_key[:-1]]

    assert len({repr(tenants.visible(key)) for key in keys}) == 1


@pytest.mark.timing
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_time_does_not_tell_a_foreign_id_from_an_unknown_one(
    tenants: Tenants, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ids: dict[str, Callable[[], str]] = {
        "foreign": lambda: random.choice(tenants.foreign),
        "deleted": lambda: random.choice(tenants.deleted),
        "unknown": lambda: random.choice(tenants.unknown),
    }
    rounds = ROUNDS if method == "GET" else ROUNDS // 3  # which goes through the write queue
    took_s: dict[str, list[float]] = {name: [] for name in ids}
    with Wire(tenants.url) as wire:
        for _ in range(rounds):
            for name in random.sample(list(ids), len(ids)):
                data = load.a_request(
                    tenants.eve_key, method, f"{RESUMES}/{ids[name]()}", BODIES.get(method, b"")
                )
                began_s = time.perf_counter()
                assert wire.call(data).status == 404
                took_s[name].append(time.perf_counter() - began_s)

    medians = {name: statistics.median(taken) for name, taken in took_s.items()}
    told = ", ".join(f"{name} {median * 1_000_000:.1f}" for name, median in medians.items())
    with capsys.disabled():
        print(f"{method}, medians in µs: {told}")  # noqa: T201  (a figure)
    assert max(medians.values()) - min(medians.values()) < NEAR_S
