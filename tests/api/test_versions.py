"""Newer versions of a person's resume over HTTP, in an account that replaces older ones."""

import json
import logging

import pytest

from resumes.store import accounts
from tests.support.api.builders import Client, a_body, a_resume
from tests.support.api.serving import Place


def a_version(title: str, name: str = "Ada") -> bytes:
    return a_body(title=title, header={"name": name, "email": f"{name}@example.com"})


@pytest.fixture
def replacing(place: Place, free_client: Client) -> Client:
    """A client whose account may hold 5 resumes, and replaces older versions."""
    accounts.set_options(place.store, free_client.account, {"on_newer": "replace"})
    return free_client


def test_a_create_says_what_it_replaced_also_in_the_log_and_when_it_is_repeated(
    replacing: Client, caplog: pytest.LogCaptureFixture
) -> None:
    first = replacing.create(a_version("First")).json()
    assert list(first) == ["id"]

    with caplog.at_level(logging.INFO, "resumes.server"):
        answer = replacing.post(a_version("Second"), Idempotency_Key="a")

    second = answer.json()["id"]
    assert (answer.status_code, answer.json()) == (201, {"id": second, "replaced": [first["id"]]})
    assert f"the resume {second} replaced {first['id']}" in caplog.text
    again = replacing.post(a_version("Second"), Idempotency_Key="a")
    assert (again.status_code, again.json()) == (201, answer.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    warned = replacing.create(json.loads(a_version("Third")) | {"mood": "calm"}).json()
    assert list(warned) == ["id", "replaced", "warnings"]
    assert warned["replaced"] == [second]


def test_a_full_account_takes_newer_versions_and_nothing_else(
    replacing: Client, place: Place
) -> None:
    for number in range(5):
        assert replacing.create(a_version("First", f"P{number}")).status_code == 201
    assert replacing.create(a_version("First", "P5")).status_code == 403
    answers = [replacing.create(a_version("Second", f"P{number}")) for number in range(5)]
    assert [answer.status_code for answer in answers] == [201] * 5
    assert all(len(answer.json()["replaced"]) == 1 for answer in answers)
    assert accounts.get_account(place.store, replacing.account).resume_count == 5


def test_a_reader_that_pages_while_versions_are_replaced_misses_nothing_new(
    client: Client, place: Place
) -> None:
    accounts.set_options(place.store, client.account, {"on_newer": "replace"})
    for name in ("Ada", "Bo", "Cy"):
        client.create(a_version("First", name))
    page = client.page("limit=2").json()
    seen = [entry["id"] for entry in page["resumes"]]
    new = client.create(a_version("Second", "Ada")).json()
    assert new["replaced"] == seen[:1]
    assert client.get(seen[0]).status_code == 404
    rest = client.ids(f"limit=100&cursor={page['pagination']['cursor']}")
    assert rest[-1] == new["id"]
    assert len(rest) == 2


def test_an_update_says_which_other_resumes_of_the_person_it_replaced(
    client: Client, place: Place
) -> None:
    accounts.set_options(place.store, client.account, {"on_newer": "replace"})
    ada, bo = (client.create(a_version("First", name)).json()["id"] for name in ("Ada", "Bo"))
    answer = client.put(ada, a_version("Second", "Bo"))
    assert (answer.status_code, answer.json()) == (200, {"id": ada, "replaced": [bo]})
    assert client.ids() == [ada]
    assert client.put(ada, a_version("Third", "Bo")).json() == {"id": ada}


def test_an_account_keeps_all_versions_unless_it_is_told_otherwise(client: Client) -> None:
    answers = [client.create(a_resume()).json() for _ in range(2)]
    assert [list(answer) for answer in answers] == [["id"], ["id"]]
    assert len(client.ids()) == 2
