import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx
import pytest

from resumes.errors import OutcomeUnknown, StoreUnavailable
from resumes.store import Store, accounts, creating, keys, listing
from resumes.store.postgresql import writer
from server import create_route
from server.idempotency import Turns
from tests.resumes.store.builders import dialect_of, sqlite_of
from tests.server.builders import (
    RESUMES,
    Client,
    SteppingClock,
    a_resume,
    error_of,
    with_section,
)


def stored(store: Store, resume_id: str, account: str = "ada") -> dict[str, Any]:
    account_id = accounts.get_account(store, account).id
    document: dict[str, Any] = json.loads(listing.get_resume(store, account_id, resume_id).document)
    return document


# docs/api.md, Create


def test_success_is_201_with_the_id_alone(client: Client) -> None:
    answer = client.create(a_resume())

    assert answer.status_code == 201
    assert list(answer.json()) == ["id"]
    assert answer.json()["id"] == client.page().json()["resumes"][0]["id"]


@pytest.mark.parametrize("header", [{}, {"header": None}, {"header": "Ada"}, {"header": []}])
def test_header_missing_or_not_an_object_is_400(client: Client, header: dict[str, Any]) -> None:
    answer = client.create({"sections": {}} | header)

    assert answer.status_code == 400
    assert answer.json()["error"] == "Missing required field: header (must be an object)"


def test_section_field_of_a_wrong_type_is_400_naming_section_and_field(client: Client) -> None:
    answer = client.create(with_section("experiences", name=5))

    assert answer.status_code == 400
    assert answer.json()["error"] == 'Invalid section "experiences": name must be a string'
    assert answer.json()["status"] == 400


def test_plan_maximum_reached_is_403_stating_the_number(free_client: Client) -> None:
    for _ in range(5):
        assert free_client.create(a_resume()).status_code == 201

    answer = free_client.create(a_resume())

    assert answer.status_code == 403
    assert error_of(answer) == {
        "error": "Maximum resume limit reached. Your plan allows 5 resumes",
        "status": 403,
    }


def test_on_success_visibility_and_automatic_fields_are_set(client: Client, store: Store) -> None:
    item = {"workplace": "Engine Works", "position": "", "description": None, "bullets": ["Built"]}

    answer = client.create(with_section("experiences", items=[item]))

    document = stored(store, answer.json()["id"])
    kept = document["sections"]["experiences"]["items"][0]
    assert document["isImported"] is True
    assert kept["record"] == "experiences"
    assert (kept["showWorkplace"], kept["showBullets"]) == (True, True)
    assert (kept["showPosition"], kept["showDescription"]) == (False, False)


# docs/format.md, What is refused and What is a warning


def test_messages_for_sections_items_and_fields(client: Client) -> None:
    messages = {
        "Missing required field: sections (must be an object)": {"header": {}},
        'Invalid section "experiences": items[0].dateRange.fromYear must be a number': with_section(
            "experiences", items=[{"dateRange": {"fromYear": "1842"}}]
        ),
        "Invalid field header.email: must be a string": a_resume(header={"email": 5}),
        "Invalid field title: must be a string": a_resume(title=5),
    }
    for message, resume in messages.items():
        assert client.create(resume).json()["error"] == message


def test_all_problems_are_issues_and_the_first_is_the_error(client: Client) -> None:
    resume = a_resume(header={"email": 5}, sections={"skills": {"column": 0, "name": 7}})

    body = client.create(resume).json()

    assert [issue["path"] for issue in body["issues"]] == ["header.email", "sections.skills.name"]
    assert body["error"] == body["issues"][0]["message"]
    assert list(body) == ["error", "status", "requestId", "issues"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b'{"header":{},"sections":{},"x":NaN}',
        b'{"header":{},"sections":{},"x":Infinity}',
        b'{"header":{},"sections":{},"x":1e999}',
        b'{"header":{},"sections":{},"x":9223372036854775808}',
        b'{"header":{},"sections":{},"x":"\\ud800"}',
        b'{"header":{},"sections":{},"x":"\\u0000"}',
        b'{"header":{},"header":{},"sections":{}}',
        b'{"header":{},"sections":{},"x":' + b"[" * 33 + b"]" * 33 + b"}",
        b"[" * 100_000,
        b'{"header":{},"sections":{},"x":' + b"1" * 5_000 + b"}",
    ],
)
def test_not_json_is_400_with_the_reason(client: Client, body: bytes) -> None:
    answer = client.create(body)

    assert answer.status_code == 400
    assert answer.json()["error"].startswith("Invalid JSON at byte ")
    assert list(error_of(answer)) == ["error", "status"]


def test_not_json_names_the_byte_offset(client: Client) -> None:
    assert "at byte 2: " in client.create(b"{ ]").json()["error"]


def test_a_body_that_is_no_object_is_400(client: Client) -> None:
    assert client.create(b"[]").status_code == 400


@pytest.mark.parametrize("column", [True, "0"])
def test_types_are_strict(client: Client, column: object) -> None:
    answer = client.create(with_section(column=column))

    assert answer.status_code == 400
    assert "column" in answer.json()["error"]


def test_column_1_0_is_column_1(client: Client) -> None:
    assert client.create(with_section(column=1.0)).status_code == 201


def test_null_is_as_if_absent_where_that_is_allowed(client: Client) -> None:
    resume = with_section(order=None, items=[{"text": None}])

    assert client.create(resume | {"title": None, "style": None}).status_code == 201


@pytest.mark.parametrize("nulled", [{"column": None}, {"name": None}, {"items": [None]}])
def test_null_is_400_where_it_is_not(client: Client, nulled: dict[str, Any]) -> None:
    assert client.create(with_section(**nulled)).status_code == 400


def test_column_is_required_and_0_1_or_2(client: Client) -> None:
    missing = client.create(a_resume(sections={"skills": {"items": []}}))
    assert missing.status_code == 400
    for column in (-1, 3, 0.5, 2):
        answer = client.create(with_section("skills", column=column))
        assert answer.status_code == 400
        assert 'section "skills": column' in answer.json()["error"]


def test_column_2_is_for_the_layout_multicolumn(client: Client) -> None:
    resume = with_section(column=2) | {"style": {"layout": "multicolumn"}}

    assert client.create(resume).status_code == 201


def test_order_of_sections_survives_byte_for_byte(client: Client) -> None:
    sections: dict[str, Any] = {
        name: {"column": 0, "order": order, "items": []}
        for name, order in (("skills", 2), ("awards", 1), ("books", 1.5))
    }

    resume_id = client.create(a_resume(sections=sections)).json()["id"]

    assert list(client.get(resume_id).json()["sections"]) == ["skills", "awards", "books"]


def test_section_name_and_items_may_be_absent(client: Client) -> None:
    resume_id = client.create(a_resume(sections={"skills": {"column": 0}})).json()["id"]

    assert client.get(resume_id).json()["sections"]["skills"]["items"] == []
    assert client.create(with_section(name="")).status_code == 201


def test_unknown_section_type_is_400_with_the_nearest_known(client: Client) -> None:
    answer = client.create(with_section("education"))

    assert answer.status_code == 400
    assert '"education"' in answer.json()["error"]
    assert "did you mean educations?" in answer.json()["error"]


def test_setting_extra_section_types_admits_further_types(
    a_client: Callable[..., Client], client: Client
) -> None:
    relaxed = a_client(client.key, extra_section_types=frozenset({"patents"}))

    resume_id = relaxed.create(with_section("patents", items=[{"any": 1}])).json()["id"]

    assert relaxed.get(resume_id).json()["sections"]["patents"]["items"] == [{"any": 1}]


def test_unknown_fields_are_kept_hidden_and_warned_of(client: Client, store: Store) -> None:
    answer = client.create(a_resume(mood="calm"))

    assert answer.status_code == 201
    assert [warning["path"] for warning in answer.json()["warnings"]] == ["mood"]
    assert list(answer.json()["warnings"][0]) == ["path", "message"]
    assert stored(store, answer.json()["id"])["mood"] == "calm"
    assert "mood" not in client.get(answer.json()["id"]).json()


def test_automatic_fields_sent_by_a_client_are_set_by_the_service(
    client: Client, store: Store
) -> None:
    item = {"text": "", "record": "skills", "showText": True}

    answer = client.create(with_section(items=[item]) | {"isImported": False})

    document = stored(store, answer.json()["id"])
    kept = document["sections"]["summaries"]["items"][0]
    assert document["isImported"] is True
    assert (kept["record"], kept["showText"]) == ("summaries", False)
    assert len(answer.json()["warnings"]) == 3


def test_out_of_range_values_are_kept_and_warned_of(client: Client) -> None:
    item = {"dateRange": {"fromYear": 1842, "fromMonth": 12}}

    answer = client.create(with_section("experiences", items=[item]))

    assert answer.status_code == 201
    assert "fromMonth" in answer.json()["warnings"][0]["path"]


@pytest.mark.parametrize(
    ("style", "path"),
    [({"layout": "spiral"}, "style.layout"), ({"colors": ["#fff", "red"]}, "style.colors[1]")],
)
def test_unknown_layout_and_colour_are_400(client: Client, style: Any, path: str) -> None:
    answer = client.create(a_resume(style=style))

    assert answer.status_code == 400
    assert path in answer.json()["error"]


@pytest.mark.parametrize(
    "mark",
    [
        {"type": "Cover-Letter"},
        {"kind": "coverletters"},
        {"isCoverLetter": True},
        {"coverLetter": {}},
    ],
)
def test_cover_letters_cannot_be_created(client: Client, mark: dict[str, Any]) -> None:
    answer = client.create(a_resume(**mark))

    assert answer.status_code == 400
    assert answer.json()["error"] == "Cover letters cannot be created"


def test_text_limits_are_400_naming_the_field(client: Client) -> None:
    answer = client.create(with_section(items=[{"text": "x" * 20_001}]))

    assert answer.status_code == 400
    assert "items[0].text" in answer.json()["error"]


def test_business_plan_is_not_needed_to_create(free_client: Client) -> None:
    assert free_client.create(a_resume()).status_code == 201


# docs/api.md, Errors


def test_an_invalid_body_at_a_full_account_is_400_not_403(free_client: Client) -> None:
    for _ in range(5):
        free_client.create(a_resume())

    assert free_client.create({"sections": {}}).status_code == 400


def test_a_large_body_is_parsed_beside_the_event_loop(client: Client) -> None:
    items = [{"text": "x" * 15_000}] * 30

    assert client.create(with_section(items=items)).status_code == 201
    assert client.create(b'{"header":' + b" " * 300_000).status_code == 400


def test_an_account_deleted_meanwhile_is_401(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_soon = creating.create_soon

    async def too_late(*arguments: Any) -> Any:
        accounts.delete_account(store, "ada")
        return await create_soon(*arguments)

    monkeypatch.setattr(creating, "create_soon", too_late)

    assert error_of(client.create(a_resume())) == {"error": "Invalid API key", "status": 401}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            StoreUnavailable("/secret/path"),
            "Service unavailable; nothing was done, try again later",
        ),
        (OutcomeUnknown(), "Outcome unknown: it may have been done. Look before you try again"),
    ],
)
def test_a_store_that_cannot_write_is_503_and_names_no_path(
    client: Client, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(creating, "create_soon", fail)

    answer = client.create(a_resume())

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    assert error_of(answer) == {"error": message, "status": 503}


# docs/api.md, Retrying a create

Many = list[httpx.Response]


def post_all(client: Client, bodies: Sequence[bytes], **headers: str) -> Many:
    """The answers to creates that are sent at once, in this order."""
    sent = {"Authorization": f"Bearer {client.key}", "Content-Type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}

    async def post() -> Many:
        requests = (client._http.post(RESUMES, content=body, headers=sent) for body in bodies)
        return await asyncio.gather(*requests)

    return client._runner.run(post())


def a_body(name: str = "Ada Example", **top_level: Any) -> bytes:
    return json.dumps(a_resume(name, **top_level)).encode()


def count(client: Client) -> int:
    return len(client.page("limit=100").json()["resumes"])


def is_replay(answer: httpx.Response, first: httpx.Response) -> bool:
    """Whether it is the first answer again, and says so."""
    return (
        answer.headers.get("Idempotent-Replayed") == "true"
        and "Idempotent-Replayed" not in first.headers
        and (answer.status_code, answer.content) == (201, first.content)
    )


def test_a_repeat_with_the_same_key_and_body_is_the_same_201(client: Client) -> None:
    first = client.post(a_body(), Idempotency_Key="once")

    answer = client.post(a_body(), Idempotency_Key="once")

    assert is_replay(answer, first)
    assert count(client) == 1


def test_without_a_key_or_with_another_one_a_repeat_makes_another_resume(client: Client) -> None:
    answers = [client.post(a_body(), Idempotency_Key=key) for key in ("", "", "once", "twice")]

    assert len({answer.json()["id"] for answer in answers}) == 4
    assert not any("Idempotent-Replayed" in answer.headers for answer in answers)


def test_a_replay_tells_the_warnings_again(client: Client) -> None:
    body = a_body(mood="calm")
    first = client.post(body, Idempotency_Key="once")

    answer = client.post(body, Idempotency_Key="once")

    assert is_replay(answer, first)
    assert [warning["path"] for warning in answer.json()["warnings"]] == ["mood"]


def test_a_large_body_is_repeated_as_well(client: Client) -> None:
    body = json.dumps(with_section(items=[{"text": "x" * 15_000}] * 30)).encode()
    first = client.post(body, Idempotency_Key="once")

    assert is_replay(client.post(body, Idempotency_Key="once"), first)


def test_another_body_with_the_same_key_is_422_even_if_it_means_the_same(client: Client) -> None:
    client.post(a_body(), Idempotency_Key="once")

    for other in (a_body("Bo Example"), a_body() + b" "):
        answer = client.post(other, Idempotency_Key="once")
        assert answer.status_code == 422
        assert error_of(answer) == {
            "error": "Idempotency-Key was already used with a different body",
            "status": 422,
        }
    assert count(client) == 1


def test_the_same_key_of_another_account_is_another_key(
    client: Client, free_client: Client
) -> None:
    first = client.post(a_body(), Idempotency_Key="once")

    other = free_client.post(a_body("Bo Example"), Idempotency_Key="once")

    assert other.status_code == 201
    assert other.json()["id"] != first.json()["id"]


def test_another_api_key_of_the_account_repeats_the_same_create(
    client: Client, store: Store, a_client: Callable[..., Client]
) -> None:
    first = client.post(a_body(), Idempotency_Key="once")
    second_client = a_client(keys.create_key(store, "ada").secret)

    assert is_replay(second_client.post(a_body(), Idempotency_Key="once"), first)


@pytest.mark.parametrize("value", ["two words", "k" * 256, " "])
def test_a_malformed_key_is_400_naming_it(client: Client, value: str) -> None:
    answer = client.post(a_body(), Idempotency_Key=value)

    assert answer.status_code == 400
    assert error_of(answer)["error"] == (
        "Invalid Idempotency-Key: must be 1 to 255 visible ASCII characters"
    )
    assert count(client) == 0


def test_a_repeated_key_is_400_naming_it(client: Client) -> None:
    headers = [
        ("Authorization", f"Bearer {client.key}"),
        ("Content-Type", "application/json"),
        ("Idempotency-Key", "once"),
        ("Idempotency-Key", "once"),
    ]

    answer = client.request("POST", content=a_body(), headers=headers)

    assert answer.status_code == 400
    assert error_of(answer)["error"] == "Invalid Idempotency-Key: send the header once"


def test_type_and_size_are_told_before_the_key_and_the_key_before_the_body(client: Client) -> None:
    malformed = "two words"

    assert client.post(b"x" * 3_000_000, Idempotency_Key=malformed).status_code == 413
    assert client.post(b"", Idempotency_Key=malformed, Content_Type="a/b").status_code == 415
    answer = client.post(b"[]", Idempotency_Key=malformed)
    assert "Idempotency-Key" in answer.json()["error"]


def test_a_body_that_is_refused_is_400_though_its_key_was_used(client: Client) -> None:
    client.post(a_body(), Idempotency_Key="once")

    assert client.post(b"[]", Idempotency_Key="once").status_code == 400


def test_refusals_are_not_remembered(
    free_client: Client, store: Store, a_client: Callable[..., Client]
) -> None:
    assert free_client.post(b"[]", Idempotency_Key="mended").status_code == 400
    assert free_client.post(a_body("0"), Idempotency_Key="mended").status_code == 201
    for number in range(4):
        free_client.post(a_body(str(number)))
    assert free_client.post(a_body("late"), Idempotency_Key="late").status_code == 403

    accounts.set_plan(store, "fred", "pro")

    answer = free_client.post(a_body("another"), Idempotency_Key="late")
    assert answer.status_code == 201
    assert "Idempotent-Replayed" not in answer.headers


def test_s6_a_repeat_at_a_full_account_is_still_its_201(free_client: Client) -> None:
    first = free_client.post(a_body(), Idempotency_Key="once")
    for _ in range(4):
        free_client.post(a_body())

    assert is_replay(free_client.post(a_body(), Idempotency_Key="once"), first)
    assert free_client.post(a_body("Bo"), Idempotency_Key="once").status_code == 422
    assert free_client.post(a_body(), Idempotency_Key="new").status_code == 403


def test_a_repeat_whose_resume_was_deleted_is_the_same_201_and_makes_none(client: Client) -> None:
    first = client.post(a_body(), Idempotency_Key="once")
    client.delete(first.json()["id"])

    assert is_replay(client.post(a_body(), Idempotency_Key="once"), first)
    assert client.get(first.json()["id"]).status_code == 404
    assert count(client) == 0


@pytest.mark.sqlite("its full disk")
def test_a_repeat_needs_no_room_on_the_disk(client: Client, store: Store) -> None:
    first = client.post(a_body(), Idempotency_Key="once")
    raw: Any = sqlite_of(store)._lane_connection.connection.driver_connection
    raw.execute("PRAGMA max_page_count=1")  # no more than there are
    large = a_body(sections={"books": {"column": 0, "items": [{"title": "x" * 20_000}] * 20}})

    assert client.post(large, Idempotency_Key="new").status_code == 503
    assert is_replay(client.post(a_body(), Idempotency_Key="once"), first)


def test_a_key_counts_for_24_hours(client: Client, clock: SteppingClock) -> None:
    first = client.post(a_body(), Idempotency_Key="once")
    clock.advance(24 * 3_600 - 1)
    assert is_replay(client.post(a_body(), Idempotency_Key="once"), first)

    clock.advance(1)

    answer = client.post(a_body("Bo Example"), Idempotency_Key="once")
    assert answer.status_code == 201
    assert answer.json()["id"] != first.json()["id"]


def test_repeats_at_once_make_one_resume(client: Client) -> None:
    answers = post_all(client, [a_body()] * 32, Idempotency_Key="once")

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert sum("Idempotent-Replayed" in answer.headers for answer in answers) == 31
    assert count(client) == 1


def test_of_several_bodies_with_a_key_at_once_one_is_created(client: Client) -> None:
    bodies = [a_body(f"Person {number % 4}") for number in range(32)]

    answers = post_all(client, bodies, Idempotency_Key="once")

    assert Counter(answer.status_code for answer in answers) == {201: 8, 422: 24}
    assert count(client) == 1


@pytest.fixture
def commits(store: Store) -> Iterator["Commits"]:
    """What holds commits up, while there are any."""
    made = Commits(store)
    yield made
    made.go_on.set()


class Commits:
    """The store's commits, each of which can be made to wait or to fail."""

    def __init__(self, store: Store) -> None:
        self._dialect = dialect_of(store)
        self._really = self._dialect.do_commit
        self.has_come = threading.Event()
        self.go_on = threading.Event()

    def hold_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The next commit waits for `go_on`."""

        def wait(connection: Any) -> None:
            self.has_come.set()
            self.go_on.wait(60)
            self._really(connection)

        monkeypatch.setattr(self._dialect, "do_commit", wait)

    def fail(self, monkeypatch: pytest.MonkeyPatch, times: int, *, after: bool) -> None:
        """The next commits fail, before or after they have taken effect, and nothing tells which."""
        left = iter(range(times))

        def fail(connection: Any) -> None:
            if next(left, None) is None:
                self._really(connection)
                return
            if after:
                self._really(connection)
            raise OSError("input/output error")

        monkeypatch.setattr(self._dialect, "do_commit", fail)
        monkeypatch.setattr(writer, "was_committed", lambda connection, batch, outcomes: None)


def test_a_repeat_waits_for_the_first_and_is_409_when_that_takes_too_long(
    client: Client,
    a_client: Callable[..., Client],
    commits: Commits,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commits.hold_up(monkeypatch)
    monkeypatch.setattr(create_route, "Turns", lambda: Turns(deadline_s=0.2))
    client = a_client(client.key)
    headers = {
        "Authorization": f"Bearer {client.key}",
        "Content-Type": "application/json",
        "Idempotency-Key": "once",
    }

    async def post() -> httpx.Response:
        return await client._http.post(RESUMES, content=a_body(), headers=headers)

    async def scenario() -> tuple[httpx.Response, httpx.Response]:
        first = asyncio.create_task(post())
        await asyncio.to_thread(commits.has_come.wait, 10)
        early = await post()
        commits.go_on.set()
        return await first, early

    first, early = client._runner.run(scenario())

    assert early.status_code == 409
    assert early.headers["Retry-After"] == "1"
    assert "still being worked on" in error_of(early)["error"]
    assert first.status_code == 201
    assert is_replay(client.post(a_body(), Idempotency_Key="once"), first)
    assert count(client) == 1


@pytest.mark.parametrize("after", [False, True])
def test_an_unknown_outcome_is_503_and_the_same_key_then_makes_exactly_one_resume(
    client: Client,
    store: Store,
    commits: Commits,
    monkeypatch: pytest.MonkeyPatch,
    after: bool,
) -> None:
    # The lane of a file itself tries once more.
    commits.fail(monkeypatch, 2 if store.path else 1, after=after)

    unknown = client.post(a_body(), Idempotency_Key="once")
    answer = client.post(a_body(), Idempotency_Key="once")

    assert unknown.status_code == 503
    assert unknown.headers["Retry-After"] == "1"
    assert error_of(unknown)["error"] == (
        "Outcome unknown: it may have been done. Send it again with the same Idempotency-Key"
    )
    assert answer.status_code == 201
    assert ("Idempotent-Replayed" in answer.headers) is after
    assert [entry["id"] for entry in client.page().json()["resumes"]] == [answer.json()["id"]]
