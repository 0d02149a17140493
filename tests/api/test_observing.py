"""What a server shows of itself: health, metrics, and a line for each request."""

import asyncio
import contextlib
import json
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from resumes.log_writer import LogWriter
from resumes.settings import LogFormat
from resumes.store import accounts, api_keys, import_ledger, importers, open_store, plans
from resumes.store.import_ledger import Analysis, ClaimedFile, FileOutcome, Items, Verdict
from resumes.store.importers import ImporterState
from resumes.store.retention import iter_erased
from server.metrics import CACHE_S, Exposition, Metrics
from tests.support.api.builders import RESUMES, Client, a_body, a_resume
from tests.support.api.serving import Place, a_connection, a_head, exchange, serve_here
from tests.support.store.builders import (
    a_file,
    add_resumes,
    an_importer,
    execute,
    hold_writer,
    lose_table,
)
from tests.support.waiting import wait_until

WELL = {"read": "ok", "write": "ok", "disk": "ok"}
Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def own(a_place: Callable[..., Place]) -> tuple[Place, Client]:
    """A server whose store may be harmed, and a client of it."""
    place = a_place()
    return place, place.client()


# Health


def ask(client: Client, path: str) -> tuple[int, object]:
    """The status and the body of an answer to somebody without a key."""
    answer = client.request("GET", path, headers={})
    return answer.status_code, answer.json()


def test_a_store_that_takes_no_writes_is_not_ready_and_the_process_alive(
    own: tuple[Place, Client],
) -> None:
    place, client = own
    for thread in place.store.write_queue.threads:
        place.store.threads.remove(thread)  # without it the service would end
    place.store.write_queue.close()

    answer = client.request("GET", "/readyz", headers={})

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json() == {"status": "not ready", "checks": WELL | {"write": "failed"}}
    assert ask(client, "/healthz")[0] == 200


def test_a_store_that_is_slow_to_write_or_read_is_not_waited_for(
    own: tuple[Place, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.health.PROBE_S", 1.0)
    monkeypatch.setattr("server.health.CACHE_S", 0.0)
    place, client = own
    go_on, holder = hold_writer(place.store)
    expected = {"status": "not ready", "checks": WELL | {"write": "failed"}}
    assert ask(client, "/readyz") == (503, expected)
    assert client.page().status_code == 200
    go_on.set()
    holder.join()

    go_on.clear()
    monkeypatch.setattr(type(place.store), "ping", lambda _: go_on.wait(60))
    expected = {"status": "not ready", "checks": WELL | {"read": "failed"}}
    assert ask(client, "/readyz") == (503, expected)
    go_on.set()


def test_whoever_asks_how_often_it_looks_once_a_second(
    own: tuple[Place, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, client = own
    now, looks = [0.0], list[float]()
    monkeypatch.setattr("server.health.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(type(place.store), "ping", lambda _: looks.append(now[0]))
    for now[0] in (0.0, 0.9, 1.0, 1.9, 2.0):
        with ThreadPoolExecutor(5) as threads:
            answers = [*threads.map(lambda _: ask(client, "/readyz"), range(10))]
        assert {status for status, _ in answers} == {200}
    assert looks == [0.0, 1.0, 2.0]


# Metrics


def scrape(client: Client) -> Values:
    """Every value by name and labels."""
    answer = client.request("GET", "/metrics", headers={})
    assert answer.status_code == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(values: Values, name: str, **labels: str) -> float:
    return values[name, frozenset(labels.items())]


def test_it_says_which_version_of_the_format_it_is_and_what_runs(client: Client) -> None:
    answer = client.request("GET", "/metrics", headers={})

    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    told = scrape(client)
    (build,) = [dict(labels) for name, labels in told if name == "resumes_build_info"]
    assert set(build) == {"version", "python", "sqlite"}
    assert value(told, "process_resident_memory_bytes") > 1_000_000
    assert value(told, "resumes_connections") >= 1
    assert value(told, "resumes_log_lines_dropped_total") == 0
    for status in ("500", "503"):  # before the first of them
        labels = {"operation": "create", "status": status}
        assert value(told, "resumes_requests_total", **labels) == 0


def test_requests_are_told_by_operation_status_and_time(own: tuple[Place, Client]) -> None:
    place, client = own
    client.create(a_resume())
    client.page()
    client.page("limit=x")
    client.get("x")
    client.delete("x")
    client.put("x", a_body())
    client.request("GET", "/nowhere", headers={})
    client.request("PUT")
    client.request("GET", headers={"Authorization": "Bearer wrong"})
    exchange(place.url, b"GARBAGE\r\n\r\n")

    told = scrape(client)

    counted = [
        (dict(labels)["operation"], dict(labels)["status"], count)
        for (name, labels), count in told.items()
        if name == "resumes_requests_total" and count
    ]
    assert sorted(counted) == [
        ("create", "201", 1), ("delete", "404", 1), ("get", "404", 1), ("list", "200", 1),
        ("list", "400", 1), ("other", "401", 1), ("other", "404", 1), ("other", "405", 1),
        ("update", "404", 1),
    ]  # fmt: skip
    durations = "resumes_request_duration_seconds"
    assert value(told, f"{durations}_count", operation="list") == 2
    assert 0 < value(told, f"{durations}_sum", operation="list") < 10
    buckets = {
        float(dict(labels)["le"]): count
        for (name, labels), count in told.items()
        if name == f"{durations}_bucket" and ("operation", "list") in labels
    }
    counts = [count for _, count in sorted(buckets.items())]
    assert (counts, counts[-1]) == (sorted(counts), 2)
    assert (min(buckets), max(buckets)) == (0.001, float("inf"))
    assert value(told, "resumes_requests_in_flight") == 1  # this one


def test_refusals_for_a_full_account_and_commits_are_told(own: tuple[Place, Client]) -> None:
    place, client = own
    free = place.client("free")
    for _ in range(7):
        free.create(a_resume())

    wait_until(lambda: value(scrape(client), "resumes_commit_writes_sum") >= 6)  # a use of the key

    told = scrape(client)
    assert value(told, "resumes_quota_refusals_total") == 2
    assert value(told, "resumes_commit_duration_seconds_count") >= 1
    wait_until(lambda: value(scrape(client), "resumes_writes_waiting") == 0)


def test_files_and_importers_are_told_once_for_each_folder(own: tuple[Place, Client]) -> None:
    place, client = own
    ana = accounts.create_account(place.store, "ana")
    a_file(place.store, ana, "1" * 24)
    a_file(place.store, ana, "2" * 24, FileOutcome.HELD, reason="quota_reached")
    importers.register(place.store, an_importer("1" * 24, root="/srv/old", waiting=5))
    importers.register(place.store, an_importer("4" * 24, waiting=5))  # killed and restarted
    recreated = an_importer("5" * 24, waiting=5)  # in a container, which now has another name
    importers.register(place.store, recreated.model_copy(update={"host": "before"}))
    place.clock.advance(importers.LIVE_S)
    for digit in "23":
        importers.register(
            place.store, an_importer(digit * 24, waiting=3, state=ImporterState.DEGRADED)
        )

    told = scrape(client)

    files = "resumes_import_files"
    assert value(told, files, outcome="done", reason="") == 0
    assert value(told, files, outcome="failed", reason="invalid_json") == 1
    assert value(told, files, outcome="held", reason="quota_reached") == 1
    states = {
        state: value(told, "resumes_importers", state=state) for state in [*ImporterState, "silent"]
    }
    assert states == {"ok": 0, "polling": 0, "degraded": 2, "silent": 1}
    assert value(told, "resumes_import_files_waiting") == 3


def test_resumes_that_are_due_and_that_were_erased_are_counted(own: tuple[Place, Client]) -> None:
    place, client = own
    plans.set_plan_limits(place.store, plans.PlanChange("business", None, keep_days=30))
    old, older = (
        accounts.create_account(place.store, name, plan="business") for name in ("old", "older")
    )
    add_resumes(place.store, old, 2)
    add_resumes(place.store, older, 3)
    place.clock.advance(31 * 86_400)
    assert sum(iter_erased(place.store, older.id)) == 3

    told = scrape(client)

    assert (value(told, "resumes_due"), value(told, "resumes_expired_total")) == (2, 3)


def test_times_of_the_analyzer_are_told(own: tuple[Place, Client]) -> None:
    place, client = own
    ana = accounts.create_account(place.store, "ana")
    for number, took_s in enumerate((1.5, 0.5, 9.0), 1):
        row = ClaimedFile(f"{number:024x}", "ana/cv.pdf", 9, "2027-01-15T08:00:00.000Z", b"")
        read = Items(0, 0, 0, 0, 0, analysis=Analysis("0" * 64, took_s))
        row = row._replace(items=json.dumps(read.as_json()))
        import_ledger.record(place.store, ana.id, row, Verdict(FileOutcome.FAILED, "analyzer", ""))

    told = scrape(client)

    name = "resumes_import_analysis_seconds"
    assert [value(told, name, quantile=part) for part in ("0.5", "1")] == [1.5, 9.0]


def test_metrics_name_nobody(own: tuple[Place, Client]) -> None:
    place, client = own
    ana = accounts.create_account(place.store, "ana-example")
    a_file(place.store, ana, "1" * 24, root="/srv/secret")
    importers.register(place.store, an_importer(root="/srv/secret"))
    client.create(a_resume("Ada Example"))

    text = client.request("GET", "/metrics", headers={}).text

    for planted in ("example", "Example", "ada", "secret", client.key, ana.id, "/srv"):
        assert planted not in text


def test_what_the_store_cannot_tell_is_missing_and_asked_for_again_at_once(
    own: tuple[Place, Client],
) -> None:
    place, client = own
    lose_table(place.store, "importers")
    told = scrape(client)
    assert not [name for name, _ in told if name.startswith("resumes_import")]
    assert value(told, "resumes_requests_in_flight") == 1

    execute(place.store, "ALTER TABLE elsewhere RENAME TO importers")

    assert [name for name, _ in scrape(client) if name.startswith("resumes_import")]


def files_in(exposition: Exposition) -> int:
    """How many rows of files are told."""
    return {one.name: len(one.samples) for one in exposition.collect()}["resumes_import_files"]


@pytest.mark.parametrize(("step_s", "kept_s"), [(0.0, CACHE_S), (1.0, 100.0)])
def test_what_the_store_knows_is_kept_and_longer_when_it_was_slow_to_tell(
    tmp_path: Path, step_s: float, kept_s: float
) -> None:
    readings = {"now": 0.0, "step": step_s}

    def clock() -> float:
        readings["now"] += readings["step"]
        return readings["now"]

    async def look() -> None:
        with open_store(f"sqlite:///{tmp_path / 'resumes.db'}") as store:
            kept = Exposition(Metrics(), store, sample=lambda: None, clock=clock)
            ana = accounts.create_account(store, "ana")
            await kept.refresh()
            a_file(store, ana, "1" * 24)
            read_at_s, readings["step"] = readings["now"], 0.0
            for passed_s, found in ((kept_s - 0.5, 1), (kept_s, 2)):
                readings["now"] = read_at_s + passed_s
                await kept.refresh()
                assert files_in(kept) == found

    asyncio.run(look())


# A line for each request


def lines_of(tmp_path: Path, act: Callable[[Place, Client], object], **changes: Any) -> list[str]:
    """The lines that requests leave in the log."""
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    (tmp_path / "home").mkdir()
    with (
        contextlib.closing(LogWriter(descriptor)) as log,
        serve_here(tmp_path / "home", options={"log": log}, **changes) as place,
    ):
        client = place.client()
        act(place, client)
    os.close(descriptor)
    return path.read_text().splitlines()


def requests(place: Place, client: Client) -> None:
    """One with each kind of holder, and one of a stranger who writes what a log must not hold."""
    forwarded = {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"}
    mine = {"Authorization": f"Bearer {client.key}", "X-Request-Id": "mine"}
    client.request("GET", headers=mine | forwarded)
    client.get("ada@example.com?cursor=secret")
    client.request("GET", headers={"X-Request-Id": 'ada@example.com","x":"'})
    client.request("GET", "/healthz", headers={})
    head = b"ADAEXAMPLE /secret HTTP/1.1\r\nHost: example\r\nConnection: close\r\n\r\n"
    exchange(place.url, head.replace(b"ADAEXAMPLE", b"MKCOL"))


def test_a_line_of_json_says_who_asked_what_and_how_it_went(tmp_path: Path) -> None:
    held: list[str] = []

    def act(place: Place, client: Client) -> None:
        requests(place, client)
        (key,) = api_keys.list_keys(place.store)
        held.extend([accounts.get_account(place.store, client.account).id, key.id])

    lines = [json.loads(line) for line in lines_of(tmp_path, act, log_format=LogFormat.JSON)]

    assert [(line["operation"], line["status"]) for line in lines] == [
        ("list", 200), ("get", 404), ("other", 401), ("health", 200), ("other", 404),
    ]  # fmt: skip
    first = lines[0]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("at"))
    assert first.pop("ms") > 0
    assert first == {
        "level": "INFO", "logger": "resumes.access", "message": "request", "requestId": "mine",
        "method": "GET", "operation": "list", "status": 200, "account": held[0], "key": held[1],
    }  # fmt: skip
    assert [(line["account"], line["key"]) for line in lines[2:]] == [(None, None)] * 3
    assert lines[4]["method"] == "other"


def test_a_client_that_left_before_the_answer_is_told_by_a_status_of_its_own(
    tmp_path: Path,
) -> None:
    def act(place: Place, client: Client) -> None:
        with a_connection(place.url) as leaving:
            leaving.sendall(a_head(client, 999) + b"{")
            wait_until(lambda: value(scrape(client), "resumes_requests_in_flight") == 2)
        left = {"operation": "create", "status": "other"}
        wait_until(lambda: value(scrape(client), "resumes_requests_total", **left) == 1)

    lines = [json.loads(line) for line in lines_of(tmp_path, act, log_format=LogFormat.JSON)]

    assert [one["status"] for one in lines if one["operation"] == "create"] == [0]


@pytest.mark.parametrize("log_format", list(LogFormat))
def test_nothing_that_a_stranger_wrote_is_in_it(tmp_path: Path, log_format: LogFormat) -> None:
    lines = lines_of(tmp_path, requests, log_format=log_format, access_log=True)

    assert len(lines) == 5
    assert not re.search("example|secret|enh_live|MKCOL", "".join(lines), re.IGNORECASE)
    if log_format is LogFormat.TEXT:
        pattern = r"\S+Z INFO resumes\.access: request mine: GET list, status 200, [\d.]+ ms, "
        assert re.fullmatch(pattern + "account [0-9a-f]{16}, key key_[0-9a-f]{12}", lines[0])
        assert lines[4].endswith(" ms, account none, key none")


def test_requests_are_logged_as_set_or_else_in_json(tmp_path: Path) -> None:
    for chosen, log_format, count in (
        (None, "json", 1), (None, "text", 0), (True, "text", 1), (False, "json", 0),
    ):  # fmt: skip
        changes = {"access_log": chosen, "log_format": LogFormat(log_format)}
        (folder := tmp_path / f"{chosen}-{log_format}").mkdir()
        lines = lines_of(folder, lambda place, client: client.request("GET", RESUMES), **changes)
        assert len(lines) == count
