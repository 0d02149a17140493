"""Updates of a resume, and the entity tags that guard them (docs/api.md, Update)."""

import json

from resumes.store import accounts
from tests.support.api.builders import Client, a_body, a_resume, error_of, with_section
from tests.support.api.serving import Place

CHANGED = (
    "The resume has changed: its ETag is none of those in If-Match, so nothing was changed. "
    "Get the resume again, and send its new ETag"
)


def create(client: Client, name: str = "Ada") -> str:
    resume_id: str = client.create(a_resume(name)).json()["id"]
    return resume_id


def tag_of(client: Client, resume_id: str) -> str:
    tag: str = client.get(resume_id).headers["ETag"]
    return tag


def test_an_update_replaces_the_content_and_keeps_the_rest(client: Client, place: Place) -> None:
    changed, other = create(client), create(client, "Bo")
    before = client.page().json()["resumes"]

    answer = client.put(changed, a_body("Zoe", title="Nurse", mood="calm"))

    assert (answer.status_code, answer.json()["id"]) == (200, changed)
    assert [warning["path"] for warning in answer.json()["warnings"]] == ["mood"]
    assert client.get(changed).json() == a_resume("Zoe", title="Nurse", mood="calm")
    after = client.page().json()["resumes"]
    assert after[0]["updatedAt"] > before[0]["updatedAt"]
    new = {"title": "Nurse", "filename": "ZoeResume.pdf", "updatedAt": after[0]["updatedAt"]}
    assert after == [before[0] | new, before[1]]
    assert client.get(other).json() == a_resume("Bo")
    assert client.put(changed, a_body()).content == b'{"id":"%b"}' % changed.encode()


def test_the_tag_changes_with_each_update_and_only_then(client: Client) -> None:
    resume_id = create(client)
    same = create(client)
    first = tag_of(client, resume_id)
    assert tag_of(client, resume_id) == first == tag_of(client, same)

    tags = [first]
    for body in (a_body("Zoe"), a_body("Zoe"), a_body("Ada")):
        tags.append(client.put(resume_id, body).headers["ETag"])
        assert tag_of(client, resume_id) == tags[-1]

    assert len(set(tags)) == len(tags)
    assert tag_of(client, same) == first


def test_if_none_match_spares_what_the_client_has(client: Client) -> None:
    resume_id = create(client)
    tag = tag_of(client, resume_id)
    auth = {"Authorization": f"Bearer {client.key}"}
    path = f"/api/v1/resumes/{resume_id}"
    for value in (tag, "*", f"W/{tag}", f'"x", {tag}', tag.removesuffix('"') + '-gzip"'):
        answer = client.request("GET", path, headers=auth | {"If-None-Match": value})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["ETag"] == tag
        assert answer.headers["Cache-Control"] == "no-store"  # as in the 200
    head = client.request("HEAD", path, headers=auth | {"If-None-Match": '"x"'})
    assert (head.status_code, head.headers["ETag"]) == (200, tag)


def test_if_match_admits_an_update_of_what_was_read_and_no_other(client: Client) -> None:
    resume_id = create(client)
    for form in ("{}", '"x", {}', '"x",{},"y"', "*", '{0}, "x"'):
        tag = tag_of(client, resume_id)
        assert client.put(resume_id, a_body("Zoe"), If_Match=form.format(tag)).status_code == 200
    old, tag = tag, tag_of(client, resume_id)
    for form in (old, f"W/{tag}", '"x"', tag.strip('"'), ",", '"*"', f'"x{tag}'):
        answer = client.put(resume_id, a_body("Bo"), If_Match=form)
        assert error_of(answer) == {"error": CHANGED, "status": 412}
    assert client.get(resume_id).json() == a_resume("Zoe")
    assert tag_of(client, resume_id) == tag


def test_if_match_admits_a_delete_of_what_was_read_and_no_other(client: Client) -> None:
    resume_id = create(client)
    old = tag_of(client, resume_id)
    client.put(resume_id, a_body("Zoe"))
    for form in (old, f"W/{tag_of(client, resume_id)}", '"*"'):
        answer = client.delete(resume_id, If_Match=form)
        assert error_of(answer) == {"error": CHANGED, "status": 412}
    assert client.get(resume_id).json() == a_resume("Zoe")
    assert client.delete(resume_id, If_Match=tag_of(client, resume_id)).is_success
    assert client.delete(resume_id, If_Match=old).status_code == 404
    assert client.delete(create(client), If_Match="*").is_success


def test_updates_need_neither_a_place_nor_a_plan(free_client: Client, place: Place) -> None:
    *_, last = [create(free_client) for _ in range(5)]
    assert free_client.create(a_resume()).status_code == 403

    assert free_client.put(last, a_body("Zoe")).status_code == 200

    accounts.set_plan(place.store, free_client.account, "business")
    assert free_client.get(last).json() == a_resume("Zoe")
    assert len(free_client.ids()) == 5
    assert accounts.list_wrong(place.store) == []


def test_what_create_refuses_is_refused_in_the_same_words(client: Client) -> None:
    resume_id = create(client)
    for body in (
        b"",
        b"{",
        b"[]",
        b'{"sections":{}}',
        a_body(type="coverletter"),
        b" " * 3_000_000,
    ):
        created, updated = client.post(body), client.put(resume_id, body)
        assert updated.status_code == created.status_code >= 400
        assert error_of(updated) == error_of(created)
    for headers in ({"Content_Type": "text/plain"}, {"Content_Encoding": "gzip"}):
        assert client.put(resume_id, a_body(), **headers).status_code == 415
    # A key for creates is not looked at.
    assert client.put(resume_id, a_body(), Idempotency_Key="a b").status_code == 200
    assert client.put(resume_id, b"{", If_Match='"x"').status_code == 400


def test_a_repeated_create_does_not_undo_an_update(client: Client) -> None:
    created = client.post(a_body("Ada"), Idempotency_Key="once")
    client.put(created.json()["id"], a_body("Zoe"))

    assert client.post(a_body("Ada"), Idempotency_Key="once").content == created.content
    assert client.get(created.json()["id"]).json() == a_resume("Zoe")


def test_another_accounts_resume_is_not_found(client: Client, free_client: Client) -> None:
    foreign = create(client)
    for resume_id in (foreign, "0" * 24, "x"):
        for headers in ({}, {"If_Match": "*"}, {"If_Match": tag_of(client, foreign)}):
            answer = free_client.put(resume_id, a_body("Zoe"), **headers)
            assert error_of(answer) == {"error": "Resume not found", "status": 404}
    assert client.get(foreign).json() == a_resume("Ada")


def test_a_large_update_is_stored_whole(client: Client) -> None:
    resume_id = create(client)
    large = with_section(items=[{"text": "x" * 15_000}] * 30)
    assert client.put(
        resume_id, json.dumps(large).encode(), If_Match=tag_of(client, resume_id)
    ).is_success
    assert client.get(resume_id).json() == large
