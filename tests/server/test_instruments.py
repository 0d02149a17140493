"""What a server shows of itself, put together."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from resumes.log_writer import LogWriter
from resumes.settings import LogFormat, Settings
from resumes.store import Store, listing
from server.app import create_app
from server.counters import Counters
from server.instruments import Instruments
from server.metrics import PLACES
from tests.server.builders import Client, a_resume


def test_every_request_is_logged_with_whose_key_it_came(
    settings: Settings, store: Store, a_key: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    log = LogWriter(descriptor)
    changed = settings.model_copy(update={"log_format": LogFormat.JSON})
    client = Client(create_app(changed, store, log=log), a_key("ada"))

    created = client.create(a_resume())
    client.get("unknown")
    client.request("GET", "/healthz", headers={})
    client.close()
    os.close(descriptor)

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    said = [(line["operation"], line["status"], line["account"] is None) for line in lines]
    assert said == [("create", 201, False), ("get", 404, False), ("health", 200, True)]
    assert lines[0]["requestId"] == created.headers["X-Request-Id"]


def test_a_request_that_fails_is_counted_as_failed(
    settings: Settings, store: Store, a_key: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError

    monkeypatch.setattr(listing, "list_page", fail)
    client = Client(create_app(settings, store), a_key("ada"))

    client.page()

    text = client.request("GET", "/metrics", headers={}).text
    assert 'resumes_requests_total{operation="list",status="500"} 1.0' in text
    assert "resumes_requests_in_flight 1.0" in text
    client.close()


def test_other_processes_know_of_this_ones_moment(settings: Settings, store: Store) -> None:
    counters = Counters.alone(PLACES.size)
    instruments = Instruments(settings, store, connections="abc", counters=counters)

    async def sample() -> None:
        async with instruments.sampling(), asyncio.timeout(5):
            while not counters.sums()[PLACES.connections]:
                await asyncio.sleep(0)
        await instruments.close()

    asyncio.run(sample())

    assert counters.sums()[PLACES.connections] == 3


def test_a_worker_among_several_does_not_tell_of_its_process(
    settings: Settings, store: Store, a_key: Callable[..., str]
) -> None:
    counters = Counters.alone(PLACES.size)
    client = Client(create_app(settings, store, counters=counters), a_key("ada"))

    text = client.request("GET", "/metrics", headers={}).text

    assert "resumes_build_info" in text
    assert "process_" not in text
    client.close()
