import re

import pytest

from resumes.store import Store, accounts
from tests.server.builders import Client, SteppingClock, a_resume, error_of


def create(client: Client, count: int) -> list[str]:
    return [client.create(a_resume()).json()["id"] for _ in range(count)]


def ids(client: Client, query: str = "") -> list[str]:
    return [resume["id"] for resume in client.page(query).json()["resumes"]]


# docs/api.md, List


def test_success_is_resumes_and_pagination(client: Client) -> None:
    resume_id = client.create(a_resume(title="Engineer")).json()["id"]

    answer = client.page()

    assert answer.status_code == 200
    assert answer.json() == {
        "resumes": [
            {
                "id": resume_id,
                "title": "Engineer",
                "filename": "AdaExampleResume.pdf",
                "createdAt": "2027-01-15T08:00:00.000Z",
                "updatedAt": "2027-01-15T08:00:00.000Z",
            }
        ],
        "pagination": {"cursor": None, "limit": 20},
    }


def test_without_resumes_the_list_is_empty(client: Client) -> None:
    assert client.page().json() == {"resumes": [], "pagination": {"cursor": None, "limit": 20}}


def test_resumes_are_sorted_by_id_oldest_first(client: Client, clock: SteppingClock) -> None:
    created = create(client, 2)
    clock.advance(-3_600)  # a clock that is set back does not reorder

    created += create(client, 2)

    assert ids(client) == created == sorted(created)


def test_limit_is_20_by_default_and_100_at_most(client: Client) -> None:
    created = create(client, 101)

    assert ids(client) == created[:20]
    assert ids(client, "limit=1000") == created[:100]
    assert client.page("limit=1000").json()["pagination"] == {"cursor": created[99], "limit": 100}


def test_cursor_of_a_page_gives_the_next_until_it_is_null(client: Client) -> None:
    created = create(client, 5)

    first = client.page("limit=2").json()
    second = client.page(f"limit=2&cursor={first['pagination']['cursor']}").json()
    third = client.page(f"limit=2&cursor={second['pagination']['cursor']}").json()

    pages = [[resume["id"] for resume in page["resumes"]] for page in (first, second, third)]
    assert pages == [created[:2], created[2:4], created[4:]]
    assert third["pagination"] == {"cursor": None, "limit": 2}


def test_no_business_plan_is_403(free_client: Client) -> None:
    answer = free_client.page()

    assert answer.status_code == 403
    assert error_of(answer) == {"error": "API access requires a business plan", "status": 403}


# docs/api.md, List: the limit and the cursor


def test_id_is_24_lowercase_hex_characters(client: Client) -> None:
    assert re.fullmatch("[0-9a-f]{24}", create(client, 1)[0])


@pytest.mark.parametrize(
    ("limit", "used"),
    [
        ("0", 1), ("-1", 1), ("-0", 1), ("1", 1), ("007", 7), ("100", 100), ("101", 100),
        ("9" * 5_000, 100), ("-" + "9" * 5_000, 1), ("0" * 5_000 + "5", 5),
    ],
)  # fmt: skip
def test_limit_of_any_length_is_clamped_and_reported(client: Client, limit: str, used: int) -> None:
    assert client.page(f"limit={limit}").json()["pagination"]["limit"] == used


@pytest.mark.parametrize(
    "query",
    ["limit=", "limit", "limit=ten", "limit=1.5", "limit=%2B5", "limit=+5", "limit=5%0A",
     "limit=%D9%A5", "limit=%FF", "limit=1e1", "limit=5&limit=5"],
)  # fmt: skip
def test_any_other_limit_is_400_naming_it(client: Client, query: str) -> None:
    answer = client.page(query)

    assert answer.status_code == 400
    assert answer.json()["error"] == "Invalid limit: must be an integer from 1 to 100"


def test_an_empty_cursor_is_the_first_page(client: Client) -> None:
    created = create(client, 1)

    assert ids(client, "cursor=") == ids(client, "cursor") == created


@pytest.mark.parametrize(
    "query",
    ["cursor=x", "cursor=" + "0" * 23, "cursor=" + "A" * 24, f"cursor={'0' * 24}%0A",
     "cursor=&cursor=", "cursor=%00", "cursor=%FF"],
)  # fmt: skip
def test_a_malformed_or_repeated_cursor_is_400(client: Client, query: str) -> None:
    answer = client.page(query)

    assert answer.status_code == 400
    assert error_of(answer) == {"error": "Invalid cursor", "status": 400}


def test_the_id_of_a_deleted_resume_is_a_position(client: Client) -> None:
    created = create(client, 3)
    client.delete(created[1])

    assert ids(client, f"cursor={created[1]}") == [created[2]]


def test_the_id_of_another_account_shows_nothing_of_it(client: Client, free_client: Client) -> None:
    mine = create(client, 1)
    foreign = create(free_client, 1)

    assert set(ids(client, f"cursor={foreign[0]}")) <= set(mine)
    assert ids(client) == mine


def test_cursor_is_null_when_the_page_is_exactly_full(client: Client) -> None:
    create(client, 2)

    assert client.page("limit=2").json()["pagination"]["cursor"] is None


def test_after_null_a_client_goes_on_with_the_last_id_it_has(client: Client) -> None:
    created = create(client, 2)
    assert client.page().json()["pagination"]["cursor"] is None

    later = create(client, 1)

    assert ids(client, f"cursor={created[-1]}") == later


def test_what_else_a_query_holds_is_ignored(client: Client, free_client: Client) -> None:
    assert client.page("page=2&api_key=x").status_code == 200


def test_the_plan_is_asked_before_the_query(free_client: Client) -> None:
    assert free_client.page("limit=ten").status_code == 403


def test_a_new_plan_counts_at_once(free_client: Client, store: Store) -> None:
    accounts.set_plan(store, "fred", "business")

    assert free_client.page().status_code == 200


@pytest.mark.parametrize(
    ("resume", "title", "filename"),
    [
        (a_resume("Ada Example"), "Ada Example Resume", "AdaExampleResume.pdf"),
        (a_resume("Ada Example", title=" "), "Ada Example Resume", "AdaExampleResume.pdf"),
        (a_resume(header={}), "New Resume", "Resume.pdf"),
        (a_resume(header={}, title="Engineer"), "Engineer", "Engineer.pdf"),
    ],
)
def test_title_and_filename_when_some_are_absent(
    client: Client, resume: dict[str, object], title: str, filename: str
) -> None:
    client.create(resume)

    entry = client.page().json()["resumes"][0]

    assert (entry["title"], entry["filename"]) == (title, filename)
