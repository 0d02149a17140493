import fcntl
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resumes.errors import StoreUnavailable
from resumes.settings import Settings
from resumes.store import api_keys
from server import service
from server.rate_limits import WORDS, Buckets, RateLimits, find_boot
from tests.support.api.builders import RESUMES, Client, a_resume, error_of
from tests.support.api.refused import JSON, a_request
from tests.support.api.serving import Place, a_connection, fill_disk, read_all

SECOND_NS = 1_000_000_000
NOW_NS = SECOND_NS
WALL_S = 1_800_000_000
REFUSED = "Rate limit exceeded. Please try again later."


class Clock:
    """The machine's clock and the wall's, which go together until one is set."""

    def __init__(self) -> None:
        self.now_ns = 5_000 * SECOND_NS
        self.wall_s: float = WALL_S

    def advance(self, seconds: float) -> None:
        self.now_ns += round(seconds * SECOND_NS)
        self.wall_s += seconds


class Asking:
    """A key that asks again and again."""

    def __init__(self, limits: RateLimits, key_id: str = "key_a") -> None:
        self._limits = limits
        self._key_id = key_id
        self.headers: dict[str, int] = {}

    def admit(self, tokens: int = 1) -> int:
        """The seconds to wait, 0 when admitted."""
        lines: list[bytes] = []
        wait_s = self._limits.admit(self._key_id, lines, tokens=tokens)
        told = b"".join(lines).decode().splitlines()
        self.headers = {
            name.removeprefix("x-ratelimit-"): int(value)
            for name, value in (line.split(": ") for line in told)
        }
        return wait_s

    def tell(self) -> dict[str, int]:
        """What the headers of an answer say that counts nothing."""
        self.admit(tokens=0)
        return self.headers

    def admitted(self, times: int) -> int:
        """How many of so many requests at once are admitted."""
        return sum(self.admit() == 0 for _ in range(times))


@pytest.fixture
def moments() -> Clock:
    return Clock()


@pytest.fixture
def limits(tmp_path: Path, moments: Clock) -> Iterator[Callable[..., RateLimits]]:
    """Makes limits over one file: `limits(rate_per_minute=3)`; 0 unless said."""
    made: list[RateLimits] = []

    def make(**rates: int) -> RateLimits:
        none = dict.fromkeys(("rate_per_minute", "rate_per_hour", "rate_per_day"), 0)
        changed = Settings(home=tmp_path).model_copy(update=none | rates)
        made.append(
            RateLimits(changed, clock_ns=lambda: moments.now_ns, wall_s=lambda: moments.wall_s)
        )
        return made[-1]

    yield make
    for each in made:
        each.close()


# docs/api.md, Rate limits: what is counted


def test_each_key_has_its_own_buckets_and_no_window_tells_nothing(
    limits: Callable[..., RateLimits],
) -> None:
    same = limits(rate_per_minute=5)

    for key in ("key_a", "key_b"):
        assert Asking(same, key).admitted(1_000) == 5
    free = Asking(limits())
    assert free.admitted(1_000) == 1_000
    assert free.headers == free.tell() == {}


# what the headers say


def test_the_headers_tell_limit_rest_and_when_all_is_there_again(
    limits: Callable[..., RateLimits], moments: Clock
) -> None:
    ada = Asking(limits(rate_per_minute=60))

    ada.admitted(15)

    assert ada.headers == {"limit": 60, "remaining": 45, "reset": WALL_S + 15}
    moments.advance(5)
    assert ada.tell() == {"limit": 60, "remaining": 50, "reset": WALL_S + 15}
    moments.advance(100)
    assert ada.tell() == {"limit": 60, "remaining": 60, "reset": WALL_S + 105}


def test_the_tightest_window_is_told(limits: Callable[..., RateLimits], moments: Clock) -> None:
    ada = Asking(limits(rate_per_minute=10, rate_per_hour=20, rate_per_day=25))

    assert ada.admitted(10) == 10
    assert ada.tell() == {"limit": 10, "remaining": 0, "reset": WALL_S + 60}
    moments.advance(60)
    assert ada.tell() == {"limit": 20, "remaining": 10, "reset": WALL_S + 1_800}
    moments.advance(3_600)
    assert ada.tell() == {"limit": 25, "remaining": 16, "reset": WALL_S + 34_560}


def test_a_refusal_tells_the_window_that_is_waited_for(limits: Callable[..., RateLimits]) -> None:
    ada = Asking(limits(rate_per_minute=2, rate_per_hour=2))

    waits_s = [ada.admit() for _ in range(3)]

    assert waits_s == [0, 0, 1_800]
    assert ada.headers == {"limit": 2, "remaining": 0, "reset": WALL_S + 3_600}


@pytest.mark.parametrize(("limit", "wait_s"), [(60, 1), (7, 9), (100_000, 1), (1, 60)])
def test_the_wait_is_until_one_token_in_whole_seconds(
    limits: Callable[..., RateLimits], moments: Clock, limit: int, wait_s: int
) -> None:
    ada = Asking(limits(rate_per_minute=limit))
    while (waited_s := ada.admit()) == 0:
        pass

    assert waited_s == wait_s
    moments.advance(wait_s)
    assert ada.admit() == 0


# clocks


def test_the_wall_clock_changes_only_what_is_told(
    limits: Callable[..., RateLimits], moments: Clock
) -> None:
    ada = Asking(limits(rate_per_minute=3))
    ada.admitted(3)

    moments.wall_s -= 86_400

    assert ada.admit() == 20
    assert ada.headers["reset"] == WALL_S - 86_400 + 60


# the file in which all processes count


@pytest.fixture
def a_table(tmp_path: Path) -> Iterator[Callable[..., Buckets]]:
    """Opens tables over one file: `a_table(slots=2)`."""
    with ExitStack() as opened:

        def open_table(**options: Any) -> Buckets:
            table = Buckets(tmp_path / "run" / "limits", **{"slots": 16, "boot": 7} | options)
            opened.callback(table.close)
            return table

        yield open_table


def use(table: Buckets, key_id: str, *, until_ns: int) -> int:
    """The key's slot, whose bucket of the minute is full at `until_ns`."""
    slot = table.take_slot(key_id, NOW_NS)
    table.words[slot + 1] = until_ns
    return slot


@pytest.mark.parametrize("until_ns", [NOW_NS, 8 * SECOND_NS], ids=["full again", "used least"])
def test_of_a_crowded_table_the_key_that_used_least_is_forgotten(
    a_table: Callable[..., Buckets], until_ns: int
) -> None:
    table = a_table(slots=2)
    forgotten = use(table, "key_a", until_ns=until_ns)
    kept = use(table, "key_b", until_ns=9 * SECOND_NS)

    slot = table.take_slot("key_c", NOW_NS)

    assert (slot, [*table.words[slot + 1 : slot + WORDS]]) == (forgotten, [0, 0, 0])
    assert table.take_slot("key_b", NOW_NS) == kept
    assert table.words[kept + 1] == 9 * SECOND_NS


def test_another_start_of_the_machine_begins_anew(a_table: Callable[..., Buckets]) -> None:
    slot = use(a_table(), "key_a", until_ns=9 * SECOND_NS)

    assert a_table().words[slot + 1] == 9 * SECOND_NS
    assert not any(a_table(boot=find_boot()).words[WORDS:])


A_HOLDER = """
import sys, time
from pathlib import Path
from server.rate_limits import Buckets

Buckets(Path(sys.argv[1]), slots=16, boot=7).lock()
print("locked", flush=True)
time.sleep(60)
"""


def test_a_stopped_worker_is_waited_for_once(
    a_table: Callable[..., Buckets], tmp_path: Path
) -> None:
    path = tmp_path / "run" / "limits"
    command = [sys.executable, "-c", A_HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        holder.send_signal(signal.SIGSTOP)
        # Long enough for a machine that stands still for a moment; the opening waits, too.
        table = a_table(timeout_s=1.0)

        for _ in range(400):  # far longer than a test may take, if each of them waited
            table.lock()
            table.unlock()

        holder.kill()
    table.lock()
    with path.open("rb") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


# whatever is asked, and when


GAPS_MS = st.lists(
    st.one_of(st.just(0), st.integers(0, 3_000), st.integers(0, 200_000)), min_size=1, max_size=150
)


def instants_admitted_ms(gaps_ms: list[int], minute: int, hour: int) -> list[tuple[int, bool]]:
    """When each request came, and whether it was admitted."""
    moments = Clock()
    began_ns = moments.now_ns
    came: list[tuple[int, bool]] = []
    with tempfile.TemporaryDirectory() as home:
        rates = {"rate_per_minute": minute, "rate_per_hour": hour, "rate_per_day": 0}
        limits = RateLimits(
            Settings(home=Path(home)).model_copy(update=rates), clock_ns=lambda: moments.now_ns
        )
        ada = Asking(limits)
        for gap_ms in gaps_ms:
            moments.now_ns += gap_ms * 1_000_000
            came.append(((moments.now_ns - began_ns) // 1_000_000, ada.admit() == 0))
        limits.close()
    return came


@hypothesis.settings(max_examples=100, deadline=None)
@given(
    minute=st.sampled_from([1, 2, 3, 5, 12, 30, 60]),
    hour=st.sampled_from([4, 20, 100, 144]),
    gaps_ms=GAPS_MS,
)
def test_every_sequence_gets_what_buckets_of_tokens_would_give(
    minute: int, hour: int, gaps_ms: list[int]
) -> None:
    came = instants_admitted_ms(gaps_ms, minute, hour)

    most = (Fraction(minute), Fraction(hour))
    tokens, before_ms = most, 0
    for at_ms, is_admitted in came:
        per_ms = (most[0] / 60_000, most[1] / 3_600_000)
        tokens = (
            min(most[0], tokens[0] + (at_ms - before_ms) * per_ms[0]),
            min(most[1], tokens[1] + (at_ms - before_ms) * per_ms[1]),
        )
        before_ms = at_ms
        assert is_admitted == (min(tokens) >= 1)
        if is_admitted:
            tokens = (tokens[0] - 1, tokens[1] - 1)


# over HTTP


def rate_headers(answer: httpx.Response) -> dict[str, int]:
    return {
        name.removeprefix("x-ratelimit-"): int(value)
        for name, value in answer.headers.items()
        if name.startswith("x-ratelimit-")
    }


DAILY: dict[str, Any] = {
    "rate_limit": True,
    "rate_per_minute": 0,
    "rate_per_hour": 0,
    "rate_per_day": 100,
}
"""Settings that allow 100 requests a day: none comes back within a test."""


@pytest.fixture
def limited(a_place: Callable[..., Place]) -> Client:
    return a_place(**DAILY).client()


def test_every_authenticated_answer_tells_how_the_key_stands(limited: Client) -> None:
    answers = [
        limited.page(),
        limited.create(a_resume()),
        limited.page("limit=x"),
        limited.get("unknown"),
        limited.delete("unknown"),
        limited.post(b"{}", Content_Type="text/plain"),
        limited.post(b"{"),
        limited.post(b"x" * (2 * 1024 * 1024 + 1)),
    ]

    statuses = [answer.status_code for answer in answers]
    assert statuses == [200, 201, 400, 404, 404, 415, 400, 413]
    assert [rate_headers(answer)["remaining"] for answer in answers] == list(range(99, 91, -1))
    assert {rate_headers(answer)["limit"] for answer in answers} == {100}
    for method, path, status in [("GET", "/api/v1/nothing", 404), ("PATCH", RESUMES, 405)]:
        for _ in range(3):  # which count nothing
            answer = limited.request(method, path)
            assert (answer.status_code, rate_headers(answer)["remaining"]) == (status, 92)
    for path in (RESUMES, "/nothing", "/healthz", "/docs"):  # without a key
        assert rate_headers(limited.request("GET", path, headers={})) == {}


def test_so_does_the_refusal_of_a_body_that_breaks_while_it_arrives(limited: Client) -> None:
    chunks = b"Transfer-Encoding: chunked\r\nExpect: 100-continue"
    create = a_request("POST", RESUMES, JSON, chunks).replace(b"ADA", limited.key.encode())
    with a_connection(limited.url) as connection:
        connection.sendall(create)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"no size\r\n")
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    metrics = limited.request("GET", "/metrics").text
    assert 'resumes_requests_total{operation="create",status="400"} 1.0' in metrics
    assert b"x-ratelimit-limit: 100\r\nx-ratelimit-remaining: 99\r\n" in answer


def test_a_request_too_many_is_429_before_what_it_holds_is_looked_at(
    a_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fill_disk(monkeypatch, tmp_path)
    place = a_place(**DAILY | {"rate_per_minute": 2})
    client = place.client()
    assert [client.page().status_code for _ in range(2)] == [200, 200]

    answer = client.create(a_resume())

    body: dict[str, Any] = error_of(answer)
    wait_s = body.pop("retryAfter")
    assert body == {"error": REFUSED, "status": 429}
    assert 1 <= wait_s <= 30
    assert answer.headers["Retry-After"] == str(wait_s)
    told = rate_headers(answer)
    assert (told["limit"], told["remaining"]) == (2, 0)
    assert client.post(b"x" * (2 * 1024 * 1024 + 1)).status_code == 429
    assert client.post(b"{", Content_Type="text/plain").status_code == 429
    assert client.page("limit=x").status_code == 429
    assert client.request("GET", headers={}).status_code == 401
    assert client.request("GET", "/api/v1/nothing").status_code == 404
    assert client.request("PUT").status_code == 405
    api_keys.revoke_key(place.store, api_keys.list_keys(place.store)[0].id)
    assert client.page().status_code == 401


def test_a_request_that_a_read_only_key_may_not_make_counts_and_is_429_first(
    a_place: Callable[..., Place],
) -> None:
    place = a_place(rate_limit=True, rate_per_minute=1)
    client = place.client()
    client.key = api_keys.create_key(place.store, client.account, is_read_only=True).secret
    assert [client.create({}).status_code for _ in range(2)] == [403, 429]


@pytest.mark.parametrize(
    ("host", "wanted", "limit"),
    [("127.0.0.1", None, None), ("0.0.0.0", None, 60), ("0.0.0.0", False, None)],
)
def test_requests_are_limited_beyond_loopback_unless_it_is_said(
    a_place: Callable[..., Place], host: str, wanted: bool | None, limit: int | None
) -> None:
    place = a_place(host=host, rate_limit=wanted)
    client = Client(place.url, place.key("ada"))
    assert rate_headers(client.page()).get("limit") == limit
    assert (place.settings.home / "run").exists() == (limit is not None)


def test_without_the_memory_to_count_in_it_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way")

    with pytest.raises(StoreUnavailable, match=r"Cannot count requests in .*--no-rate-limit"):
        service.run(Settings(home=tmp_path, port=0, rate_limit=True))
