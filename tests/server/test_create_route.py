import json
from collections.abc import Callable
from typing import Any

import pytest

from resumes.errors import OutcomeUnknown, StoreUnavailable
from resumes.store import Store, accounts, creating, listing
from tests.server.builders import Client, a_resume, error_of, with_section


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
