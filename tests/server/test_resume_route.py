import pytest

from resumes.store import Store, accounts, counters
from tests.server.builders import Client, a_resume, error_of, with_section

pytestmark = pytest.mark.engines

# docs/api.md, One resume


def test_get_answers_exactly_what_create_takes(client: Client) -> None:
    sent = with_section("experiences", items=[{"workplace": "Engine Works", "bullets": ["Built"]}])
    sent |= {"title": "Engineer", "style": {"layout": "double"}}
    hidden = {"position": "", "record": "x", "unknown": 1}
    sent_items = [sent["sections"]["experiences"]["items"][0] | hidden]
    with_hidden = sent | {"sections": {"experiences": {"column": 0, "items": sent_items}}}
    resume_id = client.create(with_hidden).json()["id"]

    answer = client.get(resume_id)

    assert answer.status_code == 200
    assert answer.json() == sent
    again = client.create(answer.json())
    assert list(again.json()) == ["id"]
    assert client.get(again.json()["id"]).json() == sent


def test_get_leaves_out_title_and_style_that_were_not_sent(client: Client) -> None:
    resume_id = client.create(a_resume()).json()["id"]

    assert list(client.get(resume_id).json()) == ["header", "sections"]


def test_get_keeps_an_item_that_is_hidden_whole(client: Client) -> None:
    resume_id = client.create(with_section(items=[{"text": ""}])).json()["id"]

    assert client.get(resume_id).json()["sections"]["summaries"]["items"] == [{}]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_unknown_id_is_404(client: Client, method: str) -> None:
    for resume_id in ("0" * 24, "x", "%00", "%FF", "%F0%9F%90%88", "x" * 9_000):
        answer = client.request(method, f"/api/v1/resumes/{resume_id}")

        assert answer.status_code == 404
        assert error_of(answer) == {"error": "Resume not found", "status": 404}


def test_a_foreign_id_is_404_and_untouched(
    client: Client, free_client: Client, store: Store
) -> None:
    resume_id = client.create(a_resume()).json()["id"]
    accounts.set_plan(store, "fred", "business")

    assert free_client.get(resume_id).json()["error"] == "Resume not found"
    assert free_client.delete(resume_id).json()["error"] == "Resume not found"
    assert client.get(resume_id).status_code == 200


def test_get_needs_the_business_plan(free_client: Client) -> None:
    resume_id = free_client.create(a_resume()).json()["id"]

    answer = free_client.get(resume_id)

    assert answer.status_code == 403
    assert answer.json()["error"] == "API access requires a business plan"


def test_delete_answers_success_on_any_plan(free_client: Client) -> None:
    resume_id = free_client.create(a_resume()).json()["id"]

    answer = free_client.delete(resume_id)

    assert answer.status_code == 200
    assert answer.json() == {"success": True}
    assert free_client.delete(resume_id).status_code == 404


def test_delete_frees_its_place_in_the_quota(free_client: Client, store: Store) -> None:
    created = [free_client.create(a_resume()).json()["id"] for _ in range(5)]
    assert free_client.create(a_resume()).status_code == 403

    free_client.delete(created[0])

    assert free_client.create(a_resume()).status_code == 201
    assert counters.list_wrong(store) == []
