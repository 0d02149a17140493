"""GET /metrics, in the Prometheus text format."""

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from resumes.store import Store, accounts, importers
from resumes.store.importers import State
from resumes.store.ledger import FileOutcome
from server.exposition import KEEP_S, StoreFigures
from tests.resumes.store.builders import a_file, an_importer, lose_table
from tests.server.builders import Client, SteppingClock, a_resume

Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


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


def test_errors_have_a_series_before_the_first_of_them(client: Client) -> None:
    values = scrape(client)

    for status in ("500", "503"):
        labels = {"operation": "create", "status": status}
        assert value(values, "resumes_requests_total", **labels) == 0


def test_it_says_which_version_of_the_format_it_is(client: Client) -> None:
    answer = client.request("GET", "/metrics", headers={})

    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Request-Id"]


def test_requests_are_told_by_operation_and_status(client: Client) -> None:
    client.create(a_resume())
    client.page()
    client.page("limit=x")
    client.request("GET", "/nowhere", headers={})

    told = scrape(client)

    requests = "resumes_requests_total"
    assert value(told, requests, operation="create", status="201") == 1
    assert value(told, requests, operation="list", status="200") == 1
    assert value(told, requests, operation="list", status="400") == 1
    assert value(told, requests, operation="other", status="404") == 1
    durations = "resumes_request_duration_seconds"
    assert value(told, f"{durations}_count", operation="list") == 2
    assert value(told, f"{durations}_bucket", operation="list", le="+Inf") == 2
    assert 0 < value(told, f"{durations}_sum", operation="list") < 10
    assert value(told, "resumes_requests_in_flight") == 1  # this one


def test_buckets_count_all_that_is_below_them(client: Client) -> None:
    client.page()

    told = scrape(client)

    name = "resumes_request_duration_seconds_bucket"
    buckets = {
        float(dict(labels)["le"]): count
        for (found, labels), count in told.items()
        if found == name and ("operation", "list") in labels
    }
    counts = [count for _, count in sorted(buckets.items())]
    assert counts == sorted(counts)
    assert counts[-1] == 1
    assert min(buckets) == 0.001
    assert max(buckets) == float("inf")


def test_refusals_for_a_full_account_are_told(free_client: Client) -> None:
    for _ in range(7):
        free_client.create(a_resume())

    assert value(scrape(free_client), "resumes_quota_refusals_total") == 2


def test_commits_are_told(client: Client) -> None:
    client.create(a_resume())

    def is_told() -> bool:
        told = scrape(client)
        return value(told, "resumes_commit_writes_sum") >= 2  # the resume, the key's use

    for _ in range(100):
        if is_told():
            break
    told = scrape(client)
    assert is_told()
    assert value(told, "resumes_commit_duration_seconds_count") >= 1
    assert value(told, "resumes_writes_waiting") == 0


def test_it_is_told_what_runs_and_what_the_system_knows_of_it(client: Client, store: Store) -> None:
    told = scrape(client)

    (build,) = [dict(labels) for name, labels in told if name == "resumes_build_info"]
    engine = {"sqlite"} if store.path is not None else {"engine"}
    assert set(build) == {"version", "python"} | engine
    assert value(told, "process_resident_memory_bytes") > 1_000_000
    assert value(told, "resumes_connections") == 0
    assert value(told, "resumes_log_lines_dropped_total") == 0


def test_files_and_importers_are_told(client: Client, store: Store, clock: SteppingClock) -> None:
    ana = accounts.create_account(store, "ana")
    a_file(store, ana, "1" * 24)
    a_file(store, ana, "2" * 24, FileOutcome.HELD, reason="quota_reached")
    importers.announce(store, an_importer("1" * 24, waiting=5))
    clock.advance(importers.LIVE_S)
    importers.announce(store, an_importer("2" * 24, waiting=3, state=State.DEGRADED))

    told = scrape(client)

    files = "resumes_import_files"
    assert value(told, files, outcome="done", reason="") == 0
    assert value(told, files, outcome="failed", reason="invalid_json") == 1
    assert value(told, files, outcome="held", reason="quota_reached") == 1
    states = {state: value(told, "resumes_importers", state=state) for state in [*State, "silent"]}
    assert states == {"ok": 0, "polling": 0, "degraded": 1, "silent": 1}
    assert value(told, "resumes_import_files_waiting") == 3


def test_files_that_two_importers_of_a_folder_see_are_told_once(
    client: Client, store: Store
) -> None:
    for digit in "12":
        importers.announce(store, an_importer(digit * 24, waiting=12))

    assert value(scrape(client), "resumes_import_files_waiting") == 12


def test_it_names_nobody(client: Client, store: Store) -> None:
    ana = accounts.create_account(store, "ana-example")
    a_file(store, ana, "1" * 24, root="/srv/secret")
    importers.announce(store, an_importer(root="/srv/secret"))
    client.create(a_resume("Ada Example"))

    text = client.request("GET", "/metrics", headers={}).text

    for planted in ("example", "Example", "ada", "secret", client.key, ana.id, "/srv"):
        assert planted not in text


def test_without_a_store_what_it_knows_is_missing_and_the_rest_is_told(
    client: Client, store: Store
) -> None:
    lose_table(store, "imported_files")

    told = scrape(client)

    assert not [name for name, _ in told if name == "resumes_import_files"]
    assert value(told, "resumes_requests_in_flight") == 1


class Seconds:
    """A clock whose every reading is a little later."""

    def __init__(self, step_s: float) -> None:
        self.now_s = 0.0
        self.step_s = step_s

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


@pytest.mark.parametrize(("step_s", "kept_s"), [(0.0, KEEP_S), (1.0, 100.0)])
def test_what_the_store_knows_is_kept_and_longer_when_it_was_slow_to_tell(
    store: Store, step_s: float, kept_s: float
) -> None:
    clock = Seconds(step_s)
    kept = StoreFigures(store, clock=clock)
    ana = accounts.create_account(store, "ana")

    async def look() -> None:
        await kept.refresh()
        a_file(store, ana, "1" * 24)
        read_at_s = clock.now_s
        clock.step_s = 0.0
        clock.now_s = read_at_s + kept_s - 0.5
        await kept.refresh()
        assert len(kept.tallies) == 1

        clock.now_s = read_at_s + kept_s
        await kept.refresh()
        assert len(kept.tallies) == 2
        await kept.close()

    asyncio.run(look())
