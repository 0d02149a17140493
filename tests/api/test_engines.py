"""The same answers whatever keeps the store: in a file, or across a network, which threads read."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from resumes.analyzer import load_stored
from resumes.analyzer.readable import section_lines
from resumes.store import accounts, api_keys, stored_resumes
from tests.support.api.builders import RESUMES, Client, a_body, a_resume, error_of, with_section
from tests.support.api.load import a_request
from tests.support.api.serving import Place, exchange, fill_disk, serve_here
from tests.support.finding import HOSTILE_QUERIES
from tests.support.store.builders import lose_table, refusing
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engines


@pytest.fixture
def place(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A server of an empty store of the engine."""
    if not url.startswith("sqlite"):
        fill_disk(monkeypatch, tmp_path)  # a server's disk is not looked at
    with serve_here(tmp_path, url, extra_section_types=frozenset({"patents"})) as place:
        yield place


def test_a_life_of_resumes(client: Client, free_client: Client, place: Place) -> None:
    created = [client.create(a_resume(f"Ada {number}")).json()["id"] for number in range(3)]
    foreign = [free_client.create(a_resume()).json()["id"] for _ in range(5)]

    patents = with_section("patents", items=[{"number": "US 1"}])
    other = client.create(patents).json()["id"]
    assert client.get(other).json() == patents
    assert client.delete(other).json() == {"success": True}
    assert client.ids("limit=2") == created[:2]
    assert client.ids(f"cursor={created[1]}") == created[2:]
    assert client.page("limit=2").json()["pagination"] == {"cursor": created[1], "limit": 2}
    answer = client.get(created[0])
    assert (answer.status_code, answer.json()) == (200, a_resume("Ada 0"))
    for unknown in (foreign[0], "0" * 24, "x", "%FF", "%F0%9F%90%88"):
        assert error_of(client.get(unknown)) == {"error": "Resume not found", "status": 404}
        assert client.delete(unknown).status_code == 404
    assert client.delete(created[1]).json() == {"success": True}
    assert client.ids() == [created[0], created[2]]
    assert free_client.create(a_resume()).status_code == free_client.page().status_code == 403
    assert free_client.get(foreign[0]).status_code == 403
    assert free_client.delete(foreign.pop()).json() == {"success": True}  # which makes room
    foreign.append(free_client.create(a_resume()).json()["id"])
    assert client.page("limit=x").status_code == client.page("cursor=x").status_code == 400
    assert accounts.list_wrong(place.store) == []
    accounts.set_plan(place.store, free_client.account, "business")
    assert free_client.ids() == foreign


def test_a_search_and_a_list_that_begins_with_the_newest(client: Client) -> None:
    created = [client.create(a_resume(f"Ada {number}")).json()["id"] for number in range(5)]
    client.create(a_resume("Bo"))
    wait_until(lambda: client.ids("q=name:ada") == created)
    assert client.page("q=name:ada&limit=2").json()["pagination"] == {
        "cursor": created[1],
        "limit": 2,
    }
    assert client.ids(f"q=name:ada&cursor={created[1]}") == created[2:]
    assert client.ids(f"q=name:ada&sort=newest&cursor={created[2]}") == [created[1], created[0]]
    assert client.ids(f"sort=newest&cursor={created[2]}") == [created[1], created[0]]
    assert client.ids("sort=newest")[1:] == created[::-1]
    assert client.page("q=name:ada&cursor=x").status_code == client.page("q=%21").status_code == 400


def test_a_hostile_query_is_searched_as_words_or_refused_in_one_line(
    client: Client, place: Place
) -> None:
    created = client.create(a_resume("Ada")).json()["id"]
    wait_until(lambda: client.ids("q=ada") == [created])
    texts = [quote(text[:100_000], errors="surrogatepass") for text in HOSTILE_QUERIES]
    for query in (*texts, "%ED%A0%80", "%C0%80", "%FF", "%E2%82", "%", "%zz", '"', "", "\xe9"):
        sent = a_request(client.key, path=f"{RESUMES}?q={query}", Connection="close")
        head, _, body = exchange(place.url, sent).partition(b"\r\n\r\n")
        is_found = head.startswith(b"HTTP/1.1 200 ") and b'{"resumes":[' in body
        is_refused = re.match(rb"HTTP/1.1 4(00|14) ", head) and b'{"error":"' in body
        assert is_found or is_refused, (query[:80], head, body)
    assert client.ids("q=ada") == [created]


def test_each_persons_newest_resume(client: Client) -> None:
    def post(name: str) -> str:
        header = {"name": name, "email": f"{name}@example.com"}
        return str(client.create(a_resume(header=header)).json()["id"])

    first, bo, second = post("ada"), post("bo"), post("Ada")
    assert client.ids("latest=true") == [bo, second]
    assert client.ids("latest=true&sort=newest&limit=1") == [second]
    assert client.ids(f"latest=true&cursor={bo}") == [second]
    assert client.ids("latest=false") == [first, bo, second]
    wait_until(lambda: client.ids("q=ada") == [first, second])
    assert client.ids("q=ada&latest=true") == [second]
    assert client.ids("q=ada&latest=true&sort=newest") == [second]


def test_resumes_by_label(client: Client) -> None:
    def post(query: str) -> str:
        answer = client.request("POST", f"{RESUMES}?{query}", content=a_body(), headers=headers)
        assert answer.status_code == 201
        resume_id: str = answer.json()["id"]
        return resume_id

    headers = {"Authorization": f"Bearer {client.key}", "Content-Type": "application/json"}
    first, plain, second = post("label=class%202026"), post("api_key=x"), post("label=+class+2026")
    entries = client.page().json()["resumes"]
    assert [one.get("label") for one in entries] == ["class 2026", None, "class 2026"]
    assert "label" not in entries[1]
    assert client.ids("label=class%202026") == [first, second]
    assert client.ids(f"label=class%202026&sort=newest&cursor={second}") == [first]
    assert client.ids("label=class") == []
    wait_until(lambda: client.ids("q=ada&label=class%202026") == [first, second])
    assert client.ids("q=label:2026+ada&limit=1") == [first]
    assert client.ids("q=-label:2026") == [plain]


def test_what_the_database_refuses_is_not_to_be_sent_again_and_is_logged_without_its_values(
    client: Client, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"Ada {number}" for number in range(5)] + ["Refused"]
    with refusing(place.store), ThreadPoolExecutor(len(names)) as pool:
        *created, refused = list(pool.map(client.create, map(a_resume, names)))
    assert [one.status_code for one in created] == [201] * 5
    assert refused.status_code == 500
    words, _, error_id = refused.json()["error"].rpartition(" ")
    assert words == "Internal error"
    assert "retry-after" not in refused.headers
    (line,) = [one for one in caplog.messages if error_id in one]
    assert "refused the values" in line
    assert "Refused" not in caplog.text.replace("StatementRefused", "")
    assert len(client.ids()) == 5


def test_a_create_that_is_sent_again(client: Client, free_client: Client) -> None:
    first = client.post(a_body(), Idempotency_Key="once")

    again = client.post(a_body(), Idempotency_Key="once")
    other = client.post(a_body("Bo"), Idempotency_Key="once")

    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (other.status_code, "different body" in error_of(other)["error"]) == (422, True)
    assert free_client.post(a_body("Bo"), Idempotency_Key="once").status_code == 201
    with ThreadPoolExecutor(16) as threads:
        answers = list(
            threads.map(lambda _: client.post(a_body(), Idempotency_Key="at-once"), range(16))
        )
    assert {(answer.status_code, answer.content) for answer in answers} == {
        (201, answers[0].content)
    }
    assert len(client.ids()) == 2


def test_the_key_is_asked_first_and_its_use_is_noted(client: Client, place: Place) -> None:
    for method, path, status in (
        ("PUT", RESUMES, 405), ("GET", "/api/v1/nothing", 404), ("GET", f"{RESUMES}/x", 404),
    ):  # fmt: skip
        assert client.request(method, path, headers={}).status_code == 401
        assert client.request(method, path).status_code == status
    wait_until(lambda: api_keys.list_keys(place.store)[0].last_used_at is not None)
    api_keys.revoke_key(place.store, api_keys.list_keys(place.store)[0].id)
    assert client.page().status_code == 401


def test_a_read_only_key_reads_and_changes_nothing(client: Client, place: Place) -> None:
    (created,) = [client.create(a_resume()).json()["id"]]
    key = api_keys.create_key(place.store, client.account, is_read_only=True)
    reader = Client(client.url, key.secret)
    wait_until(lambda: api_keys.get_key(place.store, key.id).last_used_at or reader.page() is None)
    for _ in range(2):  # the second time, the key may be cached
        assert reader.ids() == [created]
        assert reader.request("HEAD").status_code == reader.get(created).status_code == 200
        for refused in (reader.create(a_resume()), reader.delete(created)):
            assert error_of(refused) == {"error": "This API key is read-only", "status": 403}
    assert client.ids() == [created]


def test_months_count_as_the_account_says_when_a_resume_is_created(
    client: Client, place: Place
) -> None:
    def create(*months: int) -> tuple[str, list[str]]:
        dates = {"fromYear": 2020, "fromMonth": months[0], "toYear": 2021, "toMonth": months[1]}
        resume = with_section("experiences", items=[{"dateRange": dates}])
        answer = client.create(resume).json()
        assert client.get(answer["id"]).json() == resume
        return answer["id"], [each["message"] for each in answer.get("warnings", ())]

    before, _ = create(1, 6)
    accounts.set_options(place.store, client.account, {"first_month": 1})
    after, warned = create(1, 12)
    _, warned_of_0 = create(0, 6)
    accounts.set_options(place.store, client.account, {"first_month": 0})
    _, warned_of_12 = create(1, 12)

    assert warned == []
    assert "fromMonth 0 is outside the range 1 to 12" in warned_of_0[0]
    assert "toMonth 12 is outside the range 0 to 11" in warned_of_12[0]
    (owner,) = accounts.list_accounts(place.store)
    for resume_id, dates in ((before, "Feb 2020"), (after, "Jan 2020")):
        stored = stored_resumes.get_resume(place.store, owner.id, resume_id)
        lines = section_lines(load_stored(stored.document), stored.first_month)
        assert any(dates in phrase.text for line in lines for phrase in line.phrases)


def test_a_store_that_works_is_ready_and_one_that_cannot_be_read_is_not(
    client: Client, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.health.CACHE_S", 0.05)
    well = {"read": "ok", "write": "ok", "disk": "ok"}
    assert client.request("GET", "/readyz").json() == {"status": "ready", "checks": well}
    assert 'resumes_requests_total{operation="ready",status="200"} 1.0' in (
        client.request("GET", "/metrics").text
    )
    (build,) = re.findall("^resumes_build_info{.*}", client.request("GET", "/metrics").text, re.M)
    is_file = place.store.path is not None
    assert ("sqlite=" in build, "engine=" in build) == (is_file, not is_file)
    lose_table(place.store, "plans")

    def is_ready() -> bool:  # an answer is given again for a while
        return client.request("GET", "/readyz").is_success

    wait_until(lambda: not is_ready())
    assert client.request("GET", "/readyz").json()["checks"] == well | {"read": "failed"}
